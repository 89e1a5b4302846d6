package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"journeyman/store/db"
)

// A CompactionKind is the way in which a part of a conversation was shortened.
type CompactionKind string

// The kinds of compactions: what is shortened, and what remains.
const (
	CompactionCut      CompactionKind = "cut"      // outputs and arguments of tools; their beginning and end remain
	CompactionFiles    CompactionKind = "files"    // some files; their names remain
	CompactionSummary  CompactionKind = "summary"  // everything; a summary by a model remains
	CompactionOmission CompactionKind = "omission" // everything; a note remains
)

// A Compaction shortens the beginning of a conversation, so that the rest fits the model.
// The beginning ends before step BeforeStep of the turn with the seq BeforeTurn, or if
// BeforeStep is 0, before that turn. A CompactionFiles instead lists its files. They belong to turns up to BeforeTurn.
type Compaction struct {
	Num          int64
	TurnNum      int64 // the turn that needed it
	Step         int64 // the step that needed it
	Kind         CompactionKind
	BeforeTurn   int64
	BeforeStep   int64
	CutTo        int64           // of CompactionCut: bytes that remain of each text
	Files        []CompactedFile // of CompactionFiles
	Items        int64           // number of texts, files or model calls that are shortened
	Summary      string          // of CompactionSummary and CompactionOmission: the text instead of the beginning
	Refused      bool            // the provider has refused the request, because it was too long
	Model        string          // the model that the conversation must fit
	Room         int64           // tokens of input that the model is assumed to accept
	TokensBefore int64           // of the request, estimated
	TokensAfter  int64
	Usage        Usage // of the summary; a stored one has only tokens in and out, and the cost
	StartedAt    time.Time
	CompletedAt  time.Time
}

// A CompactedFile is a file of which only the name is sent.
type CompactedFile struct {
	Turn int64  `json:"turn"` // seq of its turn
	Path string `json:"path"` // as in the prompt
}

const compactionColumns = `num, turn_num, step_seq, kind, before_turn, before_step, coalesce(cut_to, 0),
	coalesce(files, 'null'), items, coalesce(summary, ''), refused, model, room, tokens_before, tokens_after, input_tokens,
	output_tokens, cost, started_at, completed_at`

func scanCompaction(row db.Scanner) (c Compaction, err error) {
	var files []byte
	err = row.Scan(&c.Num, &c.TurnNum, &c.Step, &c.Kind, &c.BeforeTurn, &c.BeforeStep, &c.CutTo, &files, &c.Items,
		&c.Summary, &c.Refused, &c.Model, &c.Room, &c.TokensBefore, &c.TokensAfter, &c.Usage.InputTokens,
		&c.Usage.OutputTokens, &c.Usage.ModelCost, db.AsTime(&c.StartedAt), db.AsTime(&c.CompletedAt))
	if err == nil {
		err = json.Unmarshal(files, &c.Files)
	}
	return c, err
}

// JournalCompaction stores a compaction of a claimed turn's conversation, and adds its
// usage to the turn's sums. So a summary is paid for only once.
func (s *Store) JournalCompaction(ctx context.Context, c Claim, m Compaction) error {
	return s.db.Write(ctx, func(tx db.Tx) error {
		if err := claimedProgress(tx, c, "", m.Usage); err != nil {
			return err
		}
		var files sql.NullString
		if m.Kind == CompactionFiles {
			raw, err := json.Marshal(m.Files)
			if err != nil {
				return err
			}
			files = sql.NullString{String: string(raw), Valid: true}
		}
		cutTo := sql.NullInt64{Int64: m.CutTo, Valid: m.Kind == CompactionCut}
		summary := sql.NullString{String: m.Summary, Valid: m.Kind == CompactionSummary || m.Kind == CompactionOmission}
		err := tx.ExecLater(`INSERT INTO compactions (task_num, turn_num, step_seq, kind, before_turn, before_step,
				cut_to, files, items, summary, refused, model, room, tokens_before, tokens_after, input_tokens, output_tokens,
				cost, started_at, completed_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			c.taskNum, c.Num, m.Step, m.Kind, m.BeforeTurn, m.BeforeStep, cutTo, files, m.Items, summary,
			m.Refused, m.Model, m.Room, m.TokensBefore, m.TokensAfter, m.Usage.InputTokens, m.Usage.OutputTokens,
			m.Usage.ModelCost, m.StartedAt.UnixMilli(), m.CompletedAt.UnixMilli())
		if err != nil {
			return err
		}
		return s.addToSums(tx, c.Turn, m.Usage)
	})
}

// Compactions returns the compactions of a task's conversation, oldest first.
func (s *Store) Compactions(ctx context.Context, task TaskRef) ([]Compaction, error) {
	return db.All(ctx, s.db, scanCompaction, `SELECT `+compactionColumns+` FROM compactions WHERE task_num = ?
		ORDER BY num`, task.taskKey())
}
