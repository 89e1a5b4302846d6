package dashboardtest

import (
	"bytes"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// Asks starts a task that waits for an approval.
func (s *Site) Asks(w workers.Worker, title string) store.Turn {
	s.T.Helper()
	turn := s.Begin(s.Owner, store.NewTurn{WorkerID: w.ID, Title: title, Input: Scripted(Calling("write_file", "path",
		"a.txt", "content", "x"), "say done")})
	storetest.Eventually(s.T, "the approval", func() bool {
		task, _, err := s.Store.Task(s.T.Context(), s.Owner.Caller, turn.TaskID)
		return err == nil && task.Wait != nil
	})
	return turn
}

// FollowUp sends the follow-up form of a task. files alternates names and contents.
func (b *Browser) FollowUp(task, input string, files ...string) Page {
	b.T.Helper()
	return b.Send(b.Form("/tasks/"+task, []string{"input", input, "budget", "standard"}, files...))
}

// Form returns a request with a multipart form.
func (b *Browser) Form(path string, fields []string, files ...string) *http.Request {
	b.T.Helper()
	var body bytes.Buffer
	m := multipart.NewWriter(&body)
	for i := 0; i+1 < len(fields); i += 2 {
		b.OK(m.WriteField(fields[i], fields[i+1]))
	}
	for i := 0; i+1 < len(files); i += 2 {
		part, err := m.CreateFormFile("files", files[i])
		if err == nil {
			_, err = part.Write([]byte(files[i+1]))
		}
		b.OK(err)
	}
	b.OK(m.Close())
	return b.Request(http.MethodPost, path, body.String(), "Content-Type", m.FormDataContentType(), "Sec-Fetch-Site",
		"same-origin")
}

// Ended waits until the newest turn of a task ends, and returns it.
func (s *Site) Ended(taskID string) store.Turn {
	s.T.Helper()
	task, _, err := s.Store.Task(s.T.Context(), s.Owner.Caller, taskID)
	s.OK(err)
	turn, err := s.Store.TurnAt(s.T.Context(), task, task.TurnCount-1)
	if err == nil {
		err = s.Runner.Wait(s.T.Context(), turn.ID)
	}
	if err == nil {
		turn, err = s.Store.Turn(s.T.Context(), turn.ID)
	}
	s.OK(err)
	return turn
}

// Approval waits until a task asks for an approval, and returns its id.
func (s *Site) Approval(taskID string) string {
	s.T.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		list, _, err := s.Store.Approvals(s.T.Context(), s.Owner.Caller, store.ApprovalQuery{TaskID: taskID, Limit: 5})
		s.OK(err)
		if len(list) > 0 && list[0].Status == store.ApprovalPending && s.Runner.Running() == 0 {
			return list[0].ID
		}
		s.OK(s.T.Context().Err())
	}
}

// Scripted returns an instruction that the offline model carries out line by line.
func Scripted(lines ...string) string { return "```offline\n" + strings.Join(lines, "\n") + "\n```" }

// Calling returns a script line that calls a tool. arguments alternates names and values.
func Calling(name string, arguments ...string) string {
	input := map[string]string{}
	for i := 0; i+1 < len(arguments); i += 2 {
		input[arguments[i]] = arguments[i+1]
	}
	text, _ := json.Marshal(input) // strings
	return "tool " + name + " " + string(text)
}

// Worker creates a worker as that user.
func (s *Site) Worker(who people.Identity, n workers.NewWorker) workers.Worker {
	s.T.Helper()
	w, _, err := s.Store.Workers.CreateWorker(s.T.Context(), who.Caller, n, db.IdempotencyKey{})
	s.OK(err)
	return w
}

// Begin accepts a turn as that user.
func (s *Site) Begin(who people.Identity, n store.NewTurn) store.Turn {
	s.T.Helper()
	n.Caller, n.Budget = who.Caller, store.BudgetUnlimited
	a, err := s.Store.CreateTurn(s.T.Context(), n)
	s.OK(err)
	s.Runner.Wake()
	return a.Turn
}

// CarryOut accepts a turn and waits until it has ended.
func (s *Site) CarryOut(who people.Identity, n store.NewTurn) store.Turn {
	s.T.Helper()
	turn := s.Begin(who, n)
	s.OK(s.Runner.Wait(s.T.Context(), turn.ID))
	turn, err := s.Store.Turn(s.T.Context(), turn.ID)
	s.OK(err)
	return turn
}

var titles = regexp.MustCompile(`<a class="title" href="[^"]*"><span class="cut">([^<]*)</span>`)

// Listed returns the titles that a list of tasks shows.
func (p Page) Listed() (list []string) {
	for _, m := range titles.FindAllStringSubmatch(p.Body, -1) {
		list = append(list, m[1])
	}
	return list
}

// OfAPI returns the body of a GET request to the API.
func (s *Site) OfAPI(path string) string {
	s.T.Helper()
	p := s.Visitor().Send(s.Request(http.MethodGet, path, "", "Authorization", "Bearer "+s.Key))
	if p.Status != http.StatusOK {
		s.T.Fatalf("%s: %d %s", path, p.Status, p.Body)
	}
	return p.Body
}

// Used records usage of that number of workers on each of the last days.
func (s *Site) Used(number, days int) {
	s.T.Helper()
	for i := range number {
		w, _, err := s.Store.Workers.CreateWorker(s.T.Context(), s.Owner.Caller,
			workers.NewWorker{Title: "<b>Worker</b> " + strconv.Itoa(i) + strings.Repeat(` "`, 60)}, db.IdempotencyKey{})
		s.OK(err)
		storetest.Exec(s.T, s.Store,
			`INSERT INTO usage (organization_id, day, worker_id, api_key_id, triggered_by, turns, failures, steps, input_tokens, output_tokens, cost, duration_ms)
			WITH RECURSIVE d(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM d WHERE n < ?) SELECT ?, ? - n, ?, ?, 'api',
			7 + n % 5, n % 3, 20, 1200 + 100 * (n % 7), 340, 12000000 * (1 + n % 4), 65000 FROM d`,
			days-1, s.Owner.OrganizationID, time.Now().Unix()/86400, w.ID, s.Owner.KeyID)
	}
}

// MadeWorker returns the worker to whose page an answer redirects.
func (s *Site) MadeWorker(p Page) workers.Worker {
	s.T.Helper()
	id, _, _ := strings.Cut(strings.TrimPrefix(p.Location(), "/workers/"), "/")
	id, _, _ = strings.Cut(id, "?")
	w, err := s.Store.Workers.Worker(s.T.Context(), s.Owner.Caller, id)
	if err != nil {
		s.T.Fatalf("%d %s: %v", p.Status, p.Location(), err)
	}
	return w
}

var scheduleLinks = regexp.MustCompile(`<a class="button quiet" href="(/workers/[^"]*/schedules/sch_[^"]*)">`)

// Schedules returns the addresses of the schedules on a page.
func (p Page) Schedules() (list []string) {
	for _, m := range scheduleLinks.FindAllStringSubmatch(p.Body, -1) {
		list = append(list, m[1])
	}
	return list
}

// Schedule creates a schedule of a worker as the owner.
func (s *Site) Schedule(w workers.Worker, input string, when store.When) store.Schedule {
	s.T.Helper()
	made, _, err := s.Store.CreateSchedule(s.T.Context(), s.Owner.Caller,
		store.NewSchedule{WorkerID: w.ID, Input: input, Budget: store.BudgetLow, When: when}, db.IdempotencyKey{})
	s.OK(err)
	return made
}
