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

// Limits of attached files that are sent to the model. For larger files, and files of
// other kinds, the model gets only a note with the path.
const (
	maxInlineText  = 256 << 10 // bytes of a text file
	maxInlineImage = 5 << 20
	maxInlinePDF   = 20 << 20
	maxInlineTotal = 24 << 20 // of all files of a request
)

// A fileKind is how a file is sent to a provider.
type fileKind int

const (
	fileNote  fileKind = iota // a text with its name and path
	fileText                  // a text with its content
	fileImage                 // its bytes
	filePDF                   // its bytes
)

// An attachment is a file as it is sent in a request.
type attachment struct {
	kind      fileKind
	mediaType string
	name      string
	text      string // of a note or a text file
	data      []byte // of an image or a PDF
}

// An attacher converts the files of one request.
type attacher struct {
	left     int64 // bytes that may still be sent
	noImages bool  // the model accepts no images
	noPDFs   bool  // the model accepts no PDFs
}

// attach converts a file to the best kind that the model accepts.
func (a *attacher) attach(p Part) attachment {
	mediaType, _, _ := strings.Cut(strings.ToLower(p.MediaType), ";")
	at := attachment{mediaType: strings.TrimSpace(mediaType), name: p.Path}
	kind, limit := kindOf(at.mediaType)
	// The model can still read the file of a note with its tools.
	switch {
	case kind == fileImage && a.noImages, kind == filePDF && a.noPDFs:
		kind = fileNote
	case p.Open == nil || p.Size > limit || p.Size > a.left:
		kind = fileNote
	}
	var data []byte
	if kind != fileNote {
		var err error
		data, err = p.Open()
		// The file may have grown since its size was noted.
		if err != nil || int64(len(data)) > min(limit, a.left) || kind == fileText && !utf8.Valid(data) {
			kind = fileNote
		}
	}
	if kind == fileNote {
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

// kindOf returns how a file of a media type is sent, and up to what size.
func kindOf(mediaType string) (fileKind, int64) {
	// Anthropic and OpenAI document these four formats of images.
	switch mediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return fileImage, maxInlineImage
	case "application/pdf":
		return filePDF, maxInlinePDF
	case "application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml",
		"application/javascript", "application/sql", "application/x-ndjson", "application/x-sh", "image/svg+xml":
		return fileText, maxInlineText
	}
	if strings.HasPrefix(mediaType, "text/") || strings.HasSuffix(mediaType, "+json") ||
		strings.HasSuffix(mediaType, "+xml") {
		return fileText, maxInlineText
	}
	return fileNote, 0
}

// note returns the text for a file whose content the model must fetch by a tool.
func note(p Part) string {
	if p.Path == "" { // an image that a tool has returned
		return fmt.Sprintf("A file (%s, %d bytes) is not shown here.", p.MediaType, p.Size)
	}
	return fmt.Sprintf("File %s (%s, %d bytes) lies in the workspace; its content is not shown here.",
		p.Path, p.MediaType, p.Size)
}

// argumentsObject returns the arguments of a tool call as a JSON object, because
// providers accept nothing else. Invalid arguments become a field of that object, whose
// name shows the model what is wrong.
func argumentsObject(input json.RawMessage) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(input, &object) == nil && object != nil {
		return input
	}
	text := string(input)
	_ = json.Unmarshal(input, &text) // text is unchanged unless the input is a JSON string
	wrapped, err := json.Marshal(map[string]string{"invalid_arguments": text})
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return wrapped
}

// usedCallIDs returns the call ids of a conversation.
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

// freshCallID returns the provider's id if it is new in the conversation, else a
// generated one. Some servers demand ids of nine letters and digits.
func freshCallID(chosen string, used map[string]bool) string {
	id := chosen
	for n := len(used); id == "" || used[id]; n++ {
		id = fmt.Sprintf("call%05d", n)
	}
	used[id] = true
	return id
}

// safeName returns an id or a name that providers accept: it has only letters,
// digits, - and _, up to limit of them. Equal words have equal results.
func safeName(word string, limit int) string {
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
	// The hash keeps different words different.
	return kept[:min(len(kept), limit-9)] + "_" + hex.EncodeToString(sum[:4])
}

var plainPattern = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// schemaInstruction returns the instruction to answer in the form of a schema.
func schemaInstruction(schema json.RawMessage) string {
	return "Your final answer must be one JSON value that meets the following JSON Schema, " +
		"with nothing before or after it:\n" + string(schema)
}

// system returns the system prompt: preamble, instructions and more.
func system(req *Request, more ...string) string {
	var parts []string
	for _, s := range append([]string{req.Preamble, req.Instructions}, more...) {
		if strings.TrimSpace(s) != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "\n\n")
}

// providerMeta is the Meta of a part. Only the model of the same name gets it back.
type providerMeta struct {
	Model string          `json:"model"` // Name of the model that made the part
	Data  json.RawMessage `json:"data"`
}

// sealMeta returns the Meta of a part.
func sealMeta(name string, data any) json.RawMessage {
	raw, err := json.Marshal(data)
	if err != nil {
		return nil
	}
	sealed, _ := json.Marshal(providerMeta{name, raw}) // strings and valid JSON always marshal
	return sealed
}

// openMeta reads a part's Meta into data. It reports false if another model made the
// part, because providers refuse the signatures of other models.
func openMeta(name string, meta json.RawMessage, data any) bool {
	var sealed providerMeta
	return json.Unmarshal(meta, &sealed) == nil && sealed.Model == name && json.Unmarshal(sealed.Data, data) == nil
}
