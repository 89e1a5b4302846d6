package sandbox

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/matryer/is"
)

func TestCapture(t *testing.T) {
	t.Parallel()
	const keptHead, keptTail = 16 << 10, 48 << 10
	for name, size := range map[string]int{
		"nothing": 0, "little": 10, "all of the head": keptHead, "one more": keptHead + 1, "all that fits": keptHead + keptTail,
		"one too many": keptHead + keptTail + 1, "much": 1 << 20, "to the ring's end": keptHead + 3*keptTail,
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			whole := make([]byte, size)
			random := rand.New(rand.NewPCG(1, uint64(size)))
			for i := range whole {
				whole[i] = byte('a' + random.IntN(26))
			}
			c := &capture{keptHead: keptHead, keptTail: keptTail}
			for rest := whole; len(rest) > 0; {
				n := min(1+random.IntN(70_000), len(rest))
				written, err := c.Write(rest[:n])
				is.NoErr(err)
				is.Equal(written, n)
				rest = rest[n:]
			}
			text := c.text()
			if size <= keptHead+keptTail {
				is.Equal(text, string(whole))
				return
			}
			is.True(strings.Contains(text, fmt.Sprintf("\n[... %d bytes left out; ", size-keptHead-keptTail)))
			is.True(strings.HasPrefix(text, string(whole[:keptHead])+"\n[... "))
			is.True(strings.HasSuffix(text, " ...]\n"+string(whole[size-keptTail:])))
		})
	}
}

func TestCaptureMakesText(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := &newOutputs().stderr
	for range 100_000 {
		_, _ = c.Write([]byte("ä")) // the cuts fall inside characters
	}
	_, _ = c.Write([]byte{0xff})
	text := c.text()
	is.True(utf8.ValidString(text))
}
