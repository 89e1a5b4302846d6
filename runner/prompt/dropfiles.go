package prompt

import (
	"cmp"
	"slices"

	"journeyman/runner/model"
	"journeyman/store"
)

// A shownFile is a file whose contents are sent.
type shownFile struct {
	store.CompactedFile
	saved int64 // estimated tokens that are saved if only its name is sent
}

// dropAttachments proposes to send only the names of some files of turns up to last. It chooses the largest file, and
// further ones until the request has at most goal tokens. The files stay in the workspace.
func (c *Compactor) dropAttachments(last, goal int64) (Proposal, bool) {
	conv := &c.prompt.conversation
	m := store.Compaction{Kind: store.CompactionFiles, BeforeTurn: last}
	before := c.tokens()
	left := before
	for _, f := range conv.shownFiles(last) {
		m.Files = append(m.Files, f.CompactedFile)
		left -= c.prompt.Calibrated(f.saved)
		// Rendering the conversation takes time, so that is done only when enough seems to be saved.
		if left <= goal {
			left = c.tokensOf(conv.with(m))
		}
		if left <= goal {
			break
		}
	}
	m.Items = int64(len(m.Files))
	return Proposal{Compaction: m}, m.Items > 0 && c.tokensOf(conv.with(m)) < before
}

// shownFiles returns the files of turns up to last whose contents are sent, the largest first. Equally large ones
// are in the order of the conversation. Images of one turn with the same path count as one file.
func (c *conversation) shownFiles(last int64) (files []shownFile) {
	add := func(turn int64, p model.Part) {
		if p.Type != model.PartFile || p.Open == nil {
			return
		}
		f := shownFile{store.CompactedFile{Turn: turn, Path: p.Path},
			estimateFile(p, c.takes) - estimateFile(named(p), c.takes)}
		if f.saved <= 0 {
			return
		}
		if i := slices.IndexFunc(files, func(old shownFile) bool { return old.CompactedFile == f.CompactedFile }); i >= 0 {
			files[i].saved += f.saved
			return
		}
		files = append(files, f)
	}
	for _, p := range c.uncovered() {
		if p.turn > last {
			continue
		}
		_, _ = mapParts(c.shortened(p), func(part model.Part) (model.Part, bool) {
			add(p.turn, part)
			for _, image := range part.Images {
				add(p.turn, image)
			}
			return part, false
		})
	}
	slices.SortStableFunc(files, func(a, b shownFile) int { return cmp.Compare(b.saved, a.saved) })
	return files
}
