package tool

import (
	"context"
	"encoding/json"

	"journeyman/store/visible"
)

// maxTitle is the maximum length of a published file's title, in characters.
const maxTitle = 200

type publishFile struct{}

// Spec describes publish_file.
func (publishFile) Spec() Spec {
	return Spec{
		Name: "publish_file",
		Description: `Hand a file to the user: it is copied as it is now and attached to the answer. The result has its
web address. After a change, publish it again.`,
		InputSchema: objectSchema(`
    "path": {"type": "string"},
    "title": {"type": "string", "maxLength": 200, "description": "What it is, in a few words"}`,
			"path"),
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
	head, err := host.Workspace().ReadFile(path, 0, headSize)
	if err != nil {
		return nil, explain(err)
	}
	if why := contradiction(path, head); why != "" {
		return nil, Errorf("path: %s is not published: %s", visible.Name(path), why)
	}
	file, err := host.Publish(ctx, path, title)
	if err != nil {
		return nil, explain(err)
	}
	file.Path = visible.Name(file.Path)
	return result(file)
}
