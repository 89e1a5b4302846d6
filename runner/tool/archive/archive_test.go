package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

func never() bool { return false }

type file struct {
	name, body string
	change     func(*zip.FileHeader)
}

// packZip returns a zip archive of files.
func packZip(t testing.TB, files ...file) []byte {
	t.Helper()
	is := is.New(t)
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate}
		if f.change != nil {
			f.change(h)
		}
		w, err := z.CreateHeader(h)
		is.NoErr(err)
		_, err = io.WriteString(w, f.body)
		is.NoErr(err)
	}
	is.NoErr(z.Close())
	return b.Bytes()
}

func packTar(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	is := is.New(t)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		h.Size, h.Mode = int64(len(h.Name)), 0o644 // each file contains its name
		if h.Typeflag != tar.TypeReg {
			h.Size = 0
		}
		is.NoErr(w.WriteHeader(&h))
		if h.Size > 0 {
			_, err := io.WriteString(w, h.Name)
			is.NoErr(err)
		}
	}
	is.NoErr(w.Close())
	return b.Bytes()
}

func gzipped(t testing.TB, name string, data []byte) []byte {
	t.Helper()
	is := is.New(t)
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Name = name
	_, err := w.Write(data)
	is.NoErr(err)
	is.NoErr(w.Close())
	return b.Bytes()
}

// walked returns the names of all members, each with its text or the error.
func walked(t testing.TB, in Input) (all []string) {
	t.Helper()
	err := Walk(in, func(m Member, r io.Reader) error {
		body, err := io.ReadAll(r)
		if err != nil {
			body = []byte(err.Error())
		}
		all = append(all, m.Name+" = "+string(body))
		return nil
	})
	is.New(t).NoErr(err)
	return all
}

func TestZipNames(t *testing.T) {
	t.Parallel()
	raw := func(h *zip.FileHeader) { h.NonUTF8 = true }
	long := strings.Repeat("x", 300)
	for name, tt := range map[string]struct {
		files []file
		want  []string
	}{
		"plain":     {[]file{{name: "a.txt", body: "one"}, {name: "b/c.txt", body: "two"}}, []string{"a.txt = one", "b/c.txt = two"}},
		"folders":   {[]file{{name: "b/"}, {name: "b/c", body: "x"}}, []string{"b/c = x"}},
		"leads out": {[]file{{name: "../../etc/passwd", body: "x"}, {name: "/abs/./f", body: "y"}}, []string{"etc/passwd = x", "abs/f = y"}},
		"Windows":   {[]file{{name: `C:\docs\a.txt`, body: "x"}, {name: `..\b.txt`, body: "y"}}, []string{"docs/a.txt = x", "b.txt = y"}},
		"duplicates": {[]file{{name: "a.txt", body: "1"}, {name: "./a.txt", body: "2"}, {name: "a (2).txt", body: "3"}, {name: "a.txt", body: "4"}},
			[]string{"a.txt = 1", "a (2).txt = 2", "a (2) (2).txt = 3", "a (3).txt = 4"}},
		"control characters": {[]file{{name: "a\nb\x00.txt", body: "x"}}, []string{"a_b_.txt = x"}},
		"no name":            {[]file{{name: "..", body: "x"}}, []string{"unnamed = x"}},
		"long":               {[]file{{name: long + ".txt", body: "x"}}, []string{long[:196] + ".txt = x"}},
		"deep":               {[]file{{name: strings.Repeat("d/", 50) + "f", body: "x"}}, []string{"member 1/f = x"}},
		"CP437":              {[]file{{name: "gr\x94\xe1e.txt", body: "x", change: raw}}, []string{"größe.txt = x"}},
		"Shift_JIS": {[]file{{name: "\x8c\xa9\x90\xcf\x8f\x91\x82\xcc\x8e\x91\x97\xbf.txt", body: "x", change: raw}},
			[]string{"見積書の資料.txt = x"}},
		"UTF-8 without the mark": {[]file{{name: "größe.txt", body: "x", change: raw}}, []string{"größe.txt = x"}},
		"encrypted": {[]file{{name: "a", body: "x", change: func(h *zip.FileHeader) { h.Flags |= 1 }}},
			[]string{"a = it is encrypted: ask for a copy without a password, or unpack it with the password in the shell"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			is.Equal(walked(t, Input{Format: Zip, Data: packZip(t, tt.files...), Expired: never}), tt.want)
		})
	}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	archive := packTar(t, tar.Header{Name: "d/", Typeflag: tar.TypeDir}, tar.Header{Name: "d/a.txt", Typeflag: tar.TypeReg},
		tar.Header{Name: "../b", Typeflag: tar.TypeReg}, tar.Header{Name: "l", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink},
		tar.Header{Name: "p", Typeflag: tar.TypeFifo})
	want := []string{"d/a.txt = d/a.txt", "b = ../b", "l = it is a link to etc/passwd", "p = it is a device or pipe"}
	e, err := zstd.NewWriter(nil)
	is.New(t).NoErr(err)
	for name, tt := range map[string]struct {
		in   Input
		want []string
	}{
		"tar":         {Input{Format: Tar, Data: archive}, want},
		"tar.gz":      {Input{Format: Gzip, Data: gzipped(t, "", archive), Name: "x.tgz"}, want},
		"tar.zst":     {Input{Format: Zstd, Data: e.EncodeAll(archive, nil)}, want},
		"gz":          {Input{Format: Gzip, Data: gzipped(t, "", []byte("hello")), Name: "log.txt.GZ"}, []string{"log.txt = hello"}},
		"named":       {Input{Format: Gzip, Data: gzipped(t, "../real.csv", []byte("a;b")), Name: "x.gz"}, []string{"real.csv = a;b"}},
		"two streams": {Input{Format: Gzip, Data: append(gzipped(t, "", []byte("a")), gzipped(t, "", []byte("b"))...), Name: "x"}, []string{"x = ab"}},
		"bz2": {Input{Format: Bzip2, Data: []byte("BZh91AY&SY\x19\x31e=\x00\x00\x00\x81\x00\x02D\xa0\x00!\x9ah3M\x07\x33\x8b\xb9\"\x9c(H\x0c\x98\xb2\x9e\x80"),
			Name: "y.bz2"}, []string{"y = hello"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.in.Expired = never
			is.New(t).Equal(walked(t, tt.in), tt.want)
		})
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	at := time.Date(2026, 1, 2, 10, 3, 0, 0, time.UTC)
	data := packZip(t, file{name: "b/a.txt", body: "one", change: func(h *zip.FileHeader) { h.Modified = at }},
		file{name: "evil\u202egpj.exe", body: "x", change: func(h *zip.FileHeader) { h.Flags |= 1 }})
	text, err := List(Input{Format: Zip, Data: data, Expired: never})
	is.NoErr(err)
	is.Equal(string(text), "[zip archive of 2 files, 4 bytes unpacked: name, size, time; a file in it has the path ARCHIVE/NAME]\n"+
		"b/a.txt\t3\t2026-01-02 10:03\nevil\\u202egpj.exe\t1\t-\tencrypted\n")

	many := make([]file, maxListed+5)
	for i := range many {
		many[i].name = "f"
	}
	text, err = List(Input{Format: Zip, Data: packZip(t, many...), Expired: never})
	is.NoErr(err)
	is.True(strings.HasSuffix(string(text), "[5 more files are not listed]\n"))
	is.True(strings.Contains(string(text), "\nf (10000)\t0"))

	bomb := packZip(t, file{name: "bomb", body: strings.Repeat("\x00", 10<<20)})
	text, err = List(Input{Format: Zip, Data: bomb, Expired: never})
	is.NoErr(err)
	is.True(strings.Contains(string(text), "[it claims to unpack to 1"))

	cut := packTar(t, tar.Header{Name: "a", Typeflag: tar.TypeReg}, tar.Header{Name: "b", Typeflag: tar.TypeReg})
	text, err = List(Input{Format: Tar, Data: cut[:1100], Expired: never})
	is.NoErr(err)
	is.True(strings.Contains(string(text), "a\t1\t") && strings.Contains(string(text), "[the archive ends here for this reader: it is damaged]"))
	for _, f := range []Format{Zip, Tar, Gzip, Bzip2, Zstd} {
		_, err := List(Input{Format: f, Data: []byte("PK\x03\x04 nothing"), Expired: never})
		is.True(errors.Is(err, errDamaged))
	}
}

// TestExpired reads a bomb whose time expires.
func TestExpired(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	for _, in := range []Input{{Format: Gzip, Data: gzipped(t, "", make([]byte, 64<<20))},
		{Format: Zip, Data: packZip(t, file{name: "f", body: strings.Repeat("\x00", 64<<20)})}} {
		in.Expired = func() bool { return true }
		err := Walk(in, func(_ Member, r io.Reader) error {
			n, err := io.Copy(io.Discard, r)
			ordertest.Below(is, n, 2<<20) // it ended early
			return err
		})
		is.True(errors.Is(err, errExpired))
	}
}

func FuzzWalk(f *testing.F) {
	f.Add(packZip(f, file{name: "a", body: "x"}))
	f.Add(packTar(f, tar.Header{Name: "a", Typeflag: tar.TypeReg}))
	f.Add(gzipped(f, "n", []byte("hello")))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, format := range []Format{Zip, Tar, Gzip, Bzip2, Zstd} {
			reads := 0
			in := Input{Format: format, Name: "f", Data: data, Expired: func() bool { reads++; return reads > 20 }}
			names := map[string]bool{}
			_ = Walk(in, func(m Member, r io.Reader) error {
				if names[m.Name] || m.Name == "" || strings.HasPrefix(m.Name, "/") || strings.Contains("/"+m.Name+"/", "/../") {
					t.Fatalf("%q", m.Name)
				}
				names[m.Name] = true
				_, _ = io.Copy(io.Discard, io.LimitReader(r, 1<<20))
				return nil
			})
		}
	})
}
