//go:build !race

// The race detector makes every parser slower by another factor.

package command_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"journeyman/handlers"
	"journeyman/mail/message"
	"journeyman/runner"
	"journeyman/runner/diff"
	"journeyman/runner/schema"
	"journeyman/runner/tool"
	"journeyman/store"
	"journeyman/store/cron"
)

// An outsideParser reads bytes from outside.
type outsideParser struct {
	name   string
	read   func(in []byte)
	shapes map[string]shape
	most   int // bytes that the parser accepts; 0: more than longInput
}

// A shape returns a hostile input of about n bytes.
type shape func(n int) string

// times returns a shape: head, n bytes of a repeated text, and tail.
func times(head, text, tail string) shape {
	return func(n int) string { return head + strings.Repeat(text, n/len(text)) + tail }
}

// numbered returns a shape of many different parts: format has one verb for the number of the part.
func numbered(head, format, tail string) shape {
	return func(n int) string {
		var b strings.Builder
		b.WriteString(head)
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String() + tail
	}
}

// nested returns a shape of values inside each other.
func nested(head, left, middle, right string) shape {
	return func(n int) string {
		depth := n / (len(left) + len(right))
		return head + strings.Repeat(left, depth) + middle + strings.Repeat(right, depth)
	}
}

// parsers returns the parsers of outside bytes. What a document reader reads is in it, too, because a slow
// reader keeps others waiting.
func parsers() []outsideParser {
	values := map[string]shape{
		"nested lists":   nested("", "[", "1", "]"),
		"nested objects": nested("", `{"a":`, "1", "}"),
		"many keys":      numbered(`{"a":1`, `,"k%d":1`, "}"),
		"one key":        times(`{"a":1`, `,"k":1`, "}"),
		"many values":    times("[1", ",1", "]"),
		"long text":      times(`"`, `\u0041`, `"`), "open": times("", `{"a":[`, "")}
	mail := "From: a@example.com\r\nSubject: x\r\n"
	body := mail + "Content-Type: text/plain\r\n\r\n"
	mails := map[string]shape{
		"many fields": numbered(mail, "X-%d: y\r\n", "\r\ntext"), "one field": times(mail, "X: y\r\n", "\r\ntext"),
		"long field":     times(mail+"References: ", "<a@b> ", "\r\n\r\ntext"),
		"many addresses": numbered(mail+"To: ", "a%d@b,", "\r\n\r\n"),
		"folded":         times(mail+"X: y", "\r\n y", "\r\n\r\ntext"),
		"encoded words":  times("From: a@b\r\nSubject: ", "=?utf-8?q?a?= ", "\r\n\r\n"),
		"comments":       nested(mail+"To: ", "(", "", ")"),
		"quotes":         times(body, "> a\r\n", ""),
		"deep quotes":    times(body, ">", " x"),
		"long line":      times(body, "a", ""), "spaces": times(body, " ", "x"), "blank lines": times(body, "\r\n", ""),
		"On ... wrote": times(body, "On a wrote b\r\n", ""),
		"separators":   times(body, "-----Original Message\r\n", ""),
		"flowed":       times(mail+"Content-Type: text/plain; format=flowed\r\n\r\n", "a \r\n", ""),
		"boundaries":   times(mail+"Content-Type: multipart/mixed; boundary=b\r\n\r\n", "--b\r\n\r\nx\r\n", "--b--"),
		"almost boundaries": times(mail+"Content-Type: multipart/mixed; boundary=bbbbbbbb\r\n\r\n--bbbbbbbb\r\n\r\n",
			"--bbbbbb\r\n", ""),
		"nested parts":      numbered(mail, "Content-Type: multipart/mixed; boundary=b%[1]d\r\n\r\n--b%[1]d\r\n", "x"),
		"parameters":        numbered(mail+"Content-Type: text/plain", "; p*%d=x", "\r\n\r\nx"),
		"base64":            times(mail+"Content-Transfer-Encoding: base64\r\n\r\n", "QUFB", ""),
		"quoted printable":  times(mail+"Content-Transfer-Encoding: quoted-printable\r\n\r\n", "=41 ", ""),
		"tags":              times(mail+"Content-Type: text/html\r\n\r\n", "<b>x", ""),
		"open tags":         times(mail+"Content-Type: text/html\r\n\r\n", "<", ""),
		"comments of pages": times(mail+"Content-Type: text/html\r\n\r\n", "<!--", ""),
		"styles":            times(mail+"Content-Type: text/html\r\n\r\n", "<style>", "")}
	texts := map[string]shape{
		"lines":           times("", "a\n", ""),
		"different lines": numbered("", "%d\n", ""),
		"long line":       times("", "a", "")}
	return []outsideParser{
		{
			name: "JSON body",
			read: func(in []byte) { _, _ = handlers.ParseBody(in) }, shapes: values},
		{
			name: "tool rules",
			read: func(in []byte) { _, _ = store.ParseToolRules(in) }, shapes: values},
		{
			name: "schema", most: schema.MaxSize,
			read: func(in []byte) { _, _ = schema.Compile(in) }, shapes: map[string]shape{
				"nested":     nested("", `{"not":`, "{}", "}"),
				"properties": numbered(`{"properties":{"a":{}`, `,"k%d":{}`, "}}"),
				"enum":       numbered(`{"enum":[0`, `,"%d"`, "]}"),
				"required":   numbered(`{"required":["a"`, `,"%d"`, "]}"),
				"any":        times(`{"anyOf":[{}`, `,{}`, "]}")}},
		{
			name: "schema of a tool", most: schema.MaxSize,
			read: func(in []byte) { _ = schema.CheckForeign(in, 32) }, shapes: values},
		{
			name: "cron",
			read: func(in []byte) { _, _ = cron.Parse(string(in), time.UTC) }, shapes: map[string]shape{
				"list":   times("0", ",0", " * * * *"),
				"ranges": times("0-59/1", ",0-59", " * * * *"),
				"spaces": times("0", " ", "* * * *")}},
		{
			name: "mail header",
			read: func(in []byte) { message.ReadHeader(in) }, shapes: mails},
		{
			name: "mail body",
			read: func(in []byte) {
				_, _ = message.ReadBody(message.ReadHeader(in), in,
					func([]string) ([]string, error) { return nil, nil },
					func(a message.Attachment) error { _, err := io.Copy(io.Discard, a); return err })
			}, shapes: mails},
		{
			name:   "bounce",
			read:   func(in []byte) { message.ReplyIDs(in); message.BounceReason(message.ReadHeader(in), in) },
			shapes: mails},
		{
			name: "Authentication-Results",
			read: func(in []byte) { _, _ = message.ParseAuthResults(string(in)) }, shapes: map[string]shape{
				"results":  times("mx", "; spf=pass smtp.mailfrom=a@b", ""),
				"comments": nested("mx; spf=pass ", "(", "", ")"),
				"quotes":   times(`mx; spf="`, `\"`, `"`), "properties": numbered("mx; spf=pass", " a.b%d=c", "")}},
		{
			name: "address",
			read: func(in []byte) { message.NormalAddress(string(in)) }, shapes: map[string]shape{
				"at signs": times("a", "@", "b"),
				"dots":     times("a@", "b.", "c"),
				"comments": nested("a", "(", "", ")@b")}},
		{
			name: "Markdown of a page",
			read: func(in []byte) {
				if runner.CheapMarkdown(string(in)) {
					_, _ = message.RenderMarkdown(in)
				}
			}, shapes: map[string]shape{
				"stars":       times("", "*a **b ", ""),
				"brackets":    times("", "[", ""),
				"links":       times("", "[a](", ""),
				"backquotes":  numbered("", "`%d``", ""),
				"quotes":      times("", ">", "x"),
				"lists":       times("", "- ", "x"),
				"tables":      times("|a|\n|-|\n", "|", "\n"),
				"references":  numbered("", "[%[1]d]: /x\n[%[1]d]\n", ""),
				"less":        times("", "<", ""),
				"underscores": times("", "a_", "")}},
		{
			name:   "diff",
			read:   func(in []byte) { diff.Lines(strings.Split(string(in), "\n"), strings.Split("x"+string(in), "\n")) },
			shapes: texts},
		{
			name: "image",
			read: func(in []byte) { _, _ = tool.ImageType(in) }, shapes: map[string]shape{
				"png":  times("\x89PNG\r\n\x1a\n", "\x00\x00\x00\x00tEXtAAAA", ""),
				"jpeg": times("\xff\xd8", "\xff\xe0\x00\x02", ""),
				"gif":  times("GIF89a", "\x21\xfe\x00", ""),
				"webp": times("RIFFxxxxWEBP", "VP8X\x00\x00\x00\x00", "")}},
	}
}

// Sizes of the inputs, in bytes. A parser that is linear takes eight times as long for the long one, one
// that sorts takes a little more, and a quadratic one 64 times.
const (
	longInput = 1 << 20 // the short one has an eighth
	maxGrowth = 32
)

// growth returns the CPU time for the long input, and how many times longer it is than for the short one.
func growth(p outsideParser, input shape) (long time.Duration, ratio float64) {
	n := longInput
	if p.most > 0 {
		n = p.most - 200 // a shape adds a few bytes
	}
	long = cpuTime(p, []byte(input(n)))
	short := max(cpuTime(p, []byte(input(n/8))), 4*time.Millisecond) // less is noise
	return long, float64(long) / float64(short)
}

// tooFast is the time below which a ratio says nothing.
const tooFast = 100 * time.Millisecond

// TestParsersGrowSlowly reads hostile inputs of two sizes. With -v it prints the ratios.
func TestParsersGrowSlowly(t *testing.T) {
	for _, p := range parsers() {
		for name, input := range p.shapes {
			long, ratio := growth(p, input)
			t.Logf("%-24s %-20s %8s, %4.1f times", p.name, name, long.Round(100*time.Microsecond), ratio)
			if long >= tooFast && ratio > maxGrowth {
				t.Errorf("%s: %s takes %s, %.0f times as long for 8 times the bytes", p.name, name, long, ratio)
			}
		}
	}
}

// TestQuadraticGrowthIsFound measures a reader that compares each block with all before it.
func TestQuadraticGrowthIsFound(t *testing.T) {
	var equal int
	long, ratio := growth(outsideParser{read: func(in []byte) {
		for i := 0; i < len(in); i += 32 {
			for j := 0; j < i; j += 32 {
				if in[i] == in[j] {
					equal++
				}
			}
		}
	}}, times("", "a", ""))
	if long < tooFast || ratio <= maxGrowth {
		t.Errorf("%s and %.0f times are not found (%d)", long, ratio, equal)
	}
}

// cpuTime returns the shortest CPU time of three runs. A run that takes long is not repeated.
func cpuTime(p outsideParser, in []byte) (best time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range 3 {
		runtime.GC() // garbage of other runs must not count
		before := threadTime()
		p.read(in)
		took := threadTime() - before
		if best == 0 || took < best {
			best = took
		}
		if took > time.Second {
			break
		}
	}
	return best
}

// threadTime returns the CPU time of this thread.
func threadTime() time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
