package task

import (
	"journeyman/handlers/dashboard/show"
	"journeyman/handlers/dashboard/text"
	"journeyman/store"
)

// compactionNotes returns notes on how the conversation was shortened before a step.
func (b *turnBuilder) compactionNotes(turnNum, step int64) (notes []compactionNote, err error) {
	if !b.read {
		b.read = true
		if b.compactions, err = b.d.Store.Compactions(b.r.Context(), b.task); err != nil {
			return nil, err
		}
	}
	for _, c := range b.compactions {
		if c.TurnNum == turnNum && c.Step == step {
			notes = append(notes, compactionNote{compactionText(b.r.Lang, c), show.ExcerptOf(c.Summary, summaryBytes)})
		}
	}
	return notes, nil
}

// A compactionNote describes how the runner shortened a conversation.
type compactionNote struct {
	Text    string
	Summary show.Excerpt // the text that replaces the omitted part; may be empty
}

// compactionText describes a compaction.
func compactionText(l *text.Language, c store.Compaction) string {
	var what string
	switch c.Kind {
	case store.CompactionCut:
		what = l.N(c.Items, "%d long tool output was truncated to %s.", "%d long tool outputs were truncated to %s each.",
			show.Bytes(l, c.CutTo))
	case store.CompactionFiles:
		what = l.N(c.Items, "%d attached file is listed by name only.", "%d attached files are listed by name only.")
	case store.CompactionSummary:
		what = l.N(c.Items, "%d earlier model call was summarised.", "%d earlier model calls were summarised.")
	case store.CompactionOmission:
		what = l.N(c.Items, "%d earlier model call was left out.", "%d earlier model calls were left out.")
	default:
		what = l.T("Part of the conversation was shortened.")
	}
	why := text.Key("The conversation was shortened to fit %s, from about %d to %d tokens.")
	if c.Refused {
		why = "The conversation was too long for %s. It was shortened from about %d to %d tokens."
	}
	return what + " " + l.T(why, c.Model, c.TokensBefore, c.TokensAfter)
}
