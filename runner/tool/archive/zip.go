package archive

import (
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"journeyman/runner/tool/charset"
)

// Methods of compression in a zip archive, in addition to those of the standard library.
const (
	bzip2Method = 12
	zstdMethod  = 93
	aesMethod   = 99 // the real method is in a further field
)

// walkZip visits the members of a zip archive in the order of its directory.
func walkZip(in Input, names *namer, visit func(Member, io.Reader) error) error {
	r, err := zip.NewReader(bytes.NewReader(in.Data), int64(len(in.Data)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // safeName makes such paths safe
		return errDamaged
	}
	r.RegisterDecompressor(bzip2Method, func(r io.Reader) io.ReadCloser { return io.NopCloser(bzip2.NewReader(r)) })
	r.RegisterDecompressor(zstdMethod, func(r io.Reader) io.ReadCloser { return io.NopCloser(newZstd(r)) })
	decode := nameDecoder(r.File)
	for _, f := range r.File {
		if strings.HasSuffix(f.Name, "/") || strings.HasSuffix(f.Name, `\`) && f.UncompressedSize64 == 0 {
			continue // a folder
		}
		m := Member{Name: names.name(decode(f)), Size: int64(min(f.UncompressedSize64, 1<<62)), Modified: f.Modified}
		if m.Modified.Year() < 1980 { // the archive states no time
			m.Modified = time.Time{}
		}
		var body io.Reader = &lazyFile{f: f}
		if f.Flags&1 != 0 || f.Method == aesMethod {
			m.Note = "encrypted"
			body = unreadable("encrypted: ask for a copy without a password, or unpack it with the password in the shell")
		}
		if err := visit(m, &timed{r: body, expired: in.Expired}); err != nil {
			return err
		}
	}
	return nil
}

// A lazyFile opens a member at the first read.
type lazyFile struct {
	f *zip.File
	r io.Reader
}

func (l *lazyFile) Read(p []byte) (int, error) {
	if l.r == nil {
		r, err := l.f.Open()
		switch {
		case errors.Is(err, zip.ErrAlgorithm):
			return 0, fmt.Errorf("it is compressed by method %d, which is not read here", l.f.Method)
		case err != nil:
			return 0, errDamaged
		}
		l.r = r
	}
	n, err := l.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = errDamaged
	}
	return n, err
}

// newZstd returns a reader of zstd data that needs little memory and no goroutine.
func newZstd(r io.Reader) io.Reader {
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		return failing{errDamaged}
	}
	return d
}

// nameDecoder returns a function that returns the name of a member as UTF-8. Names are UTF-8 if they say so or if
// all of them are valid. Otherwise all names together tell their encoding.
func nameDecoder(files []*zip.File) func(*zip.File) string {
	var unmarked []byte
	for _, f := range files {
		if f.NonUTF8 && len(unmarked) < 64<<10 {
			unmarked = append(append(unmarked, f.Name...), '\n')
		}
	}
	encoding := ""
	if !utf8.Valid(unmarked) {
		encoding = charset.GuessNames(unmarked)
	}
	return func(f *zip.File) string {
		if name, ok := unicodeName(f); ok {
			return name
		}
		if f.NonUTF8 && encoding != "" {
			return charset.Decode(encoding, []byte(f.Name))
		}
		return strings.ToValidUTF8(f.Name, "_")
	}
}

// unicodeName returns the name in the field "Info-ZIP Unicode Path", which is only valid for the name whose
// checksum it contains.
func unicodeName(f *zip.File) (string, bool) {
	const tag, header = 0x7075, 5 // a version, and the checksum
	for extra := f.Extra; len(extra) >= 4; {
		size := int(binary.LittleEndian.Uint16(extra[2:]))
		if len(extra) < 4+size {
			break
		}
		field := extra[4 : 4+size]
		if binary.LittleEndian.Uint16(extra) == tag && size > header && utf8.Valid(field[header:]) &&
			binary.LittleEndian.Uint32(field[1:]) == crc32.ChecksumIEEE([]byte(f.Name)) {
			return string(field[header:]), true
		}
		extra = extra[4+size:]
	}
	return "", false
}
