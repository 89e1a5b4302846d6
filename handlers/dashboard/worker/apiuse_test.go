package worker_test

import (
	"encoding/json"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store/workers"
)

var snippetCode = regexp.MustCompile(`(?s)<pre tabindex="0" id="use-([a-z]+)">(.*?)</pre>`)

// TestSnippetsWork copies the code from a worker's page and runs it.
func TestSnippetsWork(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	wrk := s.Worker(s.Owner, workers.NewWorker{Title: "Greeter", Instructions: "```offline\nsay Good day\n```"})
	p := s.SignIn("ann@example.com").Get("/workers/" + wrk.ID)
	is.Equal(p.Status, 200)
	code := map[string]string{}
	for _, m := range snippetCode.FindAllStringSubmatch(p.Body, -1) {
		code[m[1]] = html.UnescapeString(m[2])
	}
	is.Equal(len(code), 6)
	is.Equal(code["mail"], wrk.ID+"@mail.example")
	is.True(json.Valid([]byte(code["mcp"]))) // the client's configuration is JSON
	dir := t.TempDir()
	is.NoErr(os.WriteFile(filepath.Join(dir, "report.pdf"), []byte("no real report"), 0o600))
	for id, command := range map[string][]string{
		"curl": {"sh", "-c"}, "file": {"sh", "-c"}, "python": {"python3", "-c"},
		"js": {"node", "--input-type=module", "-e"},
	} {
		t.Run(id, func(t *testing.T) {
			is := is.New(t)
			for _, program := range []string{command[0], "curl"} {
				if _, err := exec.LookPath(program); err != nil {
					t.Skip(program + " is not installed")
				}
			}
			cmd := exec.CommandContext(t.Context(), command[0], append(command[1:], code[id])...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "JOURNEYMAN_API_KEY="+s.Key)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			is.True(strings.Contains(string(out), "Good day")) // the output is the worker's answer
		})
	}
}
