package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A PartType says what a Part of a step is.
type PartType string

// What a model produces.
const (
	PartReasoning PartType = "reasoning"
	PartText      PartType = "text"
	PartToolCall  PartType = "tool-call"
)

// A Part is a piece of what a model call produced.
type Part struct {
	Type     PartType        `json:"type"`
	Text     string          `json:"text,omitempty"`
	CallID   string          `json:"callId,omitempty"`
	ToolName string          `json:"toolName,omitempty"`
	Input    json.RawMessage `json:"input,omitempty"` // a tool call's arguments
	Meta     json.RawMessage `json:"meta,omitempty"`  // what the provider wants back
}

// A Step is one finished model call, and the tool calls it asked for as far as
// they have ended.
type Step struct {
	Seq         int64
	Attempt     int64 // which try of the step this is
	Parts       []Part
	Calls       []Call     // that have ended
	Approvals   []Approval // that its calls need, in their order
	Finish      string
	Feedback    string // what the runner said to the model afterwards
	Model       string
	Estimated   int64 // tokens of the input, counted from its text before the call
	Usage       Usage // of the model call; Steps and ToolCost are not used
	StartedAt   time.Time
	CompletedAt time.Time
}

// Call gives the end of the step's tool call number seq; ok is false while it has not
// ended.
func (st Step) Call(seq int64) (c Call, ok bool) {
	i := slices.IndexFunc(st.Calls, func(c Call) bool { return c.Seq == seq })
	if i < 0 {
		return c, false
	}
	return st.Calls[i], true
}

// Approval gives what the step's tool call number seq needs before it may run; ok is
// false where that is nothing.
func (st Step) Approval(seq int64) (a Approval, ok bool) {
	i := slices.IndexFunc(st.Approvals, func(a Approval) bool { return a.Call == seq })
	if i < 0 {
		return a, false
	}
	return st.Approvals[i], true
}

// used is what the model call adds to the sums.
func (st Step) used() Usage {
	u := st.Usage
	u.Steps, u.ToolCost = 1, 0
	return u
}

// Worked is how long the calls of a journal took. What lay between them, such as a
// wait for a person, is not work.
func Worked(steps []Step) time.Duration {
	var d time.Duration
	for _, st := range steps {
		d += st.CompletedAt.Sub(st.StartedAt)
		for _, c := range st.Calls {
			d += c.CompletedAt.Sub(c.StartedAt)
		}
	}
	return d
}

// AnswerText is the answer that a journal gives: the text after its last tool call,
// or if there is none, its last text.
func AnswerText(steps []Step) string {
	for _, st := range slices.Backward(steps) {
		var before, after []string // the step's last tool call
		for _, p := range st.Parts {
			switch {
			case p.Type == PartText && strings.TrimSpace(p.Text) != "":
				after = append(after, p.Text)
			case p.Type == PartToolCall && len(after) > 0:
				before, after = after, nil
			}
		}
		if len(after) == 0 {
			after = before
		}
		if len(after) > 0 {
			return strings.Join(after, "\n\n")
		}
	}
	return ""
}

// A CallState is how a tool call ended.
type CallState string

// The ends of a tool call. An interrupted one was cut off by the end of the
// process and may have acted all the same.
const (
	CallCompleted   CallState = "completed"
	CallFailed      CallState = "error"
	CallInterrupted CallState = "interrupted"
)

// A Call is a tool call that has ended.
type Call struct {
	Step        int64
	Seq         int64 // among the step's tool calls
	State       CallState
	Output      json.RawMessage // an error: its message, as a JSON string
	Cost        int64           // nano-dollars
	StartedAt   time.Time
	CompletedAt time.Time
}

// JournalStep writes down a finished model call of a claimed turn, so that it is
// never made again. It is ErrClaimLost where the turn is not the runner's any more.
func (s *Store) JournalStep(ctx context.Context, c Claim, st Step) error {
	return s.write(ctx, func(tx *Tx) error {
		if err := s.addToTurn(tx, c, st.Model, st.used()); err != nil {
			return err
		}
		return s.insertStep(tx, c.Turn, st)
	})
}

// insertStep writes a step down, with the approvals that its calls need.
func (s *Store) insertStep(tx *Tx, t Turn, st Step) error {
	parts, err := json.Marshal(st.Parts)
	if err != nil {
		return fmt.Errorf("encode step: %w", err)
	}
	u := st.Usage
	_, err = tx.Exec(`INSERT INTO steps (turn_num, seq, attempt, parts, finish, feedback, model, estimated_tokens, input_tokens, output_tokens,
			cache_read_tokens, cache_write_tokens, reasoning_tokens, cost, started_at, completed_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		t.Num, st.Seq, st.Attempt, string(parts), st.Finish, st.Feedback, st.Model, st.Estimated, u.InputTokens, u.OutputTokens,
		u.CacheReadTokens, u.CacheWriteTokens, u.ReasoningTokens, u.ModelCost, st.StartedAt.UnixMilli(), st.CompletedAt.UnixMilli())
	if err != nil {
		return err
	}
	return s.insertApprovals(tx, t, st)
}

// JournalCall writes down a tool call that has ended, with the files it published
// and the sources it used: one transaction, so that a call is never made again and
// its effects are never half there.
func (s *Store) JournalCall(ctx context.Context, c Claim, call Call, files []File, sources []Source) error {
	return s.write(ctx, func(tx *Tx) error {
		if err := s.addToTurn(tx, c, "", Usage{ToolCost: call.Cost}); err != nil {
			return err
		}
		_, err := tx.Exec(`INSERT INTO tool_calls (turn_num, step_seq, seq, state, output, cost, started_at, completed_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, c.Num, call.Step, call.Seq, call.State, string(call.Output), call.Cost,
			call.StartedAt.UnixMilli(), call.CompletedAt.UnixMilli())
		if err != nil {
			return err
		}
		now := s.millis()
		for _, f := range files {
			if err := s.insertFile(tx, c.Turn, Published, f, now); err != nil {
				return err
			}
		}
		for _, src := range sources {
			_, err := tx.Exec(`INSERT INTO sources (id, task_num, turn_num, url, title, created_at) VALUES (?, ?, ?, ?, ?, ?)
				ON CONFLICT (task_num, url) DO NOTHING`, src.ID, c.TaskNum, c.Num, src.URL, nullable(src.Title), now)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// addToTurn makes sure that the turn is still the claim's, and adds to its figures.
// It comes first in a write: what has lost its claim may find its rows written by
// whoever has the turn now.
func (s *Store) addToTurn(tx *Tx, c Claim, model string, u Usage) error {
	n, err := tx.Exec(`UPDATE turns SET `+addUsage+` WHERE num = ? AND status = 'running' AND runner_id = ?`,
		slices.Concat(usageArgs(model, u), []any{c.Num, c.RunnerID})...)
	if err != nil {
		return err
	}
	if n == 0 {
		return ErrClaimLost
	}
	if cost := u.Cost(); cost != 0 {
		if _, err := tx.Exec(`UPDATE tasks SET cost = cost + ? WHERE num = ?`, cost, c.TaskNum); err != nil {
			return err
		}
	}
	if u == (Usage{}) {
		return nil
	}
	return s.meter(tx, c.Turn, u, false)
}

// addUsage adds usageArgs to a turn's figures. A finished call is progress, so the
// interruptions before it count no more.
const addUsage = `interruptions = 0, model = coalesce(?, model), steps = steps + ?, input_tokens = input_tokens + ?,
	output_tokens = output_tokens + ?, cache_read_tokens = cache_read_tokens + ?, cache_write_tokens = cache_write_tokens + ?,
	reasoning_tokens = reasoning_tokens + ?, model_cost = model_cost + ?, tool_cost = tool_cost + ?`

func usageArgs(model string, u Usage) []any {
	return []any{nullable(model), u.Steps, u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens,
		u.ReasoningTokens, u.ModelCost, u.ToolCost}
}

const stepColumns = `s.turn_num, s.seq, s.attempt, s.parts, s.finish, s.feedback, s.model, s.estimated_tokens, s.input_tokens, s.output_tokens,
	s.cache_read_tokens, s.cache_write_tokens, s.reasoning_tokens, s.cost, s.started_at, s.completed_at`

type turnStep struct {
	turn int64
	Step
}

func scanStep(row scanner) (st turnStep, err error) {
	var parts string
	var started, completed int64
	u := &st.Usage
	err = row.Scan(&st.turn, &st.Seq, &st.Attempt, &parts, &st.Finish, &st.Feedback, &st.Model, &st.Estimated, &u.InputTokens, &u.OutputTokens,
		&u.CacheReadTokens, &u.CacheWriteTokens, &u.ReasoningTokens, &u.ModelCost, &started, &completed)
	if err != nil {
		return st, err
	}
	st.StartedAt, st.CompletedAt = fromMillis(started), fromMillis(completed)
	if err := json.Unmarshal([]byte(parts), &st.Parts); err != nil {
		return st, fmt.Errorf("decode step: %w", err)
	}
	return st, nil
}

type turnCall struct {
	turn int64
	Call
}

func scanCall(row scanner) (c turnCall, err error) {
	var output string
	var started, completed int64
	err = row.Scan(&c.turn, &c.Step, &c.Seq, &c.State, &output, &c.Cost, &started, &completed)
	c.Output = json.RawMessage(output)
	c.StartedAt, c.CompletedAt = fromMillis(started), fromMillis(completed)
	return c, err
}

const callColumns = `c.turn_num, c.step_seq, c.seq, c.state, c.output, c.cost, c.started_at, c.completed_at`

// Journal gives the steps of one turn in order, with their tool calls and approvals.
func (s *Store) Journal(ctx context.Context, turnNum int64) ([]Step, error) {
	return s.journal(ctx, s, turnNum)
}

func (s *Store) journal(ctx context.Context, q querier, turnNum int64) ([]Step, error) {
	steps, err := all(ctx, q, scanStep, `SELECT `+stepColumns+` FROM steps s WHERE s.turn_num = ? ORDER BY s.seq`, turnNum)
	if err != nil || len(steps) == 0 {
		return nil, err
	}
	calls, err := all(ctx, q, scanCall, `SELECT `+callColumns+` FROM tool_calls c WHERE c.turn_num = ? ORDER BY c.step_seq, c.seq`, turnNum)
	if err != nil {
		return nil, err
	}
	approvals, err := all(ctx, q, scanApproval, `SELECT `+approvalColumns+` FROM approvals a`+joinApproval+`
		WHERE a.turn_num = ? ORDER BY a.step_seq, a.call_seq`, turnNum)
	return joinCalls(steps, calls, approvals)[turnNum], err
}

// joinCalls puts calls and approvals into their steps. They are journaled after the
// steps, or with them: what was read in between has no step here.
func joinCalls(steps []turnStep, calls []turnCall, approvals []turnApproval) map[int64][]Step {
	journal := map[int64][]Step{}
	for _, st := range steps {
		journal[st.turn] = append(journal[st.turn], st.Step)
	}
	find := func(turn, seq int64) *Step {
		list := journal[turn]
		if i, ok := slices.BinarySearchFunc(list, seq, func(st Step, seq int64) int { return cmp.Compare(st.Seq, seq) }); ok {
			return &list[i]
		}
		return nil
	}
	for _, c := range calls {
		if st := find(c.turn, c.Step); st != nil {
			st.Calls = append(st.Calls, c.Call)
		}
	}
	for _, a := range approvals {
		if st := find(a.turn, a.Step); st != nil {
			a.describe(st.Parts)
			st.Approvals = append(st.Approvals, a.Approval)
		}
	}
	return journal
}

// A Conversation is all of a task: its turns, their journals, files and sources.
type Conversation struct {
	Turns   []Turn
	Steps   map[int64][]Step // by turn num
	Files   []File           // attached and published, oldest first
	Sources []Source
}

// Conversation reads a task whole. The caller has checked that it may be seen.
// What is being written meanwhile may be there in part, never a call before its
// step.
func (s *Store) Conversation(ctx context.Context, taskNum int64) (c Conversation, err error) {
	if c.Turns, err = s.Turns(ctx, taskNum); err != nil {
		return c, err
	}
	steps, err := all(ctx, s, scanStep, `SELECT `+stepColumns+` FROM turns t CROSS JOIN steps s ON s.turn_num = t.num
		WHERE t.task_num = ? ORDER BY t.seq, s.seq`, taskNum)
	if err != nil {
		return c, err
	}
	calls, err := all(ctx, s, scanCall, `SELECT `+callColumns+` FROM turns t CROSS JOIN tool_calls c ON c.turn_num = t.num
		WHERE t.task_num = ? ORDER BY t.seq, c.step_seq, c.seq`, taskNum)
	if err != nil {
		return c, err
	}
	approvals, err := all(ctx, s, scanApproval, `SELECT `+approvalColumns+` FROM approvals a`+joinApproval+`
		WHERE a.task_num = ? ORDER BY a.num`, taskNum)
	if err != nil {
		return c, err
	}
	c.Steps = joinCalls(steps, calls, approvals)
	if c.Files, err = all(ctx, s, scanFile, `SELECT `+fileColumns+` FROM files WHERE task_num = ? ORDER BY num`, taskNum); err != nil {
		return c, err
	}
	c.Sources, err = all(ctx, s, scanSource, `SELECT id, turn_num, url, title FROM sources WHERE task_num = ? ORDER BY num`, taskNum)
	return c, err
}

// A Source is a web page that an answer rests on.
type Source struct {
	ID      string // from NewID("src", ...)
	TurnNum int64
	URL     string
	Title   string // '' without one
}

func scanSource(row scanner) (src Source, err error) {
	var title sql.NullString
	err = row.Scan(&src.ID, &src.TurnNum, &src.URL, &title)
	src.Title = title.String
	return src, err
}

// IsNotFound reports whether err says that something does not exist.
func IsNotFound(err error) bool { return IsKind(err, NotFound) || errors.Is(err, sql.ErrNoRows) }
