package model

import (
	"strings"
	"testing"

	"github.com/matryer/is"
)

// seen returns a request whose newest message has two results: the first with two images, the
// second without.
func seen() Request {
	bytes := func() ([]byte, error) { return []byte("png"), nil }
	images := []Part{{Type: PartFile, Path: "a.png", MediaType: "image/png", Size: 3, Open: bytes},
		{Type: PartFile, MediaType: "image/gif", Size: 9}}
	call := func(id string) Part {
		return Part{Type: PartToolCall, CallID: id, ToolName: "view_image", Input: []byte(`{}`)}
	}
	return Request{Messages: []Message{user("look"),
		{Role: RoleAssistant, Parts: []Part{call("c1"), call("c2")}},
		{Role: RoleTool, Parts: []Part{{Type: PartToolResult, CallID: "c1", ToolName: "view_image", Text: "a.png", Images: images},
			{Type: PartToolResult, CallID: "c2", ToolName: "view_image", Text: "no such file", IsError: true}}}}}
}

func TestClaudeSeesImagesOfTools(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newProvider(t, streams(claudeSays("ok")))
	answered(t, claudeAt(t, p.URL, quick()), seen())
	sent := jsonText(t, p.got(t, 0).body["messages"].([]any)[2])
	is.True(strings.Contains(sent, `{"content":[{"text":"a.png","type":"text"},`+
		`{"source":{"data":"cG5n","media_type":"image/png","type":"base64"},"type":"image"},`+
		`{"text":"A file (image/gif, 9 bytes) is not shown here: only its name is sent.","type":"text"}],`)) // in the result
}

func TestOpenAISeesImagesOfTools(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	says := streams(sse(chunk(`{"content":"ok"}`), finished("stop")))
	p := newProvider(t, says, refuses(400, "this model does not support image input", ""), says)
	m := openAIAt(t, p.URL, quick())
	answered(t, m, seen())
	messages := p.got(t, 0).body["messages"].([]any)
	is.Equal(jsonText(t, messages[2]), `{"content":"a.png","role":"tool","tool_call_id":"c1"}`)
	is.Equal(jsonText(t, messages[5]), `{"content":[{"text":"Images that view_image (call c1) shows:","type":"text"},`+
		`{"image_url":{"url":"data:image/png;base64,cG5n"},"type":"image_url"},`+
		`{"text":"A file (image/gif, 9 bytes) is not shown here: only its name is sent.","type":"text"}],"role":"user"}`) // after all results

	answered(t, m, seen()) // a model without vision
	messages = p.got(t, 2).body["messages"].([]any)
	is.Equal(jsonText(t, messages[5]), `{"content":"Images that view_image (call c1) shows:\n\n`+
		`File a.png (image/png, 3 bytes) lies in the workspace; its content is not shown here: `+
		`the model openai:m takes no pictures. A model that takes pictures is needed to see it.\n\n`+
		`A file (image/gif, 9 bytes) is not shown here: only its name is sent.","role":"user"}`)
}

func TestRecordingsHoldDigestsOfImages(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	req, other := seen(), seen()
	d := digestRequest(&req, nil)
	is.True(strings.Contains(d.lines[4], "\nimage a.png image/png ")) // its name and digest
	is.True(!strings.Contains(strings.Join(d.lines, ""), "cG5n"))     // not its contents
	other.Messages[2].Parts[0].Images[0].Open = func() ([]byte, error) { return []byte("gif"), nil }
	is.True(digestRequest(&other, nil).key() != d.key()) // another image changes the key
}
