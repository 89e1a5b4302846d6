package model

import (
	"slices"
	"strings"
)

// saveVerbs are the words that announce that something is to be saved.
const saveVerbs = " write save put store export create output record dump produce generate make copy convert place " +
	"publish report append draft "

// findTarget finds the file that the answer is to be saved to, and the text to
// save where the input gives it. A file that is only saved to is no source.
func (w *wishes) findTarget(input string, found []mention) {
	best, bestRank, bestVerb := -1, 0, 0
	for i := range found {
		if rank, verb := targetRank(input, found[i]); rank > bestRank {
			best, bestRank, bestVerb = i, rank, verb
		}
	}
	if best < 0 {
		return
	}
	w.target = strings.TrimPrefix(found[best].name, "./")
	for i := range found {
		if i >= best && found[i].name == found[best].name {
			found[i].source = false
		}
	}
	w.literal = literalText(input, found[best], bestVerb)
}

// targetRank says how clearly the words before a mention make it the place to
// save to: 3 "save ... to NAME", 2 "create NAME", 1 "put ... in NAME", 0 not at
// all. verb is where the text after the verb begins.
func targetRank(input string, m mention) (rank, verb int) {
	sentence := sentenceStart(input, m.start)
	before := input[sentence:m.start]
	words := strings.Fields(strings.ToLower(before))
	for len(words) > 0 && hasWord(" the a an new file text markdown document called named workspace ", words[len(words)-1]) {
		words = words[:len(words)-1]
	}
	if len(words) == 0 {
		return 0, 0
	}
	last := strings.Trim(words[len(words)-1], "`\"'“‘,:")
	verb = sentence + verbEnd(before)
	switch {
	case last == "into":
		return 3, verb
	case verb == sentence:
		return 0, 0
	case last == "to" || last == "as":
		return 3, verb
	case hasWord(saveVerbs, last) && last != "publish" && last != "report":
		return 2, verb
	case last == "in" || last == "under" || last == "at":
		return 1, verb
	}
	return 0, 0
}

// sentenceStart is where the sentence around at begins.
func sentenceStart(input string, at int) int {
	const most = 2000 // bytes: further back nobody looks for the verb
	start := max(at-most, 0)
	for _, end := range []string{". ", "! ", "? ", "; ", "\n"} {
		if i := strings.LastIndex(input[max(at-most, 0):at], end); i >= 0 {
			start = max(start, max(at-most, 0)+i+len(end))
		}
	}
	return start
}

// verbEnd is where the last save verb in text ends, 0 if there is none.
func verbEnd(text string) int {
	end, at := 0, 0
	for _, field := range strings.Fields(text) {
		at += strings.Index(text[at:], field) + len(field)
		if hasWord(saveVerbs, strings.ToLower(strings.Trim(field, ",:\"'`*_-"))) {
			end = at
		}
	}
	return end
}

// literalText gives the text to save if the input spells it out: after "NAME:",
// after "containing", in quotation marks, or as a few words between the verb and
// the name that do not point to something else.
func literalText(input string, m mention, verb int) string {
	after := input[m.end:]
	if strings.HasSuffix(input[m.start:m.end], ":") {
		after = ":" + after // the colon counted as part of the word
	}
	if rest, ok := strings.CutPrefix(after, ":"); ok && strings.TrimSpace(rest) != "" {
		return blockText(rest)
	}
	trimmed := strings.TrimSpace(after)
	for _, lead := range []string{"with the content ", "with the text ", "with content ", "containing ", "that says ", "saying ", "with "} {
		rest, ok := strings.CutPrefix(trimmed, lead)
		if !ok {
			continue
		}
		if quoted := quotation(rest); quoted != "" {
			return quoted
		}
		if lead != "with " {
			return strings.TrimRight(firstLine(rest), ".")
		}
	}
	if verb <= 0 || verb > m.start {
		return ""
	}
	return spokenText(input[verb:m.start])
}

// spokenText reads what stands between the verb and the name.
func spokenText(between string) string {
	if quoted := quotation(between); quoted != "" {
		return quoted
	}
	words := strings.Fields(between)
	const leading = " to into as in under at the a file called named "
	for len(words) > 0 && hasWord(leading, strings.ToLower(words[len(words)-1])) {
		words = words[:len(words)-1]
	}
	const pointing = " a an the it its this that them these those your my our his her their all every each some any " +
		"down up out me us answer answers result results summary report output data everything what which how " +
		"one two three four five six seven eight nine ten "
	named := func(s string) bool { return fileName(strings.Trim(s, ",.`\"")) }
	if len(words) == 0 || len(words) > 12 || slices.ContainsFunc(words, named) ||
		hasWord(pointing, strings.ToLower(words[0])) || strings.ContainsAny(words[0], "0123456789") {
		return ""
	}
	return strings.Join(words, " ")
}

// quotation gives the first text in quotation marks that is not a file's name.
func quotation(text string) string {
	for _, q := range quotePairs {
		rest := text
		for {
			_, after, opened := strings.Cut(rest, q[0])
			inside, further, closed := strings.Cut(after, q[1])
			if !opened || !closed {
				break
			}
			if strings.TrimSpace(inside) != "" && !fileName(inside) {
				return inside
			}
			rest = further
		}
	}
	return ""
}

// blockText gives the text of the first fenced block, or all of it if there is
// none.
func blockText(text string) string {
	var open fence
	start := 0
	for at := 0; at < len(text); {
		line, next := nextLine(text, at)
		switch {
		case open.size == 0:
			open, start = openFence(line), next
		case open.closes(line):
			return text[start:at]
		}
		at = next
	}
	return strings.TrimSpace(text)
}
