package dashboard_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// An update is an event of the live page: see live.js.
type update struct {
	ID    string
	HTML  [][]any
	Lists [][]any
}

// live returns the updates of a task's page up to the first one for which done returns true, or
// all.
func (b *browser) live(address, lastID string, done func(update) bool) (list []update) {
	b.t.Helper()
	r := b.request(http.MethodGet, address, "")
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	res, err := b.client.Do(r)
	b.ok(err)
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		b.t.Fatalf("%s answers %d", address, res.StatusCode)
	}
	id := ""
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if after, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			id = after
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		u := update{ID: id}
		if err := json.Unmarshal([]byte(data), &u); err != nil {
			b.t.Fatalf("%v in %s", err, data)
		}
		if list = append(list, u); done != nil && done(u) {
			return list
		}
	}
	return list
}

// text returns all HTML of an update.
func (u update) text() string {
	var b strings.Builder
	for _, piece := range u.HTML {
		b.WriteString(piece[1].(string))
	}
	return b.String()
}

// streamOf returns the address of the live part of a page.
func streamOf(p page) string {
	return strings.ReplaceAll(regexp.MustCompile(`data-stream="([^"]+)"`).FindStringSubmatch(p.body)[1], "&amp;", "&")
}

// TestLivePieces reads the updates of a hostile turn. They must be as harmless as a page, and a
// reconnecting browser gets only the pieces that it does not have.
func TestLivePieces(t *testing.T) {
	is, s, b := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{Title: evil,
		Settings: workers.Settings{ApprovalTools: []string{"list_files"}}})
	s.begin(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: "live", Title: evil, Input: evil + "\n\n" + scripted("think "+evil, "say "+evil,
		calling("write_file", "path", "a.html", "content", evil), calling("read_file", "path", evil), calling("list_files"), "say # The **end** "+evil)})
	id := s.approval("live")
	address := streamOf(b.get("/tasks/live"))
	waits := b.live(address, "", func(u update) bool { return strings.Contains(u.text(), "Waiting for your approval") })
	last := waits[len(waits)-1]
	is.True(strings.Contains(last.text(), `name="decision" value="approve"`)) // the update holds the card of the approval
	_, err := s.runner.DecideApproval(t.Context(), s.owner.Caller, "live", id, store.Decision{Approved: true})
	is.NoErr(err)
	s.ended("live")
	rest := b.live(address, last.ID, nil)
	whole := b.live("/tasks/live/live", "", nil)
	for _, u := range append(append(waits, rest...), whole...) {
		page{body: u.text()}.check(t, "an update")
	}
	after := ""
	for _, u := range rest {
		after += u.text()
	}
	is.True(strings.Contains(after, "<strong>end</strong>"))
	is.True(strings.Contains(after, "Run again"))
	is.True(!strings.Contains(after, `id="c0-0-0"`)) // a call that the browser has
	is.True(strings.Contains(whole[0].text(), `id="c0-0-0"`))
	is.Equal(b.live(address, rest[len(rest)-1].ID, nil)[0].ID, rest[len(rest)-1].ID) // it may also reconnect after the end

	for _, query := range []string{"?turn=99&step=99&has=99", "?turn=-1&step=x&has=-5", "?turn=99999999999999999999"} {
		ordertest.Above(is, len(b.live("/tasks/live/live"+query, "7-x", nil)), 0) // an invalid position does no harm
	}
}

// TestRunAgain runs an instruction again, and an edited one. The files are attached again.
func TestRunAgain(t *testing.T) {
	is, s, b := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{Title: "Scribe"})
	s.carryOut(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: "talk", Input: scripted("say one")})
	sent := b.form("/tasks/talk", []string{"input", scripted("fail 400 on strike"), "budget", "low"}, "notes.txt", "remember the milk")
	is.Equal(b.send(sent).status, 303)
	is.Equal(s.ended("talk").Status, store.Failed)
	p := b.get("/tasks/talk")
	p.shows(`action="/tasks/talk/turns/1/again"`, "Try again</button>")
	token := regexp.MustCompile(`turns/1/again".*?name="token" value="([^"]+)"`).FindStringSubmatch(p.body)[1]
	for range 2 { // two clicks are one turn
		p := b.post("/tasks/talk/turns/1/again", "token", token)
		if p.location() != "/tasks/talk#newest" {
			t.Fatal(p.status, regexp.MustCompile(`role="alert">.*`).FindString(p.body), p.body[max(0, len(p.body)-800):])
		}
	}
	turn := s.ended("talk")
	is.Equal([]any{turn.Seq, turn.Budget, turn.TriggeredBy}, []any{int64(2), store.BudgetLow, people.TriggerUI})
	files, err := s.store.FilesByTurn(t.Context(), turn)
	is.NoErr(err)
	is.Equal(len(files), 1) // the attached file is attached again

	b.get("/tasks/talk?edit=1").shows(`name="from" value="1"`, "fail 400 on strike", "notes.txt")
	is.Equal(b.send(b.form("/tasks/talk", []string{"from", "1", "input", scripted("say edited"), "budget", "low"}, "more.txt", "x")).status, 303)
	turn = s.ended("talk")
	is.Equal(turn.OutputText, "edited")
	files, err = s.store.FilesByTurn(t.Context(), turn)
	is.NoErr(err)
	is.Equal(len(files), 2) // the old one and the new one

	is.Equal(b.post("/tasks/talk/turns/9/again", "token", "x").status, 404)
	is.Equal(b.get("/tasks/talk?edit=9").status, 200) // an invalid number leaves the form empty
	is.Equal(b.post("/tasks/talk/archive").status, 303)
	p = b.post("/tasks/talk/turns/0/again", "token", "y")
	is.Equal(p.status, 422)
	is.True(p.has("Is archived", "takes no new instructions") || p.has("archived")) // the page of the task shows the reason
}

// TestAllowRestOfTask approves a call for the rest of its task.
func TestAllowRestOfTask(t *testing.T) {
	is, s, b := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{Title: "Careful",
		Settings: workers.Settings{ApprovalTools: []string{"write_file", "edit_file"}}})
	s.begin(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: "rest", Input: scripted(calling("write_file", "path", "a.txt", "content", "one\ntwo\n"),
		calling("write_file", "path", "b.txt", "content", "x"), calling("edit_file", "path", "a.txt", "old", "two", "new", "three"), "say over")})
	id := s.approval("rest")
	b.get("/tasks/rest").shows("Write a.txt?", "one\ntwo", "This call replaces the file if it exists.", "Allow write_file for the rest of this task")
	is.Equal(b.post("/tasks/rest/approvals/"+id, "decision", "approve", "restOfTask", "yes").location(), "/tasks/rest?done=tool-allowed")
	next := s.approval("rest")
	p := b.get("/tasks/rest")
	p.shows("Change a.txt?", `class="del"`, `class="add"`) // another tool needs approval, and shows a difference
	p.lacks("Write b.txt?")
	is.Equal(b.post("/tasks/rest/approvals/"+next, "decision", "deny").status, 303)
	is.Equal(s.ended("rest").Status, store.Completed)
	is.Equal(b.post("/tasks/rest/approvals/"+next, "decision", "approve").location(), "/tasks/rest?done=decided-already")
	refused := b.post("/tasks/rest/approvals/"+next, "decision", "maybe")
	refused.answers(422).shows(`role="alert"`, "must be approve or deny") // on the page of the task
}
