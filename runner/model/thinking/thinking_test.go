package thinking_test

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/model/thinking"
)

// show returns pieces as text: thinking in braces.
func show(pieces []thinking.Piece) (text string) {
	for _, p := range pieces {
		if p.Thought {
			text += "{" + p.Text + "}"
		} else {
			text += p.Text
		}
	}
	return text
}

func TestSplit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"no thinking":                 {"  The answer is 4.\n", "  The answer is 4.\n"},
		"empty":                       {"", ""},
		"white space only":            {" \n", " \n"},
		"think":                       {"<think>Two and two.</think>4", "{Two and two.}4"},
		"think, lines":                {"\n<think>\nTwo and two.\n</think>\n\n4", "{Two and two.\n}4"},
		"thinking":                    {"<thinking>a</thinking> b", "{a}b"},
		"reasoning":                   {"<reasoning>a</reasoning>b", "{a}b"},
		"thought":                     {"<thought>a</thought>b", "{a}b"},
		"reflection within thinking":  {"<thinking>a<reflection>b</reflection></thinking>c", "{a<reflection>b</reflection>}c"},
		"upper case":                  {"<THINK>a</Think>b", "{a}b"},
		"Mistral":                     {"[THINK]a[/THINK]b", "{a}b"},
		"Kimi":                        {"◁think▷a◁/think▷b", "{a}b"},
		"Seed":                        {"<seed:think>a</seed:think>b", "{a}b"},
		"Cohere":                      {"<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>b<|END_RESPONSE|>", "{a}b"},
		"Gemma":                       {"<|channel>thought\na<channel|>b", "{a}b"},
		"harmony":                     {"<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>", "{a}b"},
		"harmony, preamble":           {"<|channel|>commentary<|message|>a<|end|><|start|>assistant<|channel|>analysis<|message|>b<|end|><|start|>assistant<|channel|>final<|message|>c", "a{b}c"},
		"harmony, call":               {"<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary to=functions.x <|message|>{}<|call|>", "{a}<|channel|>commentary to=functions.x <|message|>{}<|call|>"},
		"answer tag after thinking":   {"<think>a</think>\n<answer>\nb</answer>\n", "{a}b"},
		"answer tag without thinking": {"<answer>b</answer>", "<answer>b</answer>"},
		"two blocks":                  {"<think>a</think><think>b</think>c", "{a\n\nb}c"},
		"empty block":                 {"<think>\n\n</think>\n\nb", "b"},
		"unclosed":                    {"<think>Two and two", "{Two and two}"},
		"unclosed, empty":             {"<think>", ""},
		"only the closing tag":        {"Two and two.\n</think>\n\n4", "{Two and two.\n}4"},
		"closing tag in a line":       {"Two and two.</think>4", "{Two and two.}4"},
		"closing tag, spaces":         {"Two and two. </think> Four", "{Two and two. }Four"},
		"closing tag at the end":      {"Two and two </think>", "{Two and two }"},
		"closing tag first":           {"</think>\n\n4", "4"},
		"nested":                      {"<think>a<think>b</think>c</think>d", "{a<think>b}{c}d"},
		"mentioned":                   {"It begins with <think> and ends.", "It begins with <think> and ends."},
		"end mentioned":               {"It ends with </think> and a line.", "It ends with </think> and a line."},
		"pair mentioned":              {"Text <think>a</think> text", "Text <think>a</think> text"},
		"end quoted":                  {"It ends with \"</think>\"\n", "It ends with \"</think>\"\n"},
		"end before a comma":          {"Use </think>, please", "Use </think>, please"},
		"element with an attribute":   {"<evaluation><reasoning step=\"1\">a</reasoning><score>5</score></evaluation>", "<evaluation><reasoning step=\"1\">a</reasoning><score>5</score></evaluation>"},
		"element think":               {"<a><think step=\"1\">a</think></a>", "<a><think step=\"1\">a</think></a>"},
		"think with an attribute":     {"<think step=\"1\">a</think>b", "{<think step=\"1\">a}b"},
		"end of an element":           {"I end it with\n</reasoning>\nb", "I end it with\n</reasoning>\nb"},
		"end of a thought":            {"a</thought>b", "a</thought>b"},
		"indented":                    {"It ends with the tag\n\n    </think>\n\nStrip all before it.", "It ends with the tag\n\n    </think>\n\nStrip all before it."},
		"indented, tab":               {"It ends with\n\t</think>\nb", "It ends with\n\t</think>\nb"},
		"item":                        {"Tags:\n- <b>\n- </think>\n- </i>", "Tags:\n- <b>\n- </think>\n- </i>"},
		"numbered item":               {"Tags:\n1. </think>\n2. </i>", "Tags:\n1. </think>\n2. </i>"},
		"after an item":               {"Plan:\n- a\n</think>\nb", "{Plan:\n- a\n}b"},
		"in an item":                  {"Plan:\n- a. </think>\nb", "{Plan:\n- a. }b"},
		"one space":                   {"a\n </think>\nb", "{a\n }b"},
		"code":                        {"Use `</think>` here", "Use `</think>` here"},
		"fence":                       {"So:\n```xml\na\n</think>\n```\nb", "So:\n```xml\na\n</think>\n```\nb"},
		"fence first":                 {"```\n<think>\n```\n", "```\n<think>\n```\n"},
		"after a fence":               {"So:\n```\na\n```\nb\n</think>c", "{So:\n```\na\n```\nb\n}c"},
		"only like a tag":             {"<thinker>a", "<thinker>a"},
		"half a tag":                  {"<thin", "<thin"},
		"half a closing tag":          {"<think>a</thi", "{a</thi}"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			pieces, _ := thinking.Split(tt.text, false, false)
			is.Equal(show(pieces), tt.want)
			inPieces(is, tt.text, false, false)
		})
	}
}

// inPieces checks that a text has the same pieces however it arrives, and that shown pieces only become longer
// unless Changes reports it.
func inPieces(is *is.I, text string, open, cut bool) {
	is.Helper()
	whole, _ := thinking.Split(text, open, cut)
	for _, size := range []int{1, 2, 3, 7} {
		s := thinking.Splitter{Open: open}
		shown, changes := "", 0
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			s.Write(rest[:n])
			rest = rest[n:]
			now := strings.TrimSuffix(show(s.Pieces()), "}")
			is.True(s.Changes() != changes || strings.HasPrefix(now, strings.TrimSuffix(shown, "}")))
			shown, changes = now, s.Changes()
		}
		s.Close(cut)
		is.Equal(show(s.Pieces()), show(whole))
	}
}

func TestLearnedThinking(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		cut  bool
		want string
	}{
		"closed":         {"Two and two.\n</think>\n4", false, "{Two and two.\n}4"},
		"with its tag":   {"<think>a</think>b", false, "{a}b"},
		"without a tag":  {"The answer.", false, "The answer."},
		"cut off":        {"Two and", true, "{Two and}"},
		"cut off, later": {"a</think>b", true, "{a}b"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			pieces, unopened := thinking.Split(tt.text, true, tt.cut)
			is.Equal(unopened, name != "with its tag" && name != "without a tag") // kept for the next answer, if cut
			is.Equal(show(pieces), tt.want)
			inPieces(is, tt.text, true, tt.cut)
		})
	}
}

// TestAnswersAreStreamed checks how much of an answer is kept back: only what may be a mark.
func TestAnswersAreStreamed(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var s thinking.Splitter
	s.Write("The <b")
	is.Equal(show(s.Pieces()), "The <b")
	s.Write(" and </thi")
	is.Equal(show(s.Pieces()), "The <b and ")
	s.Write("s")
	is.Equal(show(s.Pieces()), "The <b and </this")
	s = thinking.Splitter{}
	s.Write("<")
	is.Equal(show(s.Pieces()), "")
	s.Write("think>One")
	is.Equal(show(s.Pieces()), "{One}")
}

func FuzzSplit(f *testing.F) {
	for _, text := range []string{"<think>a</think>b", "a</think>b", "`</think>`", "[THINK]a", "◁think▷a◁/think▷",
		"<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>", "a </think> b", "```\n</think>"} {
		f.Add(text, false, false)
		f.Add(text, true, true)
	}
	f.Fuzz(func(t *testing.T, text string, open, cut bool) {
		if len(text) > 1<<12 {
			return
		}
		inPieces(is.New(t), text, open, cut)
	})
}
