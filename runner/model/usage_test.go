package model

import (
	"strings"
	"testing"

	"github.com/matryer/is"
)

// TestTokensBesideTheCounts checks that each token is counted once, in each form of usage. The Responses API has the
// same counts with other names.
func TestTokensBesideTheCounts(t *testing.T) {
	t.Parallel()
	names := strings.NewReplacer("prompt_tokens", "input_tokens", "completion_tokens", "output_tokens")
	for name, tt := range map[string]struct {
		usage string
		want  Usage
	}{
		"reasoning within":         {`"prompt_tokens":30,"completion_tokens":12,"total_tokens":42,"completion_tokens_details":{"reasoning_tokens":5}`, Usage{InputTokens: 30, OutputTokens: 12, ReasoningTokens: 5}},
		"reasoning beside":         {`"prompt_tokens":30,"completion_tokens":12,"total_tokens":142,"completion_tokens_details":{"reasoning_tokens":100}`, Usage{InputTokens: 30, OutputTokens: 112, ReasoningTokens: 100}},
		"fewer beside":             {`"prompt_tokens":30,"completion_tokens":12,"total_tokens":47,"completion_tokens_details":{"reasoning_tokens":5}`, Usage{InputTokens: 30, OutputTokens: 17, ReasoningTokens: 5}},
		"no total":                 {`"prompt_tokens":30,"completion_tokens":12,"completion_tokens_details":{"reasoning_tokens":5}`, Usage{InputTokens: 30, OutputTokens: 12, ReasoningTokens: 5}},
		"more than all":            {`"prompt_tokens":30,"completion_tokens":12,"completion_tokens_details":{"reasoning_tokens":50}`, Usage{InputTokens: 30, OutputTokens: 50, ReasoningTokens: 50}},
		"only in the total":        {`"prompt_tokens":20,"completion_tokens":198,"total_tokens":623`, Usage{InputTokens: 20, OutputTokens: 603, ReasoningTokens: 405}},
		"only thinking":            {`"prompt_tokens":21,"completion_tokens":0,"total_tokens":81`, Usage{InputTokens: 21, OutputTokens: 60, ReasoningTokens: 60}},
		"only thinking, counted":   {`"prompt_tokens":21,"completion_tokens":0,"total_tokens":81,"completion_tokens_details":{"reasoning_tokens":60}`, Usage{InputTokens: 21, OutputTokens: 60, ReasoningTokens: 60}},
		"more than the reasoning":  {`"prompt_tokens":30,"completion_tokens":12,"total_tokens":152,"completion_tokens_details":{"reasoning_tokens":100}`, Usage{InputTokens: 30, OutputTokens: 122, ReasoningTokens: 110}},
		"floats":                   {`"prompt_tokens":20.0,"completion_tokens":198.0,"total_tokens":623.0`, Usage{InputTokens: 20, OutputTokens: 603, ReasoningTokens: 405}},
		"texts":                    {`"prompt_tokens":"20","completion_tokens":"198","total_tokens":"623"`, Usage{InputTokens: 20, OutputTokens: 603, ReasoningTokens: 405}},
		"cached beside":            {`"prompt_tokens":30,"completion_tokens":12,"total_tokens":542,"prompt_tokens_details":{"cached_tokens":500}`, Usage{InputTokens: 530, OutputTokens: 12, CacheReadTokens: 500}},
		"cached within, thinking":  {`"prompt_tokens":30,"completion_tokens":12,"total_tokens":142,"prompt_tokens_details":{"cached_tokens":20}`, Usage{InputTokens: 30, OutputTokens: 112, CacheReadTokens: 20, ReasoningTokens: 100}},
		"caches beside":            {`"prompt_tokens":30,"completion_tokens":12,"total_tokens":642,"prompt_tokens_details":{"cached_tokens":500,"cache_write_tokens":100}`, Usage{InputTokens: 630, OutputTokens: 12, CacheReadTokens: 500, CacheWriteTokens: 100}},
		"cached, reasoning beside": {`"prompt_tokens":30,"completion_tokens":12,"total_tokens":549,"prompt_tokens_details":{"cached_tokens":500},"completion_tokens_details":{"reasoning_tokens":7}`, Usage{InputTokens: 530, OutputTokens: 19, CacheReadTokens: 500, ReasoningTokens: 7}},
		"no prompt":                {`"completion_tokens":12,"total_tokens":42`, Usage{InputTokens: 30, OutputTokens: 12}},
		"a smaller total":          {`"prompt_tokens":30,"completion_tokens":12,"total_tokens":5`, Usage{InputTokens: 30, OutputTokens: 12}},
		"a negative total":         {`"prompt_tokens":30,"completion_tokens":12,"total_tokens":-500`, Usage{InputTokens: 30, OutputTokens: 12}},
		"negative counts":          {`"prompt_tokens":30,"completion_tokens":-12,"total_tokens":30`, Usage{InputTokens: 30}},
		"a total of words":         {`"prompt_tokens":30,"completion_tokens":12,"total_tokens":"many"`, Usage{InputTokens: 30, OutputTokens: 12}},
		"a total of nothing":       {`"prompt_tokens":30,"completion_tokens":12,"total_tokens":null`, Usage{InputTokens: 30, OutputTokens: 12}},
		"a huge total":             {`"prompt_tokens":30,"completion_tokens":12,"total_tokens":999999999`, Usage{InputTokens: 30, OutputTokens: 12}},
		"a total beyond numbers":   {`"prompt_tokens":30,"completion_tokens":12,"total_tokens":1e300`, Usage{InputTokens: 30, OutputTokens: 12}},
		"no prompt, a huge total":  {`"completion_tokens":12,"total_tokens":999999999`, Usage{OutputTokens: 12}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := newProvider(t, streams(sse(chunk(`{"content":"x"}`), finished("stop"), `{"choices":[],"usage":{`+tt.usage+`}}`, done)))
			is.Equal(answered(t, openAIAt(t, p.URL, quick()), Request{Messages: []Message{user("hi")}}).Usage, tt.want)

			whole, _, _ := strings.Cut(wholeAnswers()["responses"], `"usage":`)
			q := newProvider(t, answers(200, "application/json", whole+`"usage":{`+names.Replace(tt.usage)+`}}`))
			is.Equal(answered(t, wires()["responses"].at(t, q.URL, quick()), Request{Messages: []Message{user("hi")}}).Usage, tt.want)
		})
	}
	is := is.New(t)
	perplexity := chatUsage{PromptTokens: 30, CompletionTokens: 12, TotalTokens: 62, CitationTokens: 20}
	is.Equal(perplexity.usage(), Usage{InputTokens: 50, OutputTokens: 12})
	var sound chatUsage
	sound.PromptTokens, sound.CompletionTokens, sound.TotalTokens, sound.PromptDetails.AudioTokens = 30, 12, 51, 9
	is.Equal(sound.usage(), Usage{InputTokens: 39, OutputTokens: 12})
}
