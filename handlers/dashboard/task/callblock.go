package task

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"journeyman/handlers/dashboard/show"
	"journeyman/handlers/dashboard/text"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
)

// A callBlock is a tool call for a page.
type callBlock struct {
	ID       string // of the element
	Name     string
	Path     string // address of its own page
	Icon     string
	Argument string // the most important argument, on the closed line
	Result   string // the result in a few words, on the closed line
	Added    int    // lines of an edit
	Removed  int
	State    text.Key // a word for people; "" for a call that is done
	Class    string   // of the state: run, wait, bad or ""
	Reason   string   // why the call failed, in one line
	Took     time.Duration
	Credits  float64
	Step     stepBlock
	Ended    bool
	Failed   bool
	Decision string // of a person; "" if the call needed no approval
	Bare     bool   // the page shows the closed line only
	Body     callBody
	Input    show.Excerpt // raw
	Output   show.Excerpt
	Children []childLink
}

// A childLink is a task that a call has started.
type childLink struct {
	Path, Worker, Text string
	Status             show.State
}

// A planItem is a step of the plan that a worker has made.
type planItem struct {
	Text  string `json:"text"`
	State string `json:"state"`
}

// Class returns the state of the step as a class: done, now or todo.
func (i planItem) Class() string {
	switch {
	case i.State == "done":
		return "done"
	case i.State == "in_progress":
		return "now"
	}
	return "todo"
}

// maxArgument is the number of characters of an argument on the closed line.
const maxArgument = 90

// oneLine returns a text as one line, shortened for the closed line.
func oneLine(source string) string {
	return show.Ellipsis(show.CollapseSpace(db.FirstRunes(source, 4*maxArgument)), maxArgument)
}

// iconOf returns the icon of a tool.
func iconOf(tool string) string {
	icons := map[string]string{"read_file": "doc", "write_file": "file", "edit_file": "diff", "list_files": "folder",
		"search_files": "search", "view_image": "image", "make_chart": "image", "publish_file": "send", "shell": "term", "web_fetch": "globe",
		"web_search": "search", "update_plan": "tasks", "ask_user": "shield", "run_worker": "workers"}
	if icon := icons[tool]; icon != "" {
		return icon
	}
	return "plug"
}

// argumentOf returns the most important argument of a call.
func argumentOf(l *text.Language, tool string, a show.Arguments) string {
	switch tool {
	case "shell":
		return oneLine(a.Text("command"))
	case "update_plan":
		items := planOf(a["items"])
		return l.N(int64(len(items)), "%d item, %d done", "%d items, %d done", doneOf(items))
	case "web_fetch":
		address := a.Text("url")
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			return oneLine(u.Host + strings.TrimSuffix(u.Path, "/"))
		}
		return oneLine(address)
	case "web_search":
		return oneLine("“" + a.Text("query") + "”")
	case "search_files":
		where := a.First("path", "glob")
		if where == "" {
			return oneLine("“" + a.Text("pattern") + "”")
		}
		return oneLine(l.T("“%s” in %s", a.Text("pattern"), where))
	}
	return oneLine(a.First("path", "question", "worker", "task", "to", "url", "query", "command", "name", "title",
		"id"))
}

// planOf reads the items of a plan.
func planOf(raw json.RawMessage) (items []planItem) {
	if json.Unmarshal(raw, &items) != nil {
		return nil
	}
	for i := range items {
		items[i].Text = show.Ellipsis(items[i].Text, 200)
	}
	return items[:min(len(items), 50)]
}

// doneOf returns how many items of a plan are done.
func doneOf(items []planItem) (n int) {
	for _, i := range items {
		if i.Class() == "done" {
			n++
		}
	}
	return n
}

// resultOf returns the result of a call in a few words.
func resultOf(l *text.Language, tool string, a show.Arguments, output json.RawMessage) string {
	var plain string
	isText := json.Unmarshal(output, &plain) == nil
	switch tool {
	case "shell":
		if r, ok := shellResultOf(output); ok {
			return l.T("exit %d", r.ExitCode)
		}
	case "write_file":
		return show.Bytes(l, int64(len(a.Text("content"))))
	case "read_file":
		if isText {
			lines := int64(strings.Count(plain, "\n"))
			return l.N(lines, "%d line", "%d lines") + " · " + show.Bytes(l, int64(len(plain)))
		}
	case "search_files", "list_files":
		if isText {
			return l.N(int64(strings.Count(plain, "\n")), "%d line", "%d lines")
		}
	case "web_fetch":
		var r struct {
			Content string `json:"content"`
		}
		if json.Unmarshal(output, &r) == nil {
			return show.Bytes(l, int64(len(r.Content)))
		}
	case "web_search":
		var r struct {
			Results []json.RawMessage `json:"results"`
		}
		if json.Unmarshal(output, &r) == nil {
			return l.N(int64(len(r.Results)), "%d result", "%d results")
		}
	}
	return ""
}

// call returns the block of tool call number n of a step. Input and output take at most most bytes
// of HTML each. If most is 0, the block has the closed line only.
func (b *turnBuilder) call(t store.Turn, st store.Step, p store.Part, n int64, most int) *callBlock {
	raw := fmt.Sprintf("%s/raw/%d/%d/calls/%d", b.path, t.Seq, st.Seq, n)
	a := show.ArgumentsOf(p.Input)
	cb := &callBlock{ID: fmt.Sprintf("c%d-%d-%d", t.Seq, st.Seq, n), Name: show.Ellipsis(p.ToolName, 80),
		Icon:     iconOf(p.ToolName),
		Path:     fmt.Sprintf("%s/calls/%d/%d/%d", b.path, t.Seq, st.Seq, n),
		Input:    show.ExcerptOf(show.JSON(p.Input), most/3).At(raw + "/input"),
		Argument: argumentOf(b.r.Lang, p.ToolName, a), Step: stepBlock{Step: st}}
	c, ended := st.Call(n)
	approval, asked := st.Approval(n)
	cb.State, cb.Class = callState(t, c, ended, approval, asked)
	if cb.Ended = ended; ended {
		cb.Took, cb.Credits = show.Took(c.StartedAt, c.CompletedAt), db.Credits(c.Cost)
		cb.Failed = c.State != store.CallCompleted
		cb.Output = show.ExcerptOf(show.JSON(c.Output), most/3).At(raw + "/output")
		cb.Result = resultOf(b.r.Lang, p.ToolName, a, c.Output)
	}
	if cb.Failed {
		cb.Reason, cb.Result = oneLine(c.ErrorText()), ""
	}
	if cb.Bare = most == 0; cb.Bare {
		return cb
	}
	maker := bodyMaker{lang: b.r.Lang, most: most, whole: raw}
	cb.Body = maker.body(p.ToolName, p.Input, c.Output, cb.Failed)
	if d := cb.Body.Diff; d != nil && ended && !cb.Failed {
		cb.Added, cb.Removed = d.Added, d.Removed
	}
	if asked {
		cb.Decision = decisionText(b.r.Lang, approval)
	}
	for _, child := range b.children {
		if child.ParentNum == t.Num && child.Step == st.Seq && child.Call == n {
			cb.Children = append(cb.Children, b.childLink(child))
		}
	}
	return cb
}

// childLink returns the link to a task that a call has started.
func (b *turnBuilder) childLink(c store.Child) childLink {
	return childLink{Path: view.TaskPath(c.TaskID), Worker: show.Ellipsis(c.WorkerTitle, 80), Text: oneLine(c.OutputText),
		Status: statusOf(b.r.Lang, c.Status, c.Wait, false)}
}

// callState returns the word and the class for a tool call that waits, failed or did not run.
func callState(t store.Turn, c store.Call, ended bool, a store.Approval, asked bool) (word text.Key, class string) {
	switch {
	case asked && a.Status == store.ApprovalPending && a.Kind == store.KindQuestion:
		return "waits for an answer", "wait"
	case asked && a.Status == store.ApprovalPending:
		return "waits for approval", "wait"
	case asked && a.Status == store.ApprovalDenied:
		return "denied", "bad"
	case ended && c.State == store.CallCompleted:
		return "", ""
	case ended && c.State == store.CallInterrupted:
		return "interrupted", "bad"
	case ended:
		return "failed", "bad"
	case t.Status == store.Running:
		return "running", "run"
	case t.Status == store.Pending:
		return "queued", ""
	}
	return "did not run", ""
}
