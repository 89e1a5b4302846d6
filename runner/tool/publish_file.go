package tool

import (
	"context"
	"encoding/json"
)

// maxTitle is how many characters the title of a published file may have.
const maxTitle = 200

type publishFile struct{}

// Spec describes publish_file.
func (publishFile) Spec() Spec {
	return Spec{
		Name: "publish_file",
		Description: `Hand a file of the workspace to the user: it is copied as it is now, attached to the answer and
given a web address, the url of the result. Later changes to the file don't change what was published; publish it again
to hand over a new version. Files that are not published are not seen by the user.`,
		InputSchema: json.RawMessage(`{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "Path of the file, relative to the workspace"},
    "title": {"type": "string", "maxLength": 200, "description": "What the file is, in a few words, for the reader"}
  },
  "required": ["path"],
  "additionalProperties": false
}`),
		Repeatable: true,
	}
}

// Run publishes a file.
func (publishFile) Run(ctx context.Context, host Host, input json.RawMessage) (json.RawMessage, error) {
	a := parse(input)
	path, title := a.path(), a.text("title", false, maxTitle)
	if err := a.err(); err != nil {
		return nil, err
	}
	file, err := host.Publish(ctx, path, title)
	if err != nil {
		return nil, told(err)
	}
	return result(file)
}
