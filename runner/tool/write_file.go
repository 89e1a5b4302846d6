package tool

import (
	"context"
	"encoding/json"
	"math"
)

type writeFile struct{}

// Spec describes write_file.
func (writeFile) Spec() Spec {
	return Spec{
		Name: "write_file",
		Description: `Write a text file in the workspace, and the folders it is in. A file that is there is replaced
as a whole; to change a part of one, use edit_file. A written file stays in the workspace; to hand it to the user,
publish it with publish_file.`,
		InputSchema: json.RawMessage(`{
  "type": "object",
  "properties": {
    "path": {"type": "string",
      "description": "Path of the file, relative to the workspace, such as reports/summary.md"},
    "content": {"type": "string", "description": "The whole new contents of the file"}
  },
  "required": ["path", "content"],
  "additionalProperties": false
}`),
		Repeatable: true,
	}
}

// Run writes a file.
func (writeFile) Run(_ context.Context, host Host, input json.RawMessage) (json.RawMessage, error) {
	a := parse(input)
	path := a.path()
	content := a.text("content", true, math.MaxInt) // the workspace limits the size, in bytes
	if err := a.err(); err != nil {
		return nil, err
	}
	if err := host.Workspace().WriteFile(path, []byte(content)); err != nil {
		return nil, told(err)
	}
	return result(struct {
		Path string `json:"path"`
		Size int    `json:"size"`
	}{path, len(content)})
}
