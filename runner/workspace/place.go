package workspace

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
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

// Place copies r into a new file in the root of the workspace, and returns its path. PlaceName
// makes its name out of the given one. If that name exists, " (2)", " (3)" and so on are added
// before its extension: concurrent calls get different names. Place rejects a file of more than
// limit bytes. If limit is 0 or exceeds Limits.FileSize, then Limits.FileSize is the limit. The
// name exists only when the file is complete and on the disk. Place wraps the errors of r.
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
	p, err := w.link(temp, name)
	if errors.Is(err, errNoLinks) {
		p, err = w.rename(temp, name)
	} else {
		err = errors.Join(err, w.root.Remove(temp))
	}
	if err != nil {
		return "", err
	}
	return p, w.sync(".")
}

// errNoLinks means that a file cannot have a second name on this file system.
var errNoLinks = errors.New("no hard links")

// link gives a complete file the first free variant of a name. It is atomic, so concurrent
// calls get different names, and a crash leaves no empty file.
func (w *Workspace) link(temp, name string) (string, error) {
	for n := 1; n <= w.limits.Files+1; n++ {
		p := numbered(name, n)
		err := w.root.Link(temp, p)
		switch {
		case err == nil:
			return p, nil
		case errors.Is(err, errors.ErrUnsupported), errors.Is(err, fs.ErrPermission):
			return "", errNoLinks
		case !errors.Is(err, fs.ErrExist):
			return "", err
		}
	}
	return "", errAllTaken(name)
}

// rename is like link, for file systems without hard links.
func (w *Workspace) rename(temp, name string) (string, error) {
	p, err := w.claim(name)
	if err != nil {
		return "", errors.Join(err, w.root.Remove(temp))
	}
	// The rename replaces the empty file of claim, so readers never see an incomplete file.
	if err := w.root.Rename(temp, p); err != nil {
		return "", errors.Join(err, w.root.Remove(temp), w.root.Remove(p))
	}
	return p, nil
}

func errAllTaken(name string) error {
	return Errorf(TooManyFiles, "every variant of the name %q is taken", name)
}

// maxCopies limits how many variants of a name Copies checks.
const maxCopies = 20

// Copies returns the paths of files in the root that Place may have made of this name and
// content. It checks only the first variants of the name.
func (w *Workspace) Copies(name string, size int64, sum string) (paths []string, err error) {
	name = PlaceName(name)
	for n := 1; n <= maxCopies; n++ {
		p := numbered(name, n)
		same, err := w.holds(p, size, sum)
		switch {
		case IsNotFound(err): // Place leaves no gaps between the variants
			return paths, nil
		case err != nil:
			if _, refused := errors.AsType[*Error](err); refused {
				continue // a folder, or a link to elsewhere
			}
			return nil, err
		case same:
			paths = append(paths, p)
		}
	}
	return paths, nil
}

// holds reports whether the file at p has this size and this checksum.
func (w *Workspace) holds(p string, size int64, sum string) (bool, error) {
	if e, err := w.Stat(p); err != nil || e.Size != size {
		return false, err // usually decides without reading the file
	}
	f, err := w.Open(p)
	if err != nil {
		return false, err
	}
	defer f.Close()
	h := sha256.New()
	// A command may extend the file meanwhile, so read one byte more than size.
	if _, err := io.Copy(h, io.LimitReader(f, size+1)); err != nil {
		return false, explain(p, err)
	}
	return hex.EncodeToString(h.Sum(nil)) == sum, nil
}

// claim creates an empty file with the first free variant of a name. O_EXCL ensures that only
// one of several concurrent calls gets a variant.
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
	return "", errAllTaken(name)
}

// A meter copies the bytes that are written to it, up to a limit, and reserves space for them.
type meter struct {
	w     *Workspace
	to    io.Writer
	name  string
	limit int64 // maximum bytes in total
	size  int64 // bytes reserved so far
}

// Write writes all of b or nothing.
func (m *meter) Write(b []byte) (int, error) {
	n := int64(len(b))
	if m.size+n > m.limit {
		return 0, Errorf(TooLarge, "%q is larger than %d bytes", m.name, m.limit)
	}
	if err := m.w.reserve(0, n); err != nil {
		return 0, err
	}
	m.size += n // before the write: if the write fails, Place releases them
	return m.to.Write(b)
}

const (
	// maxPlaced is the maximum length of a placed file's name, in bytes. So a program that
	// copies the file can still extend the name.
	maxPlaced = 200

	// maxExtension is the maximum length of an extension with its dot, in bytes. A longer one
	// is probably a sentence with a dot in it.
	maxExtension = 20

	// unnamed is the name of a placed file if the given name has no usable characters.
	unnamed = "attachment"
)

// PlaceName converts an untrusted file name into one that is safe on every common system. It
// keeps the part after the last slash or backslash, in the composed form (NFC) that keyboards
// produce. It removes control characters, marks that change the direction of text, and leading
// dots. It replaces characters and names that some system forbids or reserves. The result has 1
// to 200 bytes.
func PlaceName(name string) string {
	name = strings.ToValidUTF8(name, "_")
	name = strings.TrimRight(name, `/\`)
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = norm.NFC.String(strings.Map(placeable, name))
	name = strings.TrimFunc(name, isEdge)
	if strings.HasPrefix(name, "-") {
		name = "_" + name[1:] // otherwise "cat *" would interpret the name as an option
	}
	if isReserved(name) {
		name = "_" + name
	}
	return numbered(cmp.Or(name, unnamed), 1)
}

// placeable returns the replacement for a character of a placed file's name, -1 to remove it.
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

// isEdge reports whether a name must not begin or end with r. Leading dots hide a file, and
// Windows removes trailing dots and spaces.
func isEdge(r rune) bool { return r == '.' || unicode.IsSpace(r) }

// isReserved reports whether a name is a device on Windows, which ignores the extension.
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

// numbered returns the nth variant of a name, cut to maxPlaced bytes.
func numbered(name string, n int) string {
	ext := path.Ext(name)
	if len(ext) > maxExtension {
		name = strings.TrimRightFunc(Cut(name, maxPlaced), isEdge)
		ext = path.Ext(name)
	}
	if len(ext) > maxExtension {
		ext = ""
	}
	stem := strings.TrimSuffix(name, ext)
	if n > 1 {
		ext = fmt.Sprintf(" (%d)%s", n, ext)
	}
	return strings.TrimRightFunc(Cut(stem, maxPlaced-len(ext)), isEdge) + ext
}

// Cut returns the longest beginning of a text that has at most n bytes and ends with a complete
// character.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
