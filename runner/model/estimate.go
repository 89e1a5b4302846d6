package model

import "strconv"

// BytesPerToken is the average length of a token in English text and code.
const BytesPerToken = 4

// EstimateUsage returns the estimated tokens of a call, from the length of the request and of
// the produced parts. It is used by the offline model, and for answers without usage. Both
// counts are at least 1.
func EstimateUsage(req *Request, produced []Part) Usage {
	in := len(req.Preamble) + len(req.Instructions) + len(req.OutputSchema)
	for _, m := range req.Messages {
		in += partBytes(m.Parts, "")
	}
	for _, t := range req.Tools {
		in += len(t.Name) + len(t.Description) + len(t.InputSchema)
	}
	return Usage{
		InputTokens:     max(tokens(in), 1),
		OutputTokens:    max(tokens(partBytes(produced, "")), 1),
		ReasoningTokens: tokens(partBytes(produced, PartReasoning)),
	}
}

// partBytes returns the total bytes of the parts of one type, or of all types if only is empty.
// It excludes Aside parts.
func partBytes(parts []Part, only PartType) int {
	n := 0
	for i := range parts {
		// Asides contain dates and names, so with them equal inputs would have different costs.
		if p := &parts[i]; !p.Aside && (only == "" || p.Type == only) {
			n += len(p.Text) + len(p.ToolName) + len(p.Input) + len(p.Path)
		}
	}
	return n
}

func tokens(bytes int) int64 { return int64((bytes + BytesPerToken - 1) / BytesPerToken) }

// FormatTokens returns a number of tokens with commas between its thousands.
func FormatTokens(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && n > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
