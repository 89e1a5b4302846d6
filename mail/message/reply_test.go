package message

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"
)

// TestRenderMarkdownConcurrently renders texts in many goroutines, which share a converter and a policy.
func TestRenderMarkdownConcurrently(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for range 20 {
				page, err := RenderMarkdown(fmt.Appendf(nil, "# %d\n\n| a |\n|:-:|\n| %d |\n\n![p](http://x/%d) <script>", i, i, i))
				want := fmt.Sprintf("<h1>%d</h1>", i)
				if err != nil || !strings.HasPrefix(string(page), want) || !strings.Contains(string(page), fmt.Sprintf("x/%d\"", i)) {
					t.Errorf("%d: %s, %v", i, page, err)
				}
			}
		})
	}
	all.Wait()
}

func TestReplySubject(t *testing.T) {
	t.Parallel()
	for subject, want := range map[string]string{"": "Re: your mail", "A": "Re: A", "re: A": "re: A", "AW: A": "AW: A",
		"Re[2]: A": "Re[2]: A", "Reply": "Re: Reply", "=?x?q?A?=": "Re: =?x?q?A?="} {
		is.New(t).Equal(Reply{Original: Header{Subject: subject}}.Subject(), want)
	}
}
