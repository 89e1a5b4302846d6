package store

import (
	"context"
	"encoding/json"
	"fmt"

	"journeyman/store/db"
)

// JournalStep stores a finished model call of a claimed turn, so that it is never made
// again. It returns ErrClaimLost if the runner no longer has the turn. On a server, a step that is
// stored already is no error: see unlessStored.
//
// It may be locking: its first statement decides on the claim and locks the turn. The others add to
// sums in one statement each, and insert the step. A cap is the exception: see meter. A step that asks
// for approvals reads who may decide on them, and is serializable.
func (s *Store) JournalStep(ctx context.Context, c Claim, st Step) error {
	err := s.db.Hot(ctx, len(st.Approvals) == 0, func(tx db.Tx) error {
		if err := claimedProgress(tx, c, st.Model, st.used()); err != nil {
			return err
		}
		if err := s.insertStep(ctx, tx, c.Turn, st); err != nil {
			return err
		}
		return s.addToSums(tx, c.Turn, st.used())
	})
	return s.unlessStored(ctx, err, `SELECT EXISTS (SELECT 1 FROM steps WHERE turn_num = ? AND seq = ? AND attempt = ?
		AND started_at = ? AND completed_at = ?)`,
		c.Num, st.Seq, st.Attempt, st.StartedAt.UnixMilli(), st.CompletedAt.UnixMilli())
}

// insertStep stores a step, with the approvals that its calls need.
func (s *Store) insertStep(ctx context.Context, tx db.Tx, t Turn, st Step) error {
	parts, err := json.Marshal(st.Parts)
	if err != nil {
		return fmt.Errorf("encode step: %w", err)
	}
	u := st.Usage
	err = tx.ExecLater(`INSERT INTO steps (turn_num, seq, attempt, parts, finish, feedback, model, estimated_tokens,
			input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, cost, started_at,
			completed_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		t.Num, st.Seq, st.Attempt, string(parts), st.Finish, st.Feedback, st.Model, st.Estimated,
		u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.ReasoningTokens, u.ModelCost,
		st.StartedAt.UnixMilli(), st.CompletedAt.UnixMilli())
	if err != nil {
		return err
	}
	return s.insertApprovals(ctx, tx, t, st)
}

// JournalCall stores a tool call that has ended, with its images, the files it published and the
// sources it used. All of it is one transaction: the call is never made again, and none of its
// effects is missing.
//
// It may be locking for the reason that JournalStep may be. It inserts rows of its own turn, and
// sources, of which the unique index keeps the first.
func (s *Store) JournalCall(ctx context.Context, c Claim, call Call, files []File, sources []Source) error {
	err := s.db.Hot(ctx, true, func(tx db.Tx) error {
		used := Usage{ToolCost: call.Cost}
		if err := claimedProgress(tx, c, "", used); err != nil {
			return err
		}
		err := tx.ExecLater(`INSERT INTO tool_calls (turn_num, step_seq, seq, state, output, cost,
				started_at, completed_at, spent_steps, spent_time, spent_credits, spent_by_team)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, c.Num, call.Step, call.Seq, call.State, string(call.Output),
			call.Cost, call.StartedAt.UnixMilli(), call.CompletedAt.UnixMilli(), call.Spent.Steps, call.Spent.Time,
			call.Spent.Credits, call.Spent.ByTeam)
		if err != nil {
			return err
		}
		// The blobs of the images exist already. Their rows keep the sweep from deleting
		// them.
		if err := insertImages(tx, c.Num, call); err != nil {
			return err
		}
		now := s.db.Millis()
		for _, f := range files {
			if err := s.insertFile(tx, c.Turn, Published, f, now); err != nil {
				return err
			}
		}
		// A URL is a source of a task only once, in the first turn that used it.
		for _, src := range sources {
			if s.db.OnServer() && len(src.URL) > longestIndexed {
				continue
			}
			err := tx.ExecLater(`INSERT INTO sources (id, task_num, turn_num, url, title, created_at)
				VALUES (?, ?, ?, ?, ?, ?)
				ON CONFLICT (task_num, url) DO NOTHING`, src.ID, c.taskNum, c.Num, src.URL, db.Nullable(src.Title), now)
			if err != nil {
				return err
			}
		}
		return s.addToSums(tx, c.Turn, used)
	})
	return s.unlessStored(ctx, err, `SELECT EXISTS (SELECT 1 FROM tool_calls WHERE turn_num = ? AND step_seq = ?
		AND seq = ? AND started_at = ? AND completed_at = ?)`,
		c.Num, call.Step, call.Seq, call.StartedAt.UnixMilli(), call.CompletedAt.UnixMilli())
}

// BeginCall stores that a claimed turn calls its model, with the least tokens and cost of the call.
// If the process dies before the answer, the turn is charged with them. The next write to the
// turn's journal removes these values. It returns ErrClaimLost if the runner no longer has the
// turn.
//
// It may be locking: it is one statement, which decides on the row that it changes.
func (s *Store) BeginCall(ctx context.Context, c Claim, tokens, cost int64) error {
	return s.db.Hot(ctx, true, func(tx db.Tx) error {
		return updateClaimed(tx, c, `call_tokens = ?, call_cost = ?`, tokens, cost)
	})
}

// ChargeCall adds the usage of a failed or cut-off model call to the sums of a claimed
// turn. It returns ErrClaimLost if the runner no longer has the turn.
//
// It may be locking for the reason that JournalStep may be.
func (s *Store) ChargeCall(ctx context.Context, c Claim, u Usage) error {
	return s.db.Hot(ctx, true, func(tx db.Tx) error {
		if err := updateClaimed(tx, c, addUsage, usageArgs("", u)...); err != nil {
			return err
		}
		return s.addToSums(tx, c.Turn, u)
	})
}

// claimedProgress adds to a claimed turn's own sums, or returns ErrClaimLost. It must be first
// in a write: once the claim is lost, another runner may have written the same rows. A
// finished call is progress, so claimedProgress also resets the counts of interruptions and of
// failed calls. addToSums adds to the other sums, and is last in the write.
func claimedProgress(tx db.Tx, c Claim, model string, u Usage) error {
	return updateClaimed(tx, c, `interruptions = 0, failing_since = NULL, failed_calls = 0, `+addUsage,
		usageArgs(model, u)...)
}

// addToSums adds to all sums but the turn's own.
func (s *Store) addToSums(tx db.Tx, t Turn, u Usage) error {
	if cost := u.Cost(); cost != 0 {
		if err := tx.ExecLater(`UPDATE tasks SET cost = cost + ? WHERE num = ?`, cost, t.taskNum); err != nil {
			return err
		}
	}
	if u == (Usage{}) {
		return nil
	}
	s.db.Notify(tx, t.OrganizationID, db.ChangedTasks)
	return s.Effects.meter(tx, t, u, false, true)
}

// addUsage adds usageArgs to the columns of a turn, and removes the values that BeginCall stored.
const addUsage = `call_tokens = NULL, call_cost = NULL, model = coalesce(?, model), steps = steps + ?,
	input_tokens = input_tokens + ?, output_tokens = output_tokens + ?, cache_read_tokens = cache_read_tokens + ?,
	cache_write_tokens = cache_write_tokens + ?, reasoning_tokens = reasoning_tokens + ?,
	model_cost = model_cost + ?, tool_cost = tool_cost + ?`

func usageArgs(model string, u Usage) []any {
	return []any{db.Nullable(model), u.Steps, u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens,
		u.ReasoningTokens, u.ModelCost, u.ToolCost}
}
