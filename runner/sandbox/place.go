package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Place puts what r gives into the root of the workspace as a new file and tells
// its path. The name is what PlaceName makes of the one given, with " (2)", " (3)"
// and so on before its extension where that is taken; no other call gets the same.
// At most limit bytes are taken, or Limits.FileSize if that is less or limit is 0;
// with more to come, the whole is refused. The file is on the disk, and complete,
// before its name can be seen. An error of r is returned wrapped.
func (w *Workspace) Place(name string, r io.Reader, limit int64) (string, error) {
	if limit <= 0 || limit > w.limits.FileSize {
		limit = w.limits.FileSize
	}
	name = PlaceName(name)
	if err := w.reserve(1, 0); err != nil {
		return "", err
	}
	m := &meter{w: w, name: name, limit: limit}
	p, err := w.place(name, r, m)
	if err != nil {
		w.release(1, m.size)
		return "", fmt.Errorf("place %q: %w", name, err)
	}
	return p, nil
}

func (w *Workspace) place(name string, r io.Reader, m *meter) (string, error) {
	temp, err := w.scratch(".", 0o644, func(f io.Writer) error {
		m.to = f
		_, err := io.Copy(m, r)
		return err
	})
	if err != nil {
		return "", err
	}
	p, err := w.claim(name)
	if err != nil {
		return "", errors.Join(err, w.root.Remove(temp))
	}
	if err := w.root.Rename(temp, p); err != nil {
		return "", errors.Join(err, w.root.Remove(temp), w.root.Remove(p))
	}
	return p, w.sync(".")
}

// claim makes an empty file under the first free variant of name. That it must be
// new decides between claims made at the same time.
func (w *Workspace) claim(name string) (string, error) {
	for n := 1; n <= w.limits.Files+1; n++ {
		p := numbered(name, n)
		f, err := w.root.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err == nil {
			return p, f.Close()
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	return "", errorf(TooManyFiles, "every variant of the name %q is taken", name)
}

// A meter passes on what is written to it, within a limit and with room reserved.
type meter struct {
	w     *Workspace
	to    io.Writer
	name  string
	limit int64 // most bytes in all
	size  int64 // bytes reserved so far
}

// Write writes all of b or nothing.
func (m *meter) Write(b []byte) (int, error) {
	n := int64(len(b))
	if m.size+n > m.limit {
		return 0, errorf(TooLarge, "%q is larger than %d bytes", m.name, m.limit)
	}
	if err := m.w.reserve(0, n); err != nil {
		return 0, err
	}
	m.size += n
	return m.to.Write(b)
}

// maxPlaced is how long, in bytes, the name of a placed file may be. It leaves
// those who copy the file elsewhere some room to add to it.
const maxPlaced = 200

// maxExtension is how long an extension may be, in bytes with its dot. What is
// longer is taken for a sentence with a dot in it.
const maxExtension = 20

// unnamed is the name of a placed file of whose own nothing is left.
const unnamed = "attachment"

// PlaceName makes a file name, safe on every common system, of one that a stranger
// chose: the part after the last slash or backslash, composed (NFC) so that it
// equals what people type, without control characters, marks that turn the
// direction of text, leading dots, or what some system forbids or reserves, and
// at most 200 bytes long. It never gives an empty name.
func PlaceName(name string) string {
	name = strings.ToValidUTF8(name, "_")
	name = strings.TrimRight(name, `/\`)
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = norm.NFC.String(strings.Map(placeable, name))
	name = strings.TrimFunc(name, isEdge)
	if strings.HasPrefix(name, "-") {
		name = "_" + name[1:] // "cat *" must not take a file for an option
	}
	if isReserved(name) {
		name = "_" + name
	}
	if name == "" {
		name = unnamed
	}
	return numbered(name, 1)
}

// placeable is what a rune becomes in the name of a placed file, -1 for nothing.
func placeable(r rune) rune {
	switch {
	case strings.ContainsRune(`<>:"|?*`, r):
		return '_'
	case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\ufeff', r == '\u200b':
		return -1
	case unicode.IsSpace(r):
		return ' '
	}
	return r
}

// isEdge holds for what a name may neither begin nor end with: leading dots hide a
// file, and Windows drops trailing dots and spaces.
func isEdge(r rune) bool { return r == '.' || unicode.IsSpace(r) }

// isReserved says whether Windows takes name for a device, which it does whatever
// the extension.
func isReserved(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	stem = strings.ToUpper(strings.TrimRight(stem, " "))
	if slices.Contains([]string{"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"}, stem) {
		return true
	}
	port, isPort := strings.CutPrefix(stem, "COM")
	if !isPort {
		port, isPort = strings.CutPrefix(stem, "LPT")
	}
	return isPort && utf8.RuneCountInString(port) == 1 && strings.Contains("0123456789¹²³", port)
}

// numbered is the nth variant of name, cut so that it stays within maxPlaced.
func numbered(name string, n int) string {
	ext := path.Ext(name)
	if len(ext) > maxExtension {
		name = strings.TrimRightFunc(cut(name, maxPlaced), isEdge)
		ext = path.Ext(name)
	}
	if len(ext) > maxExtension {
		ext = ""
	}
	stem := strings.TrimSuffix(name, ext)
	if n > 1 {
		ext = fmt.Sprintf(" (%d)%s", n, ext)
	}
	return strings.TrimRightFunc(cut(stem, maxPlaced-len(ext)), isEdge) + ext
}

// cut is the longest beginning of s that has at most n bytes and ends no rune in
// its middle.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
