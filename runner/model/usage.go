package model

// statedTokens are the counts of a call in the usage of a server with the API of OpenAI. There the output includes
// the reasoning, and the input includes the cached tokens. Some servers count them beside, which only the total shows:
//   - reasoning beside the completion: xAI (docs.x.ai, "Consumption and Rate Limits"; vercel/ai#12425)
//   - thinking in the total alone: Gemini's own door, and converters before Gemini (mozilla-ai/any-llm#1290,
//     router-for-me/CLIProxyAPI#5733 and #5746 for the Responses API)
type statedTokens struct {
	input, output, total, read, write, reasoning looseCount
	otherInputs                                  []looseCount // further kinds of input, such as sound
}

// Limits of tokens that only the total counts. A larger total is wrong, and is not charged.
const (
	maxUncountedOutput = 1 << 17
	maxUncountedInput  = 1 << 21
)

// usage converts the counts. A part of the total that belongs to no other count is output.
func (s statedTokens) usage() Usage {
	input, output, reasoning := max(s.input, 0), max(s.output, 0), max(s.reasoning, 0)
	read, write := max(s.read, 0), max(s.write, 0)
	rest := s.total - input - output
	beside := s.inputBeside(rest, read, write, reasoning)
	switch {
	case rest <= 0:
	case rest == reasoning:
		output += rest
	case beside > 0:
		input, output = input+beside, output+rest-beside
	case input == 0:
		if rest <= maxUncountedInput { // the server has left out the prompt
			input = rest
		}
	case rest <= maxUncountedOutput:
		output, reasoning = output+rest, max(reasoning, rest)
	}
	return Usage{
		InputTokens:      int64(input),
		OutputTokens:     int64(max(output, reasoning)),
		CacheReadTokens:  int64(read),
		CacheWriteTokens: int64(write),
		ReasoningTokens:  int64(reasoning),
	}
}

// inputBeside returns the kind of input that explains the rest of the total, alone or together with the reasoning. It
// returns 0 if none does.
func (s statedTokens) inputBeside(rest, read, write, reasoning looseCount) looseCount {
	for _, kind := range append([]looseCount{read, write, read + write}, s.otherInputs...) {
		if kind > 0 && (rest == kind || rest == kind+reasoning) {
			return kind
		}
	}
	return 0
}
