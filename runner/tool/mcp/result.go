package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"journeyman/runner/tool"
	"journeyman/runner/workspace"
)

// Limits of a result.
const (
	keptText  = 20 << 10 // bytes at the beginning of a text, and at its end
	keptFiles = 20       // attachments
	keptLinks = 50       // linked resources
)

// A result is the result of a call. It has text or structured content, never both.
type result struct {
	text       string
	structured json.RawMessage // nil if there is none
	links      []string        // descriptions of linked resources, one line each
	files      []attachment
	failed     bool // the server reports that the call has failed
	later      bool // the result will come from a turn that the call has started
}

// An attachment is an image, audio or other file in a result.
type attachment struct {
	mediaType string
	data      []byte
}

// readResult returns the parts of a result that a model can use.
func readResult(r *sdk.CallToolResult) (result, error) {
	if r.NeedsInput() {
		// open declares that this client cannot ask a person, but a server may ignore that.
		return result{}, tool.Errorf("the tool asks a person for input, and nobody answers here")
	}
	out := result{failed: r.IsError, later: r.Meta[tool.ChildMeta] != nil}
	var texts []string
	for _, c := range r.Content {
		switch c := c.(type) {
		case *sdk.TextContent:
			texts = append(texts, c.Text)
		case *sdk.ImageContent:
			out.files = append(out.files, attachment{c.MIMEType, c.Data})
		case *sdk.AudioContent:
			out.files = append(out.files, attachment{c.MIMEType, c.Data})
		case *sdk.ResourceLink:
			out.link(c)
		case *sdk.EmbeddedResource:
			texts = out.embed(c.Resource, texts)
		}
	}
	out.text = strings.Join(texts, "\n\n")
	if r.StructuredContent == nil {
		return out, nil
	}
	raw, err := json.Marshal(r.StructuredContent)
	if err != nil {
		return out, fmt.Errorf("encode structured content: %w", err)
	}
	// By the MCP specification, the text should repeat the structured content. So keep only one
	// of them. The text of a failure contains the reason.
	if !(out.failed && out.text != "") && !containsValues(out.text, r.StructuredContent) {
		out.text, out.structured = "", raw
	}
	return out, nil
}

// link adds a line about a resource that the model can read.
func (r *result) link(l *sdk.ResourceLink) {
	if len(r.links) == keptLinks {
		r.links = append(r.links, "[more links are left out]")
	}
	if len(r.links) > keptLinks {
		return
	}
	r.links = append(r.links, resourceLine(cmp.Or(l.Title, l.Name), l.URI, l.MIMEType, l.Description, l.Size))
}

// embed adds a resource in the result. Its bytes become a file of r. Its text is appended to
// texts, which embed returns.
func (r *result) embed(c *sdk.ResourceContents, texts []string) []string {
	switch {
	case c == nil:
	case c.Blob != nil:
		r.files = append(r.files, attachment{c.MIMEType, c.Blob})
	default:
		texts = append(texts, strings.TrimLeft(shorten(c.URI, maxURI)+"\n", "\n")+c.Text)
	}
	return texts
}

// maxCompared limits the work of containsValues: the total bytes of text that it searches.
const maxCompared = 64 << 20

// containsValues reports whether a text contains all values of the structured content, so that the
// model needs only the text. It returns false for JSON: servers send JSON text for older
// clients, and the structured content is equivalent. Other text may only be a summary.
func containsValues(text string, v any) bool {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || strings.ContainsAny(trimmed[:1], "{[") && json.Valid([]byte(trimmed)) || sameJSON(trimmed, v) {
		return false
	}
	left := maxCompared
	return containsAll(text, v, &left)
}

// containsAll reports whether text contains every scalar of a JSON value. left is the number of
// bytes that it may still search.
func containsAll(text string, v any, left *int) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, child := range v {
			if !containsAll(text, child, left) {
				return false
			}
		}
		return true
	case []any:
		return !slices.ContainsFunc(v, func(child any) bool { return !containsAll(text, child, left) })
	case string:
		// Each scalar requires a search of the whole text, so a hostile result could take very
		// long.
		*left -= len(text)
		return *left >= 0 && strings.Contains(text, strings.TrimSpace(v))
	default:
		raw, err := json.Marshal(v)
		*left -= len(text)
		return err == nil && *left >= 0 && strings.Contains(text, string(raw))
	}
}

// sameJSON reports whether text is the JSON of v.
func sameJSON(text string, v any) bool {
	var other any
	return json.Unmarshal([]byte(text), &other) == nil && reflect.DeepEqual(other, v)
}

// A keptFile describes an attachment to the model.
type keptFile struct {
	Path      string `json:"path,omitempty"`
	MediaType string `json:"mediaType"`
	Size      int    `json:"size"`
	Error     string `json:"error,omitempty"` // reason why the file was not saved
	Note      string `json:"note,omitempty"`  // reason why the model does not get the image or audio itself
}

// output returns the result for the model. Text alone becomes a string, and structured content
// alone stays unchanged. output writes attachments to the workspace and shows images. It
// returns an *Error for a failed call.
func (r result) output(ctx context.Context, host tool.Host, of tool.RemoteTool) (json.RawMessage, error) {
	if len(r.structured) > 2*keptText { // too long: after the cut it is no longer JSON
		r.text, r.structured = string(r.structured), nil
	}
	text := headAndTail(host.Hide(r.text)) // hide first: a cut could leave a part of a secret
	if links := strings.Join(r.links, "\n"); links != "" {
		text = strings.TrimLeft(text+"\n\n"+links, "\n")
	}
	// The attachments of a failed call are dropped, because an *Error contains only text.
	if r.failed {
		text = cmp.Or(text, string(r.structured))
		if strings.TrimSpace(text) == "" {
			text = "the tool failed without a reason"
		}
		return nil, &tool.Error{Message: text}
	}
	files, err := r.keep(ctx, host, of)
	switch {
	case err != nil:
		return nil, err
	case r.structured == nil && len(files) == 0:
		return json.Marshal(text)
	case r.structured != nil && text == "" && len(files) == 0:
		return r.structured, nil
	}
	return json.Marshal(struct {
		Text       string          `json:"text,omitempty"`
		Structured json.RawMessage `json:"structured,omitempty"`
		Files      []keptFile      `json:"files,omitempty"`
	}{text, r.structured, files})
}

// headAndTail removes the middle of a long text.
func headAndTail(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= 2*keptText {
		return text
	}
	// A cut may split a character at both ends. ToValidUTF8 removes the incomplete characters.
	head, tail := strings.ToValidUTF8(text[:keptText], ""), strings.ToValidUTF8(text[len(text)-keptText:], "")
	return fmt.Sprintf("%s\n[... %d bytes are left out ...]\n%s", head, len(text)-len(head)-len(tail), tail)
}

// keep writes the attachments to the workspace. Their names are derived from their bytes, so
// that a repeated call changes nothing.
func (r result) keep(ctx context.Context, host tool.Host, of tool.RemoteTool) ([]keptFile, error) {
	var files []keptFile
	for i, a := range r.files {
		mediaType := strings.ToLower(shorten(strings.TrimSpace(a.mediaType), 100))
		f := keptFile{MediaType: mediaType, Size: len(a.data)}
		if i >= keptFiles { // one entry represents all further files
			f.Error = fmt.Sprintf("only %d files of a result are kept", keptFiles)
			files = append(files, f)
			break
		}
		// The name contains no time or number, so a repeated call writes the same file.
		sum := sha256.Sum256(a.data)
		name := notInNames.ReplaceAllString(of.Tool, "_")
		path := fmt.Sprintf("mcp/%s/%s-%s%s", of.Server, name[:min(len(name), 40)], hex.EncodeToString(sum[:6]),
			extension(mediaType))
		err := write(host.Workspace(), path, a.data)
		var refused *workspace.Error
		switch {
		case err == nil:
			f.Path = path
			if f.Note, err = show(ctx, host, f, a.data); err != nil {
				return nil, err
			}
		// The workspace may be full. The model still gets the text of the result.
		case errors.As(err, &refused):
			f.Error = refused.Message
		default:
			return nil, fmt.Errorf("keep a file of the result: %w", err)
		}
		files = append(files, f)
	}
	return files, nil
}

// show adds an image to the result of the call. The note tells the model why it does not get a
// file itself.
func show(ctx context.Context, host tool.Host, f keptFile, data []byte) (note string, err error) {
	switch kind, _, _ := strings.Cut(f.MediaType, "/"); kind {
	case "audio":
		return "you cannot hear audio: it is only kept as a file", nil
	case "image":
		_, err = host.ShowImage(ctx, f.Path, data)
	}
	var refused *tool.Error
	if errors.As(err, &refused) {
		return "not shown to you: " + refused.Message, nil
	}
	return "", err
}

// write writes a file unless the file already contains data.
func write(ws *workspace.Workspace, path string, data []byte) error {
	// Read one byte more than data has: a longer file that begins with data is different.
	if old, err := ws.ReadFile(path, 0, int64(len(data))+1); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return ws.WriteFile(path, data)
}

// extension returns the usual file name extension of a media type.
func extension(mediaType string) string {
	base, _, _ := strings.Cut(mediaType, ";")
	switch base = strings.TrimSpace(base); base {
	case "image/png", "image/gif", "image/webp", "application/pdf", "application/json", "application/zip":
		return "." + base[strings.IndexByte(base, '/')+1:]
	case "image/jpeg":
		return ".jpg"
	case "image/svg+xml":
		return ".svg"
	case "audio/wav", "audio/x-wav":
		return ".wav"
	case "audio/mpeg":
		return ".mp3"
	case "text/plain":
		return ".txt"
	}
	return ".bin"
}
