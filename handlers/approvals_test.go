package handlers_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"journeyman/handlers"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/storetest"
)

// asks returns an instruction whose two edits need approval.
func asks() string {
	return scripted(calling("write_file", "path", "a.txt", "content", "one"), "say got {{last}}")
}

// waitingRun returns a run that waits for the approval of a worker's write_file.
func (s *site) waitingRun(t testing.TB, worker, input string) response {
	t.Helper()
	run := s.must(t, "POST", "/api/workers/"+worker, encode(fields{"input": input}))
	path := "/api/workers/" + worker + "?taskId=" + run.text("metadata.taskId")
	storetest.Eventually(t, "the turn rests", func() bool {
		run = s.must(t, "GET", path, "")
		return run.size("metadata.pendingApprovals") > 0 && s.runner.Running() == 0
	})
	return run
}

func TestApprovals(t *testing.T) {
	is, s := onServer(t)
	worker := s.newWorker(t, fields{"approvalTools": []string{"write_file"}})
	is.Equal(s.must(t, "GET", "/api/approvals", "").size("items"), 0)
	run := s.waitingRun(t, worker, asks())
	task, id := run.text("metadata.taskId"), run.text("metadata.pendingApprovals.0.id")
	is.Equal([]any{run.text("status"), run.at("running"), run.text("metadata.taskStatus")}, []any{"running", true, "running"})
	is.True(sameJSON(run.at("metadata.pendingApprovals.0"), fields{"id": id, "kind": "approval", "toolName": "write_file",
		"toolCallId": run.text("messages.1.parts.1.toolCallId"), "input": fields{"path": "a.txt", "content": "one"}}))
	is.Equal(run.text("messages.1.parts.1.state"), "input-available")
	seven := s.must(t, "GET", "/api/workers/"+worker+"?aiSdk=7&taskId="+task, "")
	is.Equal([]any{seven.text("messages.1.parts.1.state"), seven.text("messages.1.parts.1.approval.id")}, []any{"approval-requested", id})
	six := s.must(t, "GET", "/api/workers/"+worker+"?aiSdk=6&taskId="+task, "")
	is.Equal([]any{six.text("messages.1.parts.1.state"), six.text("messages.1.parts.2.id"), six.text("messages.1.parts.2.data.status")},
		[]any{"input-available", id, "pending"})

	for _, path := range []string{"/api/approvals", "/api/tasks/" + task + "/approvals"} {
		list := s.must(t, "GET", path, "")
		is.Equal([]any{list.size("items"), list.at("nextCursor"), list.text("items.0.id"), list.text("items.0.status"), list.text("items.0.taskId"),
			list.text("items.0.turnId"), list.text("items.0.workerId"), list.at("items.0.reason"), list.at("items.0.decidedBy"), list.at("items.0.decidedAt"), list.at("items.0.mayDecide")},
			[]any{1, nil, id, "pending", task, run.text("metadata.turnId"), worker, nil, nil, nil, true})
	}
	decision := "/api/tasks/" + task + "/approvals/" + id
	decided := s.must(t, "POST", decision, `{"approved":true,"reason":"go ahead"}`)
	is.Equal([]any{decided.text("status"), decided.text("reason"), decided.text("decidedBy")}, []any{"approved", "go ahead", s.owner.UserID})
	again := s.must(t, "POST", decision, `{"approved":true}`)
	is.Equal(again.text("reason"), "go ahead") // the first decision stays
	refused := s.do(t, "POST", decision, `{"approved":false}`)
	is.Equal([]any{refused.refused(), refused.header.Get("x-should-retry")}, []any{"409 approval_approved", "false"})
	storetest.Eventually(t, "the turn ends", func() bool {
		run = s.must(t, "GET", "/api/workers/"+worker+"?taskId="+task, "")
		return run.text("status") == "completed"
	})
	is.True(strings.HasPrefix(run.text("output_text"), "got {")) // it ran
	is.Equal(run.at("metadata.pendingApprovals"), nil)
	is.Equal(s.must(t, "GET", "/api/approvals", "").size("items"), 0)
	is.Equal(s.must(t, "GET", "/api/tasks/"+task+"/approvals", "").text("items.0.status"), "approved")
}

// TestApprovalDenied checks what waiting and streaming clients receive after a denial.
func TestApprovalDenied(t *testing.T) {
	is, s := onServer(t)
	worker := s.newWorker(t, fields{"approvalTools": []string{"write_file"}})
	body := encode(fields{"workerId": worker, "taskId": "mine", "input": asks()})
	waited := s.begin(t, "POST", "/api/tasks", body) // waits without a time limit
	storetest.Eventually(t, "the turn rests", func() bool {
		return s.do(t, "GET", "/api/tasks/mine/approvals", "").size("items") == 1
	})
	five := s.open(t, "GET", "/api/workers/"+worker+"?stream=true", "")
	six := s.open(t, "GET", "/api/workers/"+worker+"?stream=true&aiSdk=6", "")
	seven := s.open(t, "GET", "/api/workers/"+worker+"?stream=true&aiSdk=7", "")
	wide := s.open(t, "GET", "/api/workers/"+worker+"/stream", "")
	five.until(t, `"data-approval"`)
	six.until(t, `"data-approval","id":"apr_`)
	seven.until(t, `"tool-approval-request"`)
	last := five.id
	id := s.must(t, "GET", "/api/approvals", "").text("items.0.id")
	s.must(t, "POST", "/api/tasks/mine/approvals/"+id, `{"approved":false,"reason":"too soon"}`)
	is.True(strings.Contains(waited().text("output_text"), "got a person has denied this call: too soon"))
	is.True(five.ended(t))
	is.True(six.ended(t))
	is.True(seven.ended(t))
	wide.until(t, `"type":"finish"`)
	is.True(strings.Contains(five.types(), "data-approval data-approval tool-output-error"))
	is.True(!strings.Contains(five.types(), "tool-approval-request"))
	is.True(strings.Contains(six.types(), "data-approval data-approval tool-output-error"))
	is.True(!strings.Contains(six.types(), "tool-approval"))
	is.True(strings.Contains(seven.types(), "data-approval tool-approval-request data-approval tool-approval-response tool-output-denied"))
	is.True(!strings.Contains(wide.types(), "tool-approval-request"))
	back := s.open(t, "GET", "/api/workers/"+worker+"?stream=true", "", "Last-Event-ID: "+last)
	is.True(back.ended(t))
	is.True(strings.HasPrefix(back.types(), "data-approval tool-output-error"))
}

func TestInvalidDecisions(t *testing.T) {
	is, s := onServer(t)
	worker := s.newWorker(t, fields{"approvalTools": []string{"write_file"}})
	run := s.waitingRun(t, worker, asks())
	task, id := run.text("metadata.taskId"), run.text("metadata.pendingApprovals.0.id")
	path := "/api/tasks/" + task + "/approvals/"
	member, _ := s.member(t, "mo@example.com")
	for name, tt := range map[string]struct {
		by         *site
		path, body string
		want       string
	}{
		"no body":            {s, path + id, ``, "400 invalid_request"},
		"no decision":        {s, path + id, `{}`, "400 invalid_request approved"},
		"null":               {s, path + id, `{"approved":null}`, "400 invalid_request approved"},
		"a word":             {s, path + id, `{"approved":"yes"}`, "400 invalid_request approved"},
		"all wrong":          {s, path + id, `{"approved":1,"reason":2}`, "400 invalid_request approved reason"},
		"a long reason":      {s, path + id, encode(fields{"approved": true, "reason": chars(store.MaxReason + 1)}), "400 invalid_request reason"},
		"unknown approval":   {s, path + "apr_none", `{"approved":true}`, "404 not_found"},
		"unknown task":       {s, "/api/tasks/none/approvals/" + id, `{"approved":true}`, "404 not_found"},
		"a member":           {member, path + id, `{"approved":true}`, "403 forbidden"},
		"a stranger":         {s.stranger(t), path + id, `{"approved":true}`, "403 forbidden"},
		"nobody":             {s.as(""), path + id, `{"approved":true}`, "401 unauthorized"},
		"a long idempotency": {s, path + id, `{"approved":true}`, "400 invalid_request Idempotency-Key"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			header := ""
			if name == "a long idempotency" {
				header = "Idempotency-Key: " + strings.Repeat("k", 256)
			}
			is.Equal(tt.by.do(t, "POST", tt.path, tt.body, header).refused(), tt.want)
		})
	}
	is.Equal(s.do(t, "GET", "/api/approvals?limit=0&cursor=x", "").refused(), "400 invalid_request limit cursor")
	is.Equal(s.do(t, "GET", "/api/tasks/none/approvals", "").refused(), "404 not_found")
	is.Equal(s.must(t, "GET", "/api/tasks/"+task+"/approvals", "").size("items"), 1) // nothing was decided
	is.Equal(member.must(t, "GET", "/api/approvals", "").at("items.0.mayDecide"), false)
	long := s.must(t, "POST", path+id, encode(fields{"approved": false, "reason": chars(store.MaxReason)}), "Idempotency-Key: a")
	is.Equal([]any{long.status, long.header.Get("Idempotency-Replayed")}, []any{http.StatusOK, ""})
	again := s.must(t, "POST", path+id, encode(fields{"approved": false, "reason": chars(store.MaxReason)}), "Idempotency-Key: a")
	is.Equal(again.header.Get("Idempotency-Replayed"), "true")
	is.Equal(s.do(t, "POST", path+id, `{"approved":true}`, "Idempotency-Key: a").status, http.StatusUnprocessableEntity)
}

// TestSDKVersions checks that every endpoint with aiSdk refuses an unknown version before it changes
// anything, and that the document names these endpoints.
func TestSDKVersions(t *testing.T) {
	is, s := onServer(t)
	worker := s.newWorker(t, fields{})
	v := newValidator(t)
	var documented []string
	for path, item := range lookup(v.tree, "paths").(map[string]any) {
		for method, op := range item.(map[string]any) {
			if strings.Contains(fmt.Sprint(lookup(op, "parameters")), "#/components/parameters/AiSdk") {
				documented = append(documented, strings.ToUpper(method)+" "+path)
			}
		}
	}
	var taken []string
	for _, route := range handlers.SDKRoutes {
		route = strings.ReplaceAll(route, ":workerId", "{workerId}")
		if strings.HasPrefix(route, "GET /internal/") {
			continue // between nodes
		}
		taken = append(taken, route)
		method, path, _ := strings.Cut(strings.ReplaceAll(route, "{workerId}", worker), " ")
		body := ""
		if method == "POST" {
			body = encode(fields{"input": "x"})
		}
		for _, version := range []string{"4", "8", "07", "7.0", "v6", "seven", "6,7"} {
			r := s.do(t, method, path+"?aiSdk="+version, body)
			is.Equal(r.refused(), "400 invalid_request aiSdk")
			is.True(strings.Contains(r.text("error"), "5, 6, 7"))
		}
	}
	slices.Sort(documented)
	slices.Sort(taken)
	is.Equal(taken, documented)
	is.Equal(s.must(t, "GET", "/api/tasks", "").size("items"), 0) // nothing was accepted
	enum := lookup(v.tree, "components", "parameters", "AiSdk", "schema", "enum")
	is.Equal(fmt.Sprint(enum), fmt.Sprint(view.SDKs))
	for _, version := range append(view.SDKs, 0) {
		query := ""
		if version != 0 {
			query = fmt.Sprint("?aiSdk=", version)
		}
		is.Equal(s.do(t, "GET", "/api/workers/"+worker+query, "").status, http.StatusOK)
	}
}

// TestCancelWaitingTask cancels a task that waits for an approval. Nobody can decide afterwards.
func TestCancelWaitingTask(t *testing.T) {
	is, s := onServer(t)
	worker := s.newWorker(t, fields{"approvalTools": []string{"write_file"}})
	run := s.waitingRun(t, worker, scripted("say I would write", calling("write_file", "path", "a.txt", "content", "one"), "say never"))
	task, id := run.text("metadata.taskId"), run.text("metadata.pendingApprovals.0.id")
	is.Equal(s.must(t, "POST", "/api/tasks/"+task+"/cancel", "").text("task.status"), "aborted")
	ended := s.must(t, "GET", "/api/workers/"+worker+"?taskId="+task, "")
	is.Equal([]any{ended.text("status"), ended.text("error.code"), ended.text("output_text"), ended.at("metadata.pendingApprovals")},
		[]any{"completed", "aborted", "I would write", nil}) // the output so far is kept
	is.Equal(s.do(t, "POST", "/api/tasks/"+task+"/approvals/"+id, `{"approved":true}`).refused(), "409 approval_cancelled")
	is.Equal(s.must(t, "GET", "/api/tasks/"+task+"/approvals", "").text("items.0.status"), "cancelled")
	is.Equal(s.do(t, "GET", "/api/workers/"+worker+"/files/a.txt", "").status, http.StatusNotFound)
}

// TestQuestions answers a question of a worker.
func TestQuestions(t *testing.T) {
	is, s := onServer(t)
	worker := s.newWorker(t, fields{})
	s.do(t, "POST", "/api/tasks", encode(fields{"workerId": worker, "taskId": "asks",
		"input": "```offline\ntool ask_user {\"question\": \"Which <b>?\", \"choices\": [\"red\", \"blue\"]}\nsay It is {{last}}\n```"}), "Prefer: respond-async")
	storetest.Eventually(t, "the question", func() bool { return s.do(t, "GET", "/api/tasks/asks/approvals", "").size("items") == 1 })
	q := s.must(t, "GET", "/api/approvals", "")
	is.Equal([]any{q.text("items.0.kind"), q.text("items.0.question"), q.text("items.0.choices.1"), q.at("items.0.answer"), q.at("items.0.mayDecide")},
		[]any{"question", "Which <b>?", "blue", nil, true})
	path := "/api/tasks/asks/approvals/" + q.text("items.0.id")
	for body, want := range map[string]string{
		`{"approved":true}`:                  "400 invalid_request answer",
		`{}`:                                 "400 invalid_request approved",
		`{"answer":" "}`:                     "400 invalid_request answer",
		`{"answer":7}`:                       "400 invalid_request answer",
		`{"answer":"red","approved":true}`:   "400 invalid_request approved",
		`{"answer":"` + chars(20001) + `"}`:  "400 invalid_request answer",
		`{"answer":"red\u0000","reason":""}`: "400 invalid_request answer",
	} {
		is.Equal(s.do(t, "POST", path, body).refused(), want)
	}
	is.True(strings.Contains(s.do(t, "POST", path, "{}").text("error"), "an answer"))
	a := s.must(t, "POST", path, `{"answer":" the green one "}`)
	is.Equal([]any{a.text("status"), a.text("answer"), a.at("reason")}, []any{"answered", "the green one", nil})
	is.Equal(s.do(t, "POST", path, `{"answer":"red"}`).refused(), "409 approval_answered")
	storetest.Eventually(t, "the end", func() bool { return s.must(t, "GET", "/api/tasks/asks", "").text("task.status") == "completed" })
	is.Equal(s.must(t, "GET", "/api/tasks/asks", "").text("turns.0.outputText"), `It is {"answer":"the green one"}`)
}
