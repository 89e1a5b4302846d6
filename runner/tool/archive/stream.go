package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"journeyman/runner/tool/charset"
)

// maxStream is how many bytes of a compressed file are unpacked at most.
const maxStream = 1 << 30

// errStream is the error for a longer one.
var errStream = fmt.Errorf("it unpacks to more than %d bytes", maxStream)

// A boundedStream ends with errStream after its bytes.
type boundedStream struct {
	r    io.Reader
	left int64
}

func (b *boundedStream) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errStream
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// walkCompressed visits the members of a tar archive in a compressed file, or the only file in it.
func walkCompressed(in Input, names *namer, visit func(Member, io.Reader) error) error {
	m := Member{Size: -1, Name: stem(in.Name)}
	var r io.Reader = bytes.NewReader(in.Data)
	switch in.Format {
	case Gzip:
		z, err := gzip.NewReader(r)
		if err != nil {
			return errDamaged
		}
		m.Modified = z.ModTime
		// RFC 1952 names Latin-1 as the encoding, but programs write UTF-8.
		if z.Name != "" && utf8.ValidString(z.Name) {
			m.Name = path.Base(safeName(z.Name))
		}
		r = z
	case Bzip2:
		r = bzip2.NewReader(r)
	case Zstd:
		r = newZstd(r)
	default:
		return fmt.Errorf("its format %s is not read here", in.Format)
	}
	b := bufio.NewReaderSize(&boundedStream{&timed{r: r, expired: in.Expired}, maxStream}, 64<<10)
	head, err := b.Peek(tarBlock)
	if err != nil && !errors.Is(err, io.EOF) {
		return damaged(err)
	}
	if IsTar(head) {
		return readTar(b, in, names, visit)
	}
	m.Name = names.name(m.Name)
	return visit(m, plainErrors{b})
}

// plainErrors is a reader whose errors are those of this package.
type plainErrors struct{ r io.Reader }

func (p plainErrors) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = damaged(err)
	}
	return n, err
}

// damaged returns err if it is a reason of this package, else errDamaged.
func damaged(err error) error {
	if errors.Is(err, errExpired) || errors.Is(err, errStream) {
		return err
	}
	return errDamaged
}

// stem returns the name of the file in a compressed file.
func stem(name string) string {
	name = path.Base(safeName(name))
	extension := path.Ext(name)
	switch strings.ToLower(extension) {
	case ".gz", ".bz2", ".zst", ".z":
		name = strings.TrimSuffix(name, extension)
	case ".svgz":
		name = strings.TrimSuffix(name, extension) + ".svg"
	}
	if name == "" || name == "." {
		return "data"
	}
	return name
}

const tarBlock = 512

// IsTar reports whether a file that begins with head is a tar archive. The checksum of its first header decides,
// because old archives have no other mark.
func IsTar(head []byte) bool {
	const from, to = 148, 156 // the checksum itself counts as spaces
	if len(head) < tarBlock || head[0] == 0 {
		return false
	}
	want, err := strconv.ParseInt(strings.Trim(string(head[from:to]), " \x00"), 8, 32)
	sum := int64(to-from) * ' '
	for i, c := range head[:tarBlock] {
		if i < from || i >= to {
			sum += int64(c)
		}
	}
	return err == nil && sum == want
}

// walkTar visits the members of a tar archive.
func walkTar(in Input, names *namer, visit func(Member, io.Reader) error) error {
	return readTar(&timed{r: bytes.NewReader(in.Data), expired: in.Expired}, in, names, visit)
}

func readTar(r io.Reader, in Input, names *namer, visit func(Member, io.Reader) error) error {
	t := tar.NewReader(r)
	for n := 1; ; n++ {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, tar.ErrInsecurePath):
			return damaged(err)
		case n%1000 == 0 && in.Expired():
			return errExpired
		case h.Typeflag == tar.TypeDir || h.Typeflag == tar.TypeXGlobalHeader:
			continue
		}
		m := Member{Name: names.name(decodedName(h.Name)), Size: h.Size, Modified: h.ModTime}
		if m.Modified.Equal(time.Unix(0, 0)) {
			m.Modified = time.Time{}
		}
		var body io.Reader = plainErrors{&boundedStream{t, maxStream}}
		switch h.Typeflag {
		case tar.TypeReg, tar.TypeGNUSparse:
		case tar.TypeLink, tar.TypeSymlink:
			m.Note = "a link to " + safeName(decodedName(h.Linkname))
			body = unreadable(m.Note)
		default:
			m.Note = "a device or pipe"
			body = unreadable(m.Note)
		}
		if err := visit(m, body); err != nil {
			return err
		}
	}
}

// decodedName returns a name as UTF-8. Tar archives do not say in which encoding their names are.
func decodedName(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return charset.Decode(charset.GuessNames([]byte(name)), []byte(name))
}
