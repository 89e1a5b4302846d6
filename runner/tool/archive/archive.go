// Package archive reads zip and tar archives and compressed files, without unpacking them to a folder.
//
// It expects hostile input. Walk reads each member only as far as its caller does, and stops when the time has
// expired. No name of a member leads out of the archive. The package opens no file, and runs in a confined process.
package archive

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"journeyman/store/visible"
)

// A Format is a format of archives.
type Format string

// The formats. Each of the last three may contain a tar archive, or one file.
const (
	Zip   Format = "zip"
	Tar   Format = "tar"
	Gzip  Format = "gzip"
	Bzip2 Format = "bzip2"
	Zstd  Format = "zstd"
)

// maxListed is the number of members in a listing.
const maxListed = 10_000

// bombRatio is the ratio of unpacked and packed bytes from which a listing warns.
const bombRatio = 100

// A Member is a file in an archive.
type Member struct {
	Name     string // a path that leads nowhere else; no two members of an archive have the same
	Size     int64  // in bytes, as the archive states it; -1 if it does not
	Modified time.Time
	Note     string // why the member cannot be read, such as "encrypted"; "" for most
}

// An Input is an archive.
type Input struct {
	Format  Format
	Name    string // name of its file: a compressed file may not contain its own name
	Data    []byte
	Expired func() bool // reports whether the time has expired
}

// The reasons why an archive cannot be read.
var (
	errDamaged = errors.New("it is damaged")
	errExpired = errors.New("it takes too long to unpack")
)

// Walk calls visit for each file in the archive, in order. The reader is only valid during the call. It returns
// the first error of visit. Folders are left out, because the names of their files contain them.
func Walk(in Input, visit func(Member, io.Reader) error) error {
	names := &namer{}
	switch in.Format {
	case Zip:
		return walkZip(in, names, visit)
	case Tar:
		return walkTar(in, names, visit)
	}
	return walkCompressed(in, names, visit)
}

// failing is a reader for a member that cannot be read.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// unreadable returns a reader that explains why a member cannot be read.
func unreadable(note string) io.Reader { return failing{errors.New("it is " + note)} }

// A timed reader ends with errExpired when the time has expired.
type timed struct {
	r       io.Reader
	expired func() bool
	n       int // bytes since the last look at the clock
}

func (t *timed) Read(p []byte) (int, error) {
	const step = 1 << 20 // reading the clock at each call would take longer than the call
	if t.n >= step {
		t.n = 0
		if t.expired() {
			return 0, errExpired
		}
	}
	n, err := t.r.Read(p)
	t.n += n
	return n, err
}

// List returns the names, sizes and dates of an archive's members as text. An archive that is damaged after its
// first member gives the members before, with a note.
func List(in Input) ([]byte, error) {
	var lines strings.Builder
	count, total := 0, int64(0)
	err := Walk(in, func(m Member, _ io.Reader) error {
		if count++; count <= maxListed {
			lines.WriteString(m.line() + "\n")
		}
		total += max(m.Size, 0)
		if count%1000 == 0 && in.Expired() {
			return errExpired
		}
		return nil
	})
	if err != nil && count == 0 {
		return nil, err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "[%s archive of %d files, %d bytes unpacked: name, size, time; ", in.Format, count, total)
	out.WriteString("a file in it has the path ARCHIVE/NAME]\n")
	if total/bombRatio > int64(len(in.Data)) {
		fmt.Fprintf(&out, "[it claims to unpack to %d times its size]\n", total/max(int64(len(in.Data)), 1))
	}
	out.WriteString(lines.String())
	if count > maxListed {
		fmt.Fprintf(&out, "[%d more files are not listed]\n", count-maxListed)
	}
	if err != nil {
		fmt.Fprintf(&out, "[the archive ends here for this reader: %s]\n", err)
	}
	return []byte(out.String()), nil
}

// line returns the member's line of a listing.
func (m Member) line() string {
	size, at := "?", "-"
	if m.Size >= 0 {
		size = strconv.FormatInt(m.Size, 10)
	}
	if !m.Modified.IsZero() {
		at = m.Modified.Format("2006-01-02 15:04")
	}
	line := visible.Name(m.Name) + "\t" + size + "\t" + at
	if m.Note != "" {
		line += "\t" + visible.Line(m.Note)
	}
	return line
}
