package mail

import (
	"bytes"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
)

// FuzzSession sends random bytes to the server. It must answer or close the connection, and must
// store only acknowledged mails.
func FuzzSession(f *testing.F) {
	f.Add([]byte("EHLO a\r\nMAIL FROM:<a@b.c>\r\nRCPT TO:<WORKER>\r\nDATA\r\nSubject: a\r\n\r\nb\r\n.\r\nQUIT\r\n"))
	f.Add([]byte("EHLO a\r\nMAIL FROM:<a@b.c> SIZE=1 BODY=8BITMIME\r\nRCPT TO:<WORKER>\r\nBDAT 5\r\nab\r\n\r\nBDAT 0 LAST\r\nRSET\r\n"))
	f.Add([]byte("STARTTLS\r\n\x16\x03\x01"))
	f.Add([]byte("HELO [127.0.0.1]\r\nMAIL FROM:<\"a b\"@c>\r\nRCPT TO:<@x,@y:WORKER>\r\nVRFY x\r\nHELP\r\n"))
	tlsConfig, err := LoadTLS("", "", domain, time.Now())
	is.New(f).NoErr(err)
	p := newPost(f, true, func(c *Config) {
		c.TLS, c.Limits.Idle, c.MaxSize, c.Limits.PerAddress = tlsConfig, 100*time.Millisecond, 10_000, 500
	})
	owner, address := p.owner.Caller, p.address()
	var got atomic.Int64 // 250 answers that end a mail
	f.Fuzz(func(t *testing.T, said []byte) {
		is := is.New(t)
		said = bytes.ReplaceAll(said, []byte("WORKER"), []byte(address))
		c, err := net.Dial("tcp", p.addr)
		is.NoErr(err)
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = c.Write(said) // the server may close the connection first
		_ = c.(*net.TCPConn).CloseWrite()
		answers, _ := io.ReadAll(c)
		if !bytes.HasPrefix(answers, []byte("220 "+domain)) {
			t.Errorf("greeted with %q", answers)
		}
		for line := range bytes.Lines(answers) {
			if len(line) < 4 || line[0] < '2' || line[0] > '5' {
				t.Errorf("answered %q", line)
			}
		}
		accepted := got.Add(int64(bytes.Count(answers, []byte("OK: queued"))))
		list, _, err := p.store.Effects.Emails(t.Context(), owner, store.EmailQuery{Limit: 1000})
		is.NoErr(err)
		if stored := int64(len(list)); stored > accepted && accepted < 900 {
			t.Errorf("%d mails kept, %d acknowledged", stored, accepted)
		}
	})
}
