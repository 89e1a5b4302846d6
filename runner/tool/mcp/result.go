package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
)

// The bounds of a result as a model sees it.
const (
	keptText  = 20 << 10 // bytes kept of the beginning of a text, and as many of its end
	keptFiles = 20
)

// A result is what a call gave.
type result struct {
	text       string
	structured json.RawMessage // nil without
	files      []attachment
	failed     bool
}

// An attachment is something in a result that is not text.
type attachment struct {
	mediaType string
	data      []byte
}

// readResult takes out of a result what a model can use.
func readResult(r *sdk.CallToolResult) (result, error) {
	if r.NeedsInput() {
		return result{}, tool.Errorf("the tool asks a person for input, and nobody answers here")
	}
	out := result{failed: r.IsError}
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
			texts = append(texts, strings.TrimSpace(c.Name+" "+c.URI))
		case *sdk.EmbeddedResource:
			switch {
			case c.Resource == nil:
			case c.Resource.Blob != nil:
				out.files = append(out.files, attachment{c.Resource.MIMEType, c.Resource.Blob})
			default:
				texts = append(texts, c.Resource.URI+"\n"+c.Resource.Text)
			}
		}
	}
	out.text = strings.Join(texts, "\n\n")
	if r.StructuredContent == nil {
		return out, nil
	}
	var err error
	out.structured, err = json.Marshal(r.StructuredContent)
	if err != nil {
		return out, fmt.Errorf("encode structured content: %w", err)
	}
	if sameJSON(out.text, r.StructuredContent) {
		out.text = "" // for clients that do not know of the other
	}
	return out, nil
}

// sameJSON says whether text is nothing but v again.
func sameJSON(text string, v any) bool {
	var other any
	return json.Unmarshal([]byte(text), &other) == nil && reflect.DeepEqual(other, v)
}

// A keptFile is an attachment as the model is told of it.
type keptFile struct {
	Path      string `json:"path,omitempty"`
	MediaType string `json:"mediaType"`
	Size      int    `json:"size"`
	Error     string `json:"error,omitempty"` // why it was not kept
}

// output gives the result as the model sees it: a text alone as a string, structured
// content alone as it is. Attachments go into the workspace.
func (r result) output(ws *sandbox.Workspace, of tool.Offered) (json.RawMessage, error) {
	if len(r.structured) > 2*keptText { // cut, it is JSON no more
		r.text, r.structured = strings.TrimSpace(r.text+"\n\n"+string(r.structured)), nil
	}
	text := headAndTail(r.text)
	if r.failed {
		if text == "" {
			text = string(r.structured)
		}
		return nil, tool.Errorf("%s", orNothing(text))
	}
	files, err := r.keep(ws, of)
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

func orNothing(text string) string {
	if strings.TrimSpace(text) == "" {
		return "the tool failed, and does not say why"
	}
	return text
}

// headAndTail leaves the middle of a long text out.
func headAndTail(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= 2*keptText {
		return text
	}
	head, tail := strings.ToValidUTF8(text[:keptText], ""), strings.ToValidUTF8(text[len(text)-keptText:], "")
	return fmt.Sprintf("%s\n[... %d bytes are left out ...]\n%s", head, len(text)-len(head)-len(tail), tail)
}

// keep writes the attachments to the workspace, under names that follow from what
// they hold, so that a call made again changes nothing.
func (r result) keep(ws *sandbox.Workspace, of tool.Offered) ([]keptFile, error) {
	var files []keptFile
	for i, a := range r.files {
		mediaType := strings.ToLower(shortened(strings.TrimSpace(a.mediaType), 100))
		f := keptFile{MediaType: mediaType, Size: len(a.data)}
		if i >= keptFiles {
			f.Error = fmt.Sprintf("only %d files of a result are kept", keptFiles)
			files = append(files, f)
			break
		}
		sum := sha256.Sum256(a.data)
		name := notInNames.ReplaceAllString(of.Tool, "_")
		path := fmt.Sprintf("mcp/%s/%s-%s%s", of.Server, name[:min(len(name), 40)], hex.EncodeToString(sum[:6]), extension(mediaType))
		err := write(ws, path, a.data)
		var refused *sandbox.Error
		switch {
		case err == nil:
			f.Path = path
		case errors.As(err, &refused):
			f.Error = refused.Message
		default:
			return nil, fmt.Errorf("keep a file of the result: %w", err)
		}
		files = append(files, f)
	}
	return files, nil
}

// write writes a file unless it is there as it should be.
func write(ws *sandbox.Workspace, path string, data []byte) error {
	if old, err := ws.ReadFile(path, 0, int64(len(data))+1); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return ws.WriteFile(path, data)
}

// extension is the usual ending of the names of files of a media type.
func extension(mediaType string) string {
	base, _, _ := strings.Cut(mediaType, ";")
	switch strings.TrimSpace(base) {
	case "image/png":
		return ".png"
	case "image/jpeg":
		return ".jpg"
	case "image/gif":
		return ".gif"
	case "image/webp":
		return ".webp"
	case "image/svg+xml":
		return ".svg"
	case "audio/wav", "audio/x-wav":
		return ".wav"
	case "audio/mpeg":
		return ".mp3"
	case "application/pdf":
		return ".pdf"
	case "application/json":
		return ".json"
	case "application/zip":
		return ".zip"
	case "text/plain":
		return ".txt"
	}
	return ".bin"
}
