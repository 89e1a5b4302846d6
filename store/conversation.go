package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"journeyman/store/db"
)

const stepColumns = `s.turn_num, s.seq, s.attempt, s.parts, s.finish, s.feedback, s.model, s.estimated_tokens,
	s.input_tokens, s.output_tokens, s.cache_read_tokens, s.cache_write_tokens, s.reasoning_tokens, s.cost,
	s.started_at, s.completed_at`

type turnStep struct {
	turn int64
	Step
}

func scanStep(row db.Scanner) (st turnStep, err error) {
	var parts []byte
	u := &st.Usage
	err = row.Scan(&st.turn, &st.Seq, &st.Attempt, &parts, &st.Finish, &st.Feedback, &st.Model, &st.Estimated,
		&u.InputTokens, &u.OutputTokens, &u.CacheReadTokens, &u.CacheWriteTokens, &u.ReasoningTokens, &u.ModelCost,
		db.AsTime(&st.StartedAt), db.AsTime(&st.CompletedAt))
	if err != nil {
		return st, err
	}
	if err := json.Unmarshal(parts, &st.Parts); err != nil {
		return st, fmt.Errorf("decode step: %w", err)
	}
	return st, nil
}

// hasCalls reports whether the step has tool calls.
func (st Step) hasCalls() bool {
	return slices.ContainsFunc(st.Parts, Part.IsCall)
}

const callColumns = `c.turn_num, c.step_seq, c.seq, c.state, c.output, c.cost, c.started_at, c.completed_at,
	c.spent_steps, c.spent_time, c.spent_credits, c.spent_by_team, ` + callImages

type turnCall struct {
	turn int64
	Call
}

func scanCall(row db.Scanner) (c turnCall, err error) {
	var images string
	err = row.Scan(&c.turn, &c.Step, &c.Seq, &c.State, db.AsJSON(&c.Output), &c.Cost, db.AsTime(&c.StartedAt),
		db.AsTime(&c.CompletedAt), &c.Spent.Steps, &c.Spent.Time, &c.Spent.Credits, &c.Spent.ByTeam, &images)
	if err == nil {
		c.Images, err = readImages(images)
	}
	return c, err
}

func scanSource(row db.Scanner) (src Source, err error) {
	err = row.Scan(&src.ID, &src.TurnNum, &src.URL, db.AsText(&src.Title))
	return src, err
}

// Journal returns the steps of a turn in order, with their tool calls and approvals.
func (s *Store) Journal(ctx context.Context, t Turn) ([]Step, error) {
	return readJournal(ctx, s.db, t.Num)
}

func readJournal(ctx context.Context, q db.Querier, turnNum int64) ([]Step, error) {
	return journalPage(ctx, q, turnNum, 0, math.MaxInt64)
}

// joinCalls adds calls and approvals to their steps, by turn. A call may be newer than the
// query that read the steps: one without a step is left out.
func joinCalls(steps []turnStep, calls []turnCall, approvals []Approval) map[int64][]Step {
	journal := map[int64][]Step{}
	for _, st := range steps {
		journal[st.turn] = append(journal[st.turn], st.Step)
	}
	find := func(turn, seq int64) *Step {
		list := journal[turn]
		bySeq := func(st Step, seq int64) int { return cmp.Compare(st.Seq, seq) }
		if i, ok := slices.BinarySearchFunc(list, seq, bySeq); ok {
			return &list[i]
		}
		return nil
	}
	for _, c := range calls {
		if st := find(c.turn, c.Step); st != nil {
			st.Calls = append(st.Calls, c.Call)
		}
	}
	for _, list := range journal {
		for _, st := range list {
			// The database does not store the order in which calls ended, so it is restored
			// from their times. Calls of the same millisecond keep the order of the query.
			slices.SortStableFunc(st.Calls, func(a, b Call) int { return a.CompletedAt.Compare(b.CompletedAt) })
		}
	}
	for _, a := range approvals {
		if st := find(a.turnNum, a.Step); st != nil {
			a.describe(st.Parts)
			st.Approvals = append(st.Approvals, a)
		}
	}
	return journal
}

// JournalPage returns the steps of a turn from seq on, at most limit of them, in their
// order, with their tool calls and approvals.
func (s *Store) JournalPage(ctx context.Context, t Turn, seq int64, limit int) ([]Step, error) {
	return journalPage(ctx, s.db, t.Num, seq, seq+int64(db.PageLimit(limit))) // steps are numbered without a gap
}

// journalPage returns the steps of a turn from the seq from on, and below the seq end.
func journalPage(ctx context.Context, q db.Querier, turnNum, from, end int64) ([]Step, error) {
	steps, err := db.All(ctx, q, scanStep, `SELECT `+stepColumns+` FROM steps s
		WHERE s.turn_num = ? AND s.seq >= ? AND s.seq < ? ORDER BY s.seq`, turnNum, from, end)
	if err != nil || len(steps) == 0 {
		return nil, err
	}
	// Three queries in all, not three for each step: a page may show many steps.
	calls, err := db.All(ctx, q, scanCall, `SELECT `+callColumns+` FROM tool_calls c
		WHERE c.turn_num = ? AND c.step_seq >= ? AND c.step_seq < ? ORDER BY c.step_seq, c.seq`, turnNum, from, end)
	if err != nil {
		return nil, err
	}
	approvals, err := db.All(ctx, q, scanApproval, `SELECT `+approvalColumns+` FROM approvals a`+joinApproval+`
		WHERE a.turn_num = ? AND a.step_seq >= ? AND a.step_seq < ? ORDER BY a.step_seq, a.call_seq`,
		turnNum, from, end)
	return joinCalls(steps, calls, approvals)[turnNum], err
}

// A Span is the time of one model call or tool call.
type Span struct {
	Step        int64
	Call        int64 // among the step's tool calls; -1 for the model call
	StartedAt   time.Time
	CompletedAt time.Time
}

// maxSpans bounds the model calls and the tool calls that are read of one turn.
const maxSpans = 5000

// Spans returns when the model and the tools of a turn were at work: first the model
// calls, then the tool calls, each in their order. Of a very long turn it returns the
// beginning.
func (s *Store) Spans(ctx context.Context, t Turn) ([]Span, error) {
	spans, err := db.All(ctx, s.db, scanSpan, `SELECT seq, -1, started_at, completed_at FROM steps
		WHERE turn_num = ? ORDER BY seq LIMIT ?`, t.Num, maxSpans)
	if err != nil {
		return nil, err
	}
	calls, err := db.All(ctx, s.db, scanSpan, `SELECT step_seq, seq, started_at, completed_at FROM tool_calls
		WHERE turn_num = ? ORDER BY step_seq, seq LIMIT ?`, t.Num, maxSpans)
	return append(spans, calls...), err
}

func scanSpan(row db.Scanner) (p Span, err error) {
	err = row.Scan(&p.Step, &p.Call, db.AsTime(&p.StartedAt), db.AsTime(&p.CompletedAt))
	return p, err
}

// A Conversation is a task with its turns, their journals, files and sources.
type Conversation struct {
	Task    Task
	Turns   []Turn
	Steps   map[int64][]Step // by turn num
	Files   []File           // attached and published, oldest first
	Sources []Source
}

// HasCalls reports whether a step of the conversation has a tool call.
func (c Conversation) HasCalls() bool {
	for _, steps := range c.Steps {
		if slices.ContainsFunc(steps, Step.hasCalls) {
			return true
		}
	}
	return false
}

// EndWith removes the turns that are later than a turn.
func (c *Conversation) EndWith(turnNum int64) {
	later := func(num int64) bool { return num > turnNum } // the turns of a task are numbered in order
	c.Turns = slices.DeleteFunc(c.Turns, func(t Turn) bool { return later(t.Num) })
	c.Files = slices.DeleteFunc(c.Files, func(f File) bool { return later(f.TurnNum) })
	c.Sources = slices.DeleteFunc(c.Sources, func(src Source) bool { return later(src.TurnNum) })
}

// Conversation returns all of a task as it is at one moment.
func (s *Store) Conversation(ctx context.Context, task TaskRef) (c Conversation, err error) {
	err = s.db.Snapshot(ctx, func(q db.Querier) (err error) {
		c, err = readConversation(ctx, q, task.taskKey())
		return err
	})
	return c, err
}

func readConversation(ctx context.Context, q db.Querier, taskNum int64) (c Conversation, err error) {
	if c.Task, err = db.One(ctx, q, scanTask, `SELECT `+taskColumns+` FROM tasks WHERE num = ?`, taskNum); err != nil {
		return c, db.NoRecord(err, "task")
	}
	if c.Turns, err = db.All(ctx, q, scanTurn, selectTurns, taskNum); err != nil {
		return c, err
	}
	// CROSS JOIN fixes the order of the loops: the turns first, then the steps of each.
	steps, err := db.All(ctx, q, scanStep, `SELECT `+stepColumns+` FROM turns t CROSS JOIN steps s ON s.turn_num = t.num
		WHERE t.task_num = ? ORDER BY t.seq, s.seq`, taskNum)
	if err != nil {
		return c, err
	}
	if c.Files, err = db.All(ctx, q, scanFile, `SELECT `+fileColumns+` FROM files WHERE task_num = ?
		ORDER BY num`, taskNum); err != nil {
		return c, err
	}
	if !slices.ContainsFunc(steps, func(st turnStep) bool { return st.hasCalls() }) {
		c.Steps = joinCalls(steps, nil, nil)
		return c, nil // only tool calls have approvals and sources
	}
	err = readCalls(ctx, q, taskNum, steps, &c)
	return c, err
}

// readCalls completes c with the tool calls of a task's steps, and their approvals and sources.
func readCalls(ctx context.Context, q db.Querier, taskNum int64, steps []turnStep, c *Conversation) error {
	calls, err := db.All(ctx, q, scanCall, `SELECT `+callColumns+`
		FROM turns t CROSS JOIN tool_calls c ON c.turn_num = t.num
		WHERE t.task_num = ? ORDER BY t.seq, c.step_seq, c.seq`, taskNum)
	if err != nil {
		return err
	}
	approvals, err := db.All(ctx, q, scanApproval, `SELECT `+approvalColumns+` FROM approvals a`+joinApproval+`
		WHERE a.task_num = ? ORDER BY a.num`, taskNum)
	if err != nil {
		return err
	}
	c.Steps = joinCalls(steps, calls, approvals)
	c.Sources, err = db.All(ctx, q, scanSource, `SELECT id, turn_num, url, title FROM sources WHERE task_num = ?
		ORDER BY num`, taskNum)
	inOrder(c.Sources)
	return err
}

// inOrder sorts sources in the order of the calls that used them. Calls that run at the same
// time write their sources in the order in which they end. The ids show the order of calls.
func inOrder(sources []Source) {
	slices.SortStableFunc(sources, func(a, b Source) int {
		return cmp.Or(cmp.Compare(a.TurnNum, b.TurnNum), cmp.Compare(a.ID, b.ID))
	})
}

// SourcesByTurn returns the sources that no earlier turn of the task had used.
func (s *Store) SourcesByTurn(ctx context.Context, t Turn) ([]Source, error) {
	sources, err := db.All(ctx, s.db, scanSource, `SELECT id, turn_num, url, title FROM sources WHERE turn_num = ?
		ORDER BY num`, t.Num)
	inOrder(sources)
	return sources, err
}
