package worker

import (
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/store/workers"
)

// A snippet shows one way to use a worker from another program.
type snippet struct {
	ID    string // of the tab
	Name  string // on the tab
	Title string // a description of the code
	Code  string // works unchanged with a key in the environment
}

// snippets returns the ways to use a worker, with its real id and this server's address.
func (d *Pages) snippets(r *frame.Request, wrk workers.Worker) []snippet {
	field, input := "output_text", "Hello"
	if wrk.OutputSchema != nil {
		field = "structured_output"
	}
	fill := strings.NewReplacer("{base}", d.BaseURL, "{id}", wrk.ID, "{input}", input, "{field}", field,
		"{address}", d.address(wrk)).Replace
	return []snippet{
		{"curl", "curl", r.T("Run a task and wait for the answer"), fill(curlCode)},
		{"file", r.T("With a file"), r.T("Attach files"), fill(fileCode)},
		{"js", "JavaScript", r.T("Node.js, Deno or Bun"), fill(javaScriptCode)},
		{"python", "Python", r.T("Python 3, standard library only"), fill(pythonCode)},
		{"mcp", "MCP", r.T("For an editor or a chat program"), fill(mcpCode)},
		{"mail", r.T("Mail"), r.T("Write to this address; attachments are stored in the workspace"), d.address(wrk)},
	}
}

// address returns the mail address of a worker.
func (d *Pages) address(wrk workers.Worker) string { return wrk.ID + "@" + d.cfg.MailDomain }

const (
	curlCode = `curl -sS {base}/api/tasks \
  -H "Authorization: Bearer $JOURNEYMAN_API_KEY" \
  -H "Content-Type: application/json" \
  -d '{"workerId": "{id}", "input": "{input}"}'
`
	fileCode = `curl -sS {base}/api/tasks \
  -H "Authorization: Bearer $JOURNEYMAN_API_KEY" \
  -F workerId={id} \
  -F input="{input}" \
  -F files=@report.pdf
`
	javaScriptCode = `const response = await fetch("{base}/api/tasks", {
  method: "POST",
  headers: {
    Authorization: "Bearer " + process.env.JOURNEYMAN_API_KEY,
    "Content-Type": "application/json",
  },
  body: JSON.stringify({ workerId: "{id}", input: "{input}" }),
});
const run = await response.json();
if (!response.ok) throw new Error(run.error);
console.log(run.{field});
`
	pythonCode = `import json, os, urllib.request

request = urllib.request.Request(
    "{base}/api/tasks",
    data=json.dumps({"workerId": "{id}", "input": "{input}"}).encode(),
    headers={"Authorization": "Bearer " + os.environ["JOURNEYMAN_API_KEY"],
             "Content-Type": "application/json"})
with urllib.request.urlopen(request) as response:
    run = json.load(response)
print(run["{field}"])
`
	mcpCode = `{"mcpServers": {"journeyman": {
  "type": "http",
  "url": "{base}/mcp",
  "headers": {"Authorization": "Bearer $JOURNEYMAN_API_KEY"}
}}}
`
)
