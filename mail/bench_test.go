package mail

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"journeyman/store"
)

// BenchmarkReceive receives mails over SMTP, one connection each. The answer to a mail comes after
// its task is committed.
func BenchmarkReceive(b *testing.B) {
	for _, size := range []int{2 << 10, 1 << 20} {
		for _, peers := range []int{1, 8, 32} {
			b.Run(fmt.Sprintf("size=%d/peers=%d", size, peers), func(b *testing.B) { receive(b, size, peers) })
		}
	}
}

func receive(b *testing.B, size, peers int) {
	p := newPost(b, true, func(c *Config) { c.Loops, c.Limits.PerAddress = store.MailLimits{PerThread: -1, PerSender: -1}, 500 })
	const line = "A line of a mail that says nothing of interest to anybody in it.\r\n"
	body := strings.Repeat(line, size/len(line))
	var n atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range peers {
		wg.Go(func() {
			for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
				if a := p.send("ann@example.com", p.address(), letter(body, fmt.Sprintf("Message-ID: <%d@example.com>", i))); !strings.HasPrefix(a, "250") {
					b.Error(a)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "mails/s")
}
