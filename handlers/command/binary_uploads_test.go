package command_test

import (
	"bytes"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// TestLargeFiles raises the limit of files. A file above the default passes through a form, the workspace, the tools
// and publication. A request may have it although it is larger than --max-request-size.
func TestLargeFiles(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := serve(t, t.TempDir(), "--max-file-size", "41943040", "--max-request-size", "1000000")
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	is.NoErr(form.WriteField("input", offlineScript(
		toolLine("search_files", map[string]any{"pattern": "the needle"}), "say {{last}}")))
	part, err := form.CreateFormFile("file", "large.txt")
	is.NoErr(err)
	const line = "one line of a large file\n"
	_, err = part.Write([]byte(strings.Repeat(line, (30<<20)/len(line)) + "the needle\n"))
	is.NoErr(err)
	is.NoErr(form.Close())
	a, err := s.send(t.Context(), "POST", "/api/workers", &b, "Content-Type", form.FormDataContentType())
	v := s.ended(t, s.must(t, a, err))
	is.Equal(v.Status, "completed")
	is.True(strings.Contains(v.OutputText, "1 matches in 1 of 1 text files"))
	for tool, says := range map[string]string{"read_file": "one line of a large file", "publish_file": "/files/large.txt"} {
		input := offlineScript(toolLine(tool, map[string]any{"path": "large.txt", "limit": 1}), "say {{last}}")
		next := s.ended(t, s.mustPost(t, "/api/tasks", map[string]any{"workerId": v.ID, "input": input}))
		if !strings.Contains(next.OutputText, says) {
			t.Errorf("%s: %s", tool, next.OutputText)
		}
	}
}

// TestFileLimitFitsWorkspaces refuses a limit of files that no workspace has room for.
func TestFileLimitFitsWorkspaces(t *testing.T) {
	t.Parallel()
	invocation{}.run(t, serveArgs(t.TempDir(), "--max-file-size", "1073741825")...).exitedWith(t, 1,
		"--max-file-size: must be at most 1073741824")
}
