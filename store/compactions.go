package store

import (
	"context"
	"database/sql"
	"time"
)

// A CompactionKind says how a part of a conversation is told shorter.
type CompactionKind string

// The kinds of compactions.
const (
	CompactionCut      CompactionKind = "cut"      // outputs and arguments of tools, to their head and tail
	CompactionFiles    CompactionKind = "files"    // attached files are only named
	CompactionSummary  CompactionKind = "summary"  // all, to a summary that a model wrote
	CompactionOmission CompactionKind = "omission" // all, to a note that it was left out
)

// A Compaction says what was left out of a conversation so that it fits its model.
// It holds for what stands before a place in the task: before the step BeforeStep
// of the turn whose seq is BeforeTurn, or where BeforeStep is 0, before that turn.
// Of CompactionFiles, that turn is the last of them.
type Compaction struct {
	Num          int64
	TurnNum      int64 // the turn that was to go on
	Step         int64 // and the step it was to go on with
	Kind         CompactionKind
	BeforeTurn   int64
	BeforeStep   int64
	CutTo        int64  // of CompactionCut: bytes that are left of each text
	Items        int64  // texts, files or model calls that are told shorter
	Summary      string // what is told in their place, of CompactionSummary and CompactionOmission
	Refused      bool   // the provider found the request too long
	Model        string // that the conversation has to fit
	Room         int64  // tokens of input that it is taken to have room for
	TokensBefore int64  // of the request, estimated
	TokensAfter  int64
	Usage        Usage // that the summary took; of a stored one, only tokens in and out and the model\x27s cost
	StartedAt    time.Time
	CompletedAt  time.Time
}

const compactionColumns = `num, turn_num, step_seq, kind, before_turn, before_step, coalesce(cut_to, 0), items, coalesce(summary, ''), refused,
	model, room, tokens_before, tokens_after, input_tokens, output_tokens, cost, started_at, completed_at`

func scanCompaction(row scanner) (c Compaction, err error) {
	var started, completed int64
	err = row.Scan(&c.Num, &c.TurnNum, &c.Step, &c.Kind, &c.BeforeTurn, &c.BeforeStep, &c.CutTo, &c.Items, &c.Summary, &c.Refused,
		&c.Model, &c.Room, &c.TokensBefore, &c.TokensAfter, &c.Usage.InputTokens, &c.Usage.OutputTokens, &c.Usage.ModelCost, &started, &completed)
	c.StartedAt, c.CompletedAt = fromMillis(started), fromMillis(completed)
	return c, err
}

// JournalCompaction writes down what a claimed turn leaves out of its conversation,
// and adds what that took to its figures. A summary is never paid for again.
func (s *Store) JournalCompaction(ctx context.Context, c Claim, m Compaction) error {
	return s.write(ctx, func(tx *Tx) error {
		if err := s.addToTurn(tx, c, "", m.Usage); err != nil {
			return err
		}
		cutTo := sql.NullInt64{Int64: m.CutTo, Valid: m.Kind == CompactionCut}
		summary := sql.NullString{String: m.Summary, Valid: m.Kind == CompactionSummary || m.Kind == CompactionOmission}
		_, err := tx.Exec(`INSERT INTO compactions (task_num, turn_num, step_seq, kind, before_turn, before_step, cut_to, items, summary,
				refused, model, room, tokens_before, tokens_after, input_tokens, output_tokens, cost, started_at, completed_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			c.TaskNum, c.Num, m.Step, m.Kind, m.BeforeTurn, m.BeforeStep, cutTo, m.Items, summary,
			m.Refused, m.Model, m.Room, m.TokensBefore, m.TokensAfter, m.Usage.InputTokens, m.Usage.OutputTokens, m.Usage.ModelCost,
			m.StartedAt.UnixMilli(), m.CompletedAt.UnixMilli())
		return err
	})
}

// Compactions gives what was left out of a task's conversation, in the order in
// which it was. The caller has checked that the task may be seen.
func (s *Store) Compactions(ctx context.Context, taskNum int64) ([]Compaction, error) {
	return all(ctx, s, scanCompaction, `SELECT `+compactionColumns+` FROM compactions WHERE task_num = ? ORDER BY num`, taskNum)
}
