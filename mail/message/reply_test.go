package message

import (
	"testing"

	"github.com/matryer/is"
)

func TestReplySubject(t *testing.T) {
	t.Parallel()
	for subject, want := range map[string]string{"": "Re: your mail", "A": "Re: A", "re: A": "re: A", "AW: A": "AW: A",
		"Re[2]: A": "Re[2]: A", "Reply": "Re: Reply", "=?x?q?A?=": "Re: =?x?q?A?="} {
		is.New(t).Equal(Reply{Original: Header{Subject: subject}}.Subject(), want)
	}
}
