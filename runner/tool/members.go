package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"journeyman/runner/sandbox"
	"journeyman/runner/tool/archive"
	"journeyman/runner/tool/charset"
	"journeyman/runner/tool/mailfile"
	"journeyman/store/visible"
)

// Limits of containers.
const (
	maxLevels    = 4        // containers in containers
	maxMember    = 15 << 20 // bytes of a member, less than the output of a filter
	maxSuggested = 20       // names of members in an error
)

// Names of the filters of containers.
const (
	memberFilter   = "member"
	sectionsFilter = "sections"
)

// within makes the function members of a kind that is an archive.
func within(format archive.Format) func([]byte, selection, func() bool, func(archive.Member, io.Reader) error) error {
	return func(document []byte, s selection, expired func() bool, visit func(archive.Member, io.Reader) error) error {
		return archive.Walk(archive.Input{Format: format, Name: s.Name, Data: document, Expired: expired}, visit)
	}
}

// listed makes the function read of a kind that is an archive.
func listed(format archive.Format) func([]byte, selection, func() bool) ([]byte, error) {
	return func(document []byte, s selection, expired func() bool) ([]byte, error) {
		return archive.List(archive.Input{Format: format, Name: s.Name, Data: document, Expired: expired})
	}
}

// partsOfMail is the function members of the kinds of mails.
func partsOfMail(document []byte, _ selection, expired func() bool, visit func(archive.Member, io.Reader) error) error {
	parts, err := mailfile.Members(document, expired)
	for _, part := range parts {
		m := archive.Member{Name: part.Name, Size: int64(len(part.Content))}
		if err := visit(m, bytes.NewReader(part.Content)); err != nil {
			return err
		}
	}
	return err
}

// compressionOf returns the format of a compressed file.
func compressionOf(document []byte) archive.Format {
	switch {
	case bytes.HasPrefix(document, []byte("\x1f\x8b")):
		return archive.Gzip
	case bytes.HasPrefix(document, []byte("BZh")):
		return archive.Bzip2
	}
	return archive.Zstd
}

func compressedMembers(document []byte, s selection, expired func() bool,
	visit func(archive.Member, io.Reader) error) error {
	return within(compressionOf(document))(document, s, expired, visit)
}

// unpackedText returns the text of a compressed file, or the list of an archive that is compressed as a whole.
func unpackedText(document []byte, s selection, expired func() bool) ([]byte, error) {
	var body []byte
	count, name := 0, ""
	err := compressedMembers(document, s, expired, func(m archive.Member, r io.Reader) (err error) {
		if count++; count > 1 || m.Size >= 0 { // a member of a tar archive has a size
			return errStop
		}
		name = m.Name
		body, err = io.ReadAll(io.LimitReader(r, maxMember+1))
		return err
	})
	if errors.Is(err, errStop) || err == nil && count == 0 {
		return listed(compressionOf(document))(document, s, expired)
	}
	if err != nil {
		return nil, err
	}
	note := ""
	if len(body) > maxMember {
		note = fmt.Sprintf("[the rest beyond %d bytes is not read: unpack it in the shell]\n", maxMember)
		body = body[:maxMember]
	}
	if text, ok := plainText(name, body); ok {
		return fmt.Appendf(nil, "[part %q]\n%s\n%s", visible.Name(name), text, note), nil
	}
	inside := visible.Name(name)
	return fmt.Appendf(nil, "[compressed file of %q, %d bytes, which is no text: its path is %s/%s]\n%s", inside, len(body),
		visible.Name(s.Name), inside, note), nil
}

// errStop ends a visit of members early.
var errStop = errors.New("stop")

// plainText returns the text of a file that is no document. ok is false for other files.
func plainText(name string, body []byte) (text string, ok bool) {
	head := body[:min(len(body), headSize)]
	if !kindOfFile(name, head).isText() {
		return "", false
	}
	if len(body) > 0 && encodingOf(head) == "" && charset.Wide(head) == "" {
		return "", false
	}
	return charset.Text(body, ""), true
}

// readMember is the filter for Documents.member. Its output is the name of the member as a line of JSON, and the
// bytes of the member.
func readMember(in []byte) ([]byte, error) {
	q, document, err := parseRequest(in)
	if err != nil {
		return nil, err
	}
	name, body, err := q.kind().find(document, q.selection, q.Member, 1)
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(name)
	return append(append(line, '\n'), body...), err
}

// find returns the member at a path, which may lead through further containers.
func (k documentKind) find(document []byte, s selection, p string, level int) (name string, body []byte, err error) {
	if level > maxLevels {
		return "", nil, fmt.Errorf("files in archives are read up to %d archives deep: unpack the outer ones first",
			maxLevels)
	}
	var found foundMember
	var names []string
	err = k.refined(document).visit(document, s, func(m archive.Member, r io.Reader) error {
		names = append(names, m.Name)
		// The longest name counts, because an archive may have a file and a folder of the same name.
		if leadsTo(m.Name, p) && len(m.Name) > len(found.name) {
			found = readFound(m.Name, r)
		}
		if m.Name == p {
			return errStop
		}
		return nil
	})
	switch {
	case found.name == "" && err != nil:
		return "", nil, err
	case found.name == "":
		return "", nil, noMember(names, s.Name, p)
	case found.err != nil:
		return "", nil, found.err
	}
	name, body = found.name, found.body
	if name == p {
		return path.Base(name), body, nil
	}
	inner := kindOfFile(name, body[:min(len(body), headSize)])
	rest := strings.TrimPrefix(p, name+"/")
	name, body, err = inner.find(body, selection{Name: path.Base(name)}, rest, level+1)
	if errors.Is(err, errNoContainer) {
		err = fmt.Errorf("%q in it is no archive and no other file with files in it", strings.TrimSuffix(p, "/"+rest))
	}
	return name, body, err
}

// leadsTo reports whether a name is p or a folder above p.
func leadsTo(name, p string) bool { return name == p || strings.HasPrefix(p, name+"/") }

// A foundMember is a member with its bytes, or the reason why they cannot be read.
type foundMember struct {
	name string
	body []byte
	err  error
}

func readFound(name string, r io.Reader) foundMember {
	body, err := io.ReadAll(io.LimitReader(r, maxMember+1))
	switch {
	case err != nil:
		err = fmt.Errorf("%q in it cannot be read: %w", visible.Name(name), err)
	case len(body) > maxMember:
		err = fmt.Errorf("%q in it has more than %d bytes: unpack it in the shell", visible.Name(name), maxMember)
	}
	return foundMember{name, body, err}
}

// noMember returns the error for a path that is no member of a container with these names.
func noMember(names []string, container, p string) error {
	below, what := []string(nil), fmt.Sprintf("it has no file %q", visible.Name(p))
	for _, name := range names {
		if strings.HasPrefix(name, p+"/") {
			below = append(below, name)
			what = fmt.Sprintf("%q is a folder in it", visible.Name(p))
		}
	}
	if len(below) == 0 {
		below = names
	}
	if len(below) == 0 {
		return errors.New("it contains no files")
	}
	var shown []string
	for _, name := range below[:min(len(below), maxSuggested)] {
		shown = append(shown, visible.Name(name))
	}
	more := ""
	if n := len(below) - len(shown); n > 0 {
		more = fmt.Sprintf(" and %d more, which read_file of %s lists", n, visible.Name(container))
	}
	return fmt.Errorf("%s; it has: %s%s", what, strings.Join(shown, ", "), more)
}

// A section is a text that search_files searches: the text of a document, or of a member of a container.
type section struct {
	Path string `json:"path"` // below the document; "" for the document itself
	Size int    `json:"size"` // bytes of the text that follows
	Left int    `json:"left"` // in the last section: members that were not read

	text string
}

// A sectioner collects the sections of a document.
type sectioner struct {
	out  bytes.Buffer
	left int
}

// readSections is the filter for Documents.sections. Its output are sections, each as a line of JSON and its text.
func readSections(in []byte) ([]byte, error) {
	q, document, err := parseRequest(in)
	if err != nil {
		return nil, err
	}
	var w sectioner
	if err := w.document(q.kind().refined(document), document, q.selection, "", 1); err != nil {
		return nil, err
	}
	// The closing section is small, so it always fits in the output of a filter.
	last, err := json.Marshal(section{Left: w.left})
	return append(w.out.Bytes(), last...), err
}

func (w *sectioner) add(s section, text []byte) {
	s.Size = len(text)
	line, err := json.Marshal(s)
	if err != nil || w.out.Len()+len(line)+len(text) > maxMember {
		w.left++
		return
	}
	w.out.Write(append(line, '\n'))
	w.out.Write(text)
}

// document adds the text of a document, or the texts of the members of an archive.
func (w *sectioner) document(k documentKind, document []byte, s selection, at string, level int) error {
	if !k.packed {
		text, err := k.read(document, s, sandbox.FilterExpired)
		if err == nil {
			w.add(section{Path: at}, text)
		}
		if err != nil || k.members == nil {
			return err
		}
	}
	err := k.visit(document, s, func(m archive.Member, r io.Reader) error {
		if sandbox.FilterExpired() || w.out.Len() > maxMember {
			w.left++
			return nil
		}
		w.member(m, r, path.Join(at, m.Name), level)
		return nil
	})
	if w.out.Len() > 0 || w.left > 0 {
		return nil // a damaged end costs only the members behind it
	}
	return err
}

// member adds the text of a member. A member that is no text, or damaged, counts as left.
func (w *sectioner) member(m archive.Member, r io.Reader, at string, level int) {
	// The parser of another document may panic.
	defer func() {
		if recover() != nil {
			w.left++
		}
	}()
	body, err := io.ReadAll(io.LimitReader(r, maxMember+1))
	if err != nil || len(body) > maxMember {
		w.left++
		return
	}
	if text, ok := plainText(m.Name, body); ok {
		w.add(section{Path: at}, []byte(strings.ToValidUTF8(text, "")))
		return
	}
	k := kindOfFile(m.Name, body[:min(len(body), headSize)]).refined(body)
	if k.filter == "" || level >= maxLevels {
		w.left++
		return
	}
	if err := w.document(k, body, selection{Name: path.Base(m.Name)}, at, level+1); err != nil {
		w.left++
	}
}

// parseSections is the inverse of readSections.
func parseSections(in []byte) (all []section, left int, err error) {
	for len(in) > 0 {
		line, rest, _ := bytes.Cut(in, []byte("\n"))
		var s section
		if err := json.Unmarshal(line, &s); err != nil {
			return nil, 0, fmt.Errorf("read sections: %w", err)
		}
		if s.Size < 0 || s.Size > len(rest) {
			return nil, 0, errors.New("read sections: the output is cut")
		}
		s.text, in = string(rest[:s.Size]), rest[s.Size:]
		left += s.Left
		all = append(all, s)
	}
	return all[:max(len(all)-1, 0)], left, nil // the last one only contains the number
}
