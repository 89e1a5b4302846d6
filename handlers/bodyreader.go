package handlers

import (
	"errors"
	"io"
	"net/http"
	"time"

	"journeyman/runner/share"
	"journeyman/store/db"
)

// readAll reads the whole body of a request, at most limit bytes. The caller must call done after
// its last use of raw. what names the body in refusals.
func readAll(w http.ResponseWriter, r *request, what string, limit int64) (raw []byte, done func(), err error) {
	in, err := newPatientReader(w, r, limit)
	if err != nil {
		return nil, nil, err
	}
	raw, err = io.ReadAll(in)
	var tooLarge *http.MaxBytesError
	switch {
	case in.refused != nil:
		err = in.refused
	case errors.As(err, &tooLarge):
		err = db.Errorf(db.TooLarge, "%s has at most %d bytes", what, limit)
	case err != nil:
		err = db.Errorf(db.Invalid, "the body is incomplete")
	}
	if err != nil {
		in.done() // raw is dropped
	}
	return raw, in.done, err
}

// A patientReader reads a request's body. The client has request.readIn for each piece, and
// maxPieces times as long for the whole. An upload over a slow line takes long, but a client that
// sends nothing must not hold the connection. At the end of the body the deadline is removed,
// because it would end a long wait for a result. After a failure it stays, because net/http goes on
// reading to the end of the body.
//
// A body that is larger than smallBody takes one share for each MiB in memory, until done is
// called.
type patientReader struct {
	body    io.Reader
	control *http.ResponseController
	piece   time.Duration
	until   time.Time

	size     int64
	onDisk   bool // the body goes to files: it takes one share
	bodies   *share.Shares
	holder   share.Holder
	releases []func()
	refused  error // why a share was refused
}

// smallBody is the size, in bytes, up to which a body needs no share.
const smallBody = 64 << 10

// maxPieces bounds the time for a whole body, as a multiple of the time for one piece.
const maxPieces = 60

// newPatientReader returns the reader of a request's body. It is the only way to a body, so it refuses
// compressed ones: they would exceed the limits of memory when they are decompressed.
func newPatientReader(w http.ResponseWriter, r *request, limit int64) (*patientReader, error) {
	if err := plainBody(w, r.Request); err != nil {
		return nil, err
	}
	return &patientReader{body: http.MaxBytesReader(Unwrapped(w), r.Body, limit),
		control: http.NewResponseController(w), piece: r.readIn,
		until: time.Now().Add(maxPieces * r.readIn), bodies: r.bodies, holder: holderOf(r.who)}, nil
}

// done releases the body's shares.
func (p *patientReader) done() {
	for _, release := range p.releases {
		release()
	}
	p.releases = nil
}

// take takes the shares that a body of this size needs. One body takes no more than half of the
// share of a key.
func (p *patientReader) take() error {
	need := min(int(p.size>>20)+1, max(1, p.bodies.Limits().Key/2))
	if p.onDisk {
		need = 1
	}
	for p.size > smallBody && len(p.releases) < need {
		release, err := p.bodies.Take(p.holder)
		if err != nil {
			p.refused = err
			return err
		}
		p.releases = append(p.releases, release)
	}
	return nil
}

// Read reads the next piece before its deadline.
func (p *patientReader) Read(b []byte) (int, error) {
	deadline := time.Now().Add(p.piece)
	if deadline.After(p.until) {
		deadline = p.until
	}
	_ = p.control.SetReadDeadline(deadline) // without support for deadlines, clients may be slow
	n, err := p.body.Read(b)
	p.size += int64(n)
	// A body may have no length, so shares are taken as it grows.
	if err := p.take(); err != nil {
		return 0, err
	}
	if err == io.EOF {
		_ = p.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
