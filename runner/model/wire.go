package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// What of the files attached to a conversation is put before the model. Beyond
// the limits, and for other kinds of files, it is told where the file is.
const (
	maxInlineText  = 256 << 10 // bytes of a text file
	maxInlineImage = 5 << 20
	maxInlinePDF   = 20 << 20
	maxInlineTotal = 24 << 20 // of all the files of a request
)

// A fileKind is how a provider can be given a file.
type fileKind int

const (
	fileNote  fileKind = iota // only named, in a text
	fileText                  // its text, in a text
	fileImage                 // its bytes
	filePDF                   // its bytes
)

// An attachment is a file made ready for a request.
type attachment struct {
	kind      fileKind
	mediaType string
	name      string
	text      string // of a note or a text file
	data      []byte // of an image or a PDF
}

// An attacher makes the files of one request ready.
type attacher struct {
	left      int64 // bytes
	blind     bool  // the model sees no images
	unlearned bool  // the model reads no PDFs
}

// attach reads a file as the model can take it.
func (a *attacher) attach(p Part) attachment {
	mediaType, _, _ := strings.Cut(strings.ToLower(p.MediaType), ";")
	at := attachment{mediaType: strings.TrimSpace(mediaType), name: p.Path}
	kind, limit := kindOf(at.mediaType)
	switch {
	case kind == fileImage && a.blind, kind == filePDF && a.unlearned:
		kind = fileNote
	case p.Open == nil || p.Size > limit || p.Size > a.left:
		kind = fileNote
	}
	if kind == fileNote {
		at.text = note(p)
		return at
	}
	data, err := p.Open()
	if err != nil || int64(len(data)) > limit || int64(len(data)) > a.left {
		at.text = note(p)
		return at
	}
	if kind == fileText && !utf8.Valid(data) {
		at.text = note(p)
		return at
	}
	a.left -= int64(len(data))
	at.kind, at.data = kind, data
	if kind == fileText {
		at.text, at.data = "File "+p.Path+":\n\n"+string(data), nil
	}
	return at
}

// kindOf says how a file of a media type can be given, and up to what size.
func kindOf(mediaType string) (fileKind, int64) {
	switch mediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return fileImage, maxInlineImage
	case "application/pdf":
		return filePDF, maxInlinePDF
	case "application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml",
		"application/javascript", "application/sql", "application/x-ndjson", "application/x-sh", "image/svg+xml":
		return fileText, maxInlineText
	}
	if strings.HasPrefix(mediaType, "text/") || strings.HasSuffix(mediaType, "+json") || strings.HasSuffix(mediaType, "+xml") {
		return fileText, maxInlineText
	}
	return fileNote, 0
}

// note names a file whose content the model has to fetch by a tool.
func note(p Part) string {
	return fmt.Sprintf("File %s (%s, %d bytes) lies in the workspace; its content is not shown here.", p.Path, p.MediaType, p.Size)
}

// argumentsObject gives the arguments of a tool call as a JSON object, which is
// all that providers take back: a model that wrote something else reads it under
// a telling name.
func argumentsObject(input json.RawMessage) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(input, &object) == nil && object != nil {
		return input
	}
	text := string(input)
	_ = json.Unmarshal(input, &text) // a string is unwrapped
	wrapped, err := json.Marshal(map[string]string{"invalid_arguments": text})
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return wrapped
}

// usedCallIDs are the call ids of a conversation.
func usedCallIDs(req *Request) map[string]bool {
	used := map[string]bool{}
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if p.Type == PartToolCall {
				used[p.CallID] = true
			}
		}
	}
	return used
}

// freshCallID gives the id that the provider chose if it is new in the
// conversation, else one of ours, of nine letters and digits, as some servers
// insist on.
func freshCallID(chosen string, used map[string]bool) string {
	id := chosen
	for n := len(used); id == "" || used[id]; n++ {
		id = fmt.Sprintf("call%05d", n)
	}
	used[id] = true
	return id
}

// plainWord makes an id or a name fit for a provider that takes only letters,
// digits, - and _, up to limit of them. The same word always gives the same.
func plainWord(word string, limit int) string {
	if len(word) <= limit && plainPattern.MatchString(word) {
		return word
	}
	sum := sha256.Sum256([]byte(word))
	kept := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, word)
	return kept[:min(len(kept), limit-9)] + "_" + hex.EncodeToString(sum[:4])
}

var plainPattern = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// schemaWords tells a model in words what its answer must look like.
func schemaWords(schema json.RawMessage) string {
	return "Your final answer must be one JSON value that meets the following JSON Schema, with nothing before or after it:\n" + string(schema)
}

// system joins what stands before the conversation.
func system(req *Request, more ...string) string {
	var parts []string
	for _, s := range append([]string{req.Preamble, req.Instructions}, more...) {
		if strings.TrimSpace(s) != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "\n\n")
}

// providerMeta is the Meta of a part: what the model of the same name wants back.
type providerMeta struct {
	Model string          `json:"model"` // Name of the model that made the part
	Data  json.RawMessage `json:"data"`
}

// sealMeta makes a part's Meta.
func sealMeta(name string, data any) json.RawMessage {
	raw, err := json.Marshal(data)
	if err != nil {
		return nil
	}
	sealed, err := json.Marshal(providerMeta{name, raw})
	if err != nil {
		return nil
	}
	return sealed
}

// openMeta reads a part's Meta into data if the same model made it: a signature
// of another is refused by providers.
func openMeta(name string, meta json.RawMessage, data any) bool {
	var sealed providerMeta
	return json.Unmarshal(meta, &sealed) == nil && sealed.Model == name && json.Unmarshal(sealed.Data, data) == nil
}
