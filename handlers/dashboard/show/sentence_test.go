package show

import (
	"testing"

	"github.com/matryer/is"
)

func TestSentence(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                     "",
		"the model is unknown": "The model is unknown.",
		"The end.":             "The end.",
		"überlastet":           "Überlastet.",
		"模型不存在":                "模型不存在.",
		"“m” is unknown":       "“m” is unknown.",
	} {
		is := is.New(t)
		is.Equal(Sentence(text), want) // a character of several bytes stays whole
	}
}
