package model

import (
	"context"
	"unicode"
	"unicode/utf8"
)

// EmitText emits text word by word, each with the following space, as deltas like d. Models
// that have the whole answer at once use it. It returns ctx's error if ctx ends first.
func EmitText(ctx context.Context, d Delta, text string, emit func(Delta)) error {
	for n := 0; text != ""; n++ {
		// Checking ctx for each word would take longer than the word.
		if n%256 == 255 && ctx.Err() != nil {
			return ctx.Err()
		}
		end := wordEnd(text)
		d.Text, text = text[:end], text[end:]
		emit(d)
	}
	return nil
}

// wordEnd returns the index after the first word and the following space.
func wordEnd(text string) int {
	word, gap := false, false
	for i, r := range text {
		space := unicode.IsSpace(r)
		if gap && !space {
			return i
		}
		word = word || !space
		gap = word && space
	}
	return len(text)
}

// callDelta is the maximum number of bytes of arguments in one delta.
const callDelta = 1 << 10

// EmitCall emits the tool call p, which has that index, in pieces of about a kilobyte.
func EmitCall(p Part, index int, emit func(Delta)) {
	d := Delta{Part: index, Type: PartToolCall, CallID: p.CallID, ToolName: p.ToolName}
	for rest := string(p.Input); rest != ""; {
		end := min(len(rest), callDelta)
		for end < len(rest) && end > callDelta-utf8.UTFMax && !utf8.RuneStart(rest[end]) {
			end-- // do not split a character
		}
		d.Text, rest = rest[:end], rest[end:]
		emit(d)
	}
}
