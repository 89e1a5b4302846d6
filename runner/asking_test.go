package runner_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/tool"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/workers"
)

// questions returns a model that calls ask_user with each of the arguments in its first step. Then
// it answers with the results.
func questions(arguments ...string) *fakeModel {
	var pairs []string
	for _, a := range arguments {
		pairs = append(pairs, tool.AskUser, a)
	}
	return asksThen(resultsIn, pairs...)
}

func (f *fixture) reply(a store.Approval, text string) {
	f.t.Helper()
	_, err := f.DecideApproval(f.ctx(), f.owner, a.TaskID, a.ID, store.Decision{Answer: text})
	is.New(f.t).NoErr(err)
}

func TestQuestionsAndAnswers(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t, withModel(questions(`{"question":"Which <one>?","choices":["a","b"]}`, `{"question":" "}`, `{"question":"When?"}`)),
		func(c *runner.Config) { c.Concurrency, c.Tools = 1, tool.All(tool.Documents{}) })
	turn := f.accept("go")
	live, six, seven := newUIReader(t), f.reader(view.SDK6), f.reader(view.SDK7)
	stream, stream6, stream7 := f.taskStream(turn, ""), f.taskStream(turn, "").For(view.SDK6), f.taskStream(turn, "").For(view.SDK7)
	list := f.pending(turn, 2)
	is.Equal([]any{list[0].Kind, list[0].Question.Text, list[0].Question.Choices, list[1].Question.Text},
		[]any{store.KindQuestion, "Which <one>?", []string{"a", "b"}, "When?"})
	f.upTo(stream, live, `"data-waiting","data":{"for":"person"`)
	other := f.worker
	f.worker = f.newWorker(workers.NewWorker{Title: "Free"})
	free := f.accept("go") // the suspended turn holds no slot
	f.abort(free)
	f.worker = other
	f.reply(list[1], "noon")
	f.reply(list[0], "b")
	done := f.wait(turn)
	is.Equal(done.OutputText, `ask_user: {"answer":"b"}; ask_user: question must not be blank; ask_user: {"answer":"noon"}`)
	want := f.messages(turn)[1:]
	feed(live, f.events(stream))
	is.Equal(live.messages(), want)
	feed(six, f.events(stream6)) // no version has an approval for a question
	is.Equal(six.messages(), want)
	feed(seven, f.events(stream7))
	is.Equal(seven.messages(), want)
	is.Equal(f.read(f.taskStream(turn, "")).messages(), want)
}

// TestTooManyQuestions checks the limit, and that questions do not count as approvals.
func TestTooManyQuestions(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t, withModel(questions(slices.Repeat([]string{`{"question":"Why?"}`}, tool.MaxQuestions+1)...)),
		func(c *runner.Config) { c.Tools = tool.All(tool.Documents{}) })
	f.askingWorker(tool.AskUser)
	turn := f.accept("go")
	for _, a := range f.pending(turn, tool.MaxQuestions) {
		f.reply(a, "so")
	}
	out := f.wait(turn).OutputText
	is.Equal(strings.Count(out, `{"answer":"so"}`), tool.MaxQuestions)
	is.True(strings.Contains(out, "at most 5 may wait at once")) // the last one fails
}

// TestUnansweredRequests checks that the model continues without an answer.
func TestUnansweredRequests(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := newClock()
	f := onClock(t, c, withModel(questions(`{"question":"Which?"}`)), func(c *runner.Config) { c.Tools = tool.All(tool.Documents{}) })
	f.worker = f.newWorker(workers.NewWorker{Title: "Curious"})
	turn := f.accept("go")
	f.pending(turn, 1)
	c.advance(runner.ApprovalWait)
	f.ExpireSuspended()
	done := f.wait(turn)
	is.Equal(done.Status, store.Completed)
	is.True(strings.HasPrefix(done.OutputText, "ask_user: nobody answered within 7 days"))
}

// TestMessagesToAQuestion checks that a message is the answer if one question is open, even beside a
// call that waits for an approval, and a new turn if two are. An instruction that is to be run again is
// never the answer.
func TestMessagesToAQuestion(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		calls  []string
		queue  bool
		answer string // to the first question; "" if the message is a new turn
	}{
		"one question":              {[]string{tool.AskUser, `{"question":"A?"}`}, false, "yes"},
		"two questions":             {[]string{tool.AskUser, `{"question":"A?"}`, tool.AskUser, `{"question":"B?"}`}, false, ""},
		"a question, an approval":   {[]string{tool.AskUser, `{"question":"A?"}`, "danger", `{}`}, false, "yes"},
		"two approvals":             {[]string{"danger", `{}`, "danger", `{}`}, false, ""},
		"an instruction, run again": {[]string{tool.AskUser, `{"question":"A?"}`}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f, _ := newAsking(t, asksThen(resultsIn, tt.calls...), withTools(tool.All(tool.Documents{})...))
			turn := f.accept("go")
			f.pending(turn, len(tt.calls)/2)
			n := store.NewTurn{Caller: f.owner, TaskID: turn.TaskID, Input: "yes", Budget: store.BudgetStandard, AlwaysQueue: tt.queue}
			a, err := f.Accept(f.ctx(), runner.Instruction{NewTurn: n})
			is.NoErr(err)
			is.Equal([]any{a.Turn.ID == turn.ID, a.Answered != nil}, []any{tt.answer != "", tt.answer != ""})
			list, _, err := f.store.Approvals(f.ctx(), f.owner, store.ApprovalQuery{TaskID: turn.TaskID, Limit: 5})
			is.NoErr(err)
			for _, a := range list {
				answered := a.Kind == store.KindQuestion && tt.answer != ""
				is.Equal([]any{a.Status == store.ApprovalPending, a.Answer == "yes"}, []any{!answered, answered})
			}
			f.abort(turn)
		})
	}
}

// TestQuestionAfterAMessage sends a message while the turn that will ask still works. Nobody is asked then,
// and the message runs next.
func TestQuestionAfterAMessage(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	working, sent := make(chan struct{}), make(chan struct{})
	asks := asksThen(resultsIn, tool.AskUser, `{"question":"Which colour?"}`)
	m := &fakeModel{fn: func(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		if req.TurnStart > 0 {
			return answer(emit, "done in blue"), nil
		}
		if stepOf(req) == 0 {
			close(working)
			<-sent
		}
		return asks.fn(ctx, req, emit)
	}}
	f, _ := newAsking(t, m, withTools(tool.All(tool.Documents{})...))
	turn := f.accept("go")
	live := f.reading(f.taskStream(turn, ""))
	<-working
	later := f.accept("in blue", turn.TaskID)
	close(sent)
	is.Equal(f.wait(later).OutputText, "done in blue")
	done := f.wait(turn)
	is.Equal(done.Status, store.Completed)
	is.True(strings.HasPrefix(done.OutputText, "ask_user: the question was not asked: the person has sent another message"))
	is.Equal(until(t, live, "the end of the stream").messages(), assistants(f.messages(turn)))
	list, _, err := f.store.Approvals(f.ctx(), f.owner, store.ApprovalQuery{TaskID: turn.TaskID, Limit: 5})
	is.NoErr(err)
	is.Equal([]any{len(list), list[0].Status}, []any{1, store.ApprovalCancelled})
}
