package model

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// waitInText matches a wait in a message: "Please try again in 1m26.4s" (Groq, OpenAI), "Please retry in 21.5s"
// (Gemini), "Please retry after 26 seconds" (Azure), "Your quota will reset after 27s" (Gemini).
var waitInText = regexp.MustCompile(`(?i)(?:try again|retry(?:ing)?|reset|wait|available)(?: again)? *` +
	`(?:in|after|for|at least)? *(?:about |approximately |~ ?)?((?:\d{1,9}(?:\.\d{1,9})? ?(?:` + units + `)[, ]*)+)`)

const units = `milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d`

// onePiece matches a number with its unit, as in 1m26.4s or 2 minutes.
var onePiece = regexp.MustCompile(`(?i)(\d{1,9}(?:\.\d{1,9})?) ?(ms|mil|s|m|h|d)`)

// textWait returns the wait that a message names, or 0.
func textWait(message string) time.Duration {
	if m := waitInText.FindStringSubmatch(message); m != nil {
		return durationOf(m[1])
	}
	return 0
}

// durationOf returns the duration of a text such as 1m26.4s, 120ms, 2 minutes or 0.
func durationOf(text string) time.Duration {
	seconds := 0.0
	for _, m := range onePiece.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.ParseFloat(m[1], 64)
		unit := strings.ToLower(m[2])
		seconds += n * map[string]float64{"ms": 1e-3, "mil": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400}[unit]
	}
	return boundedWait(seconds)
}

// A resetHeader names the header with the end of a limit, and the one with what is left of the limit.
type resetHeader struct{ reset, left string }

func resetHeaders() []resetHeader {
	return []resetHeader{
		{"X-Ratelimit-Reset-Requests", "X-Ratelimit-Remaining-Requests"},                       // OpenAI, Groq
		{"X-Ratelimit-Reset-Tokens", "X-Ratelimit-Remaining-Tokens"},                           // OpenAI, Groq
		{"Anthropic-Ratelimit-Requests-Reset", "Anthropic-Ratelimit-Requests-Remaining"},       // times
		{"Anthropic-Ratelimit-Tokens-Reset", "Anthropic-Ratelimit-Tokens-Remaining"},           // times
		{"X-Ratelimitbysize-Reset-Minute", "X-Ratelimitbysize-Remaining-Minute"},               // Mistral
		{"Ratelimitbysize-Reset", "Ratelimitbysize-Remaining"},                                 // Mistral
		{"X-Ratelimit-Reset-Tokens-Minute", "X-Ratelimit-Remaining-Tokens-Minute"},             // Cerebras
		{"X-Ratelimit-Reset-Requests-Minute", "X-Ratelimit-Remaining-Requests-Minute"},         // Cerebras
		{"X-Ratelimit-Reset", "X-Ratelimit-Remaining"},                                         // OpenRouter, GitHub
		{"Ratelimit-Reset", "Ratelimit-Remaining"},                                             // draft of the IETF
		{"X-Ratelimit-Reset-Req-Minute", "X-Ratelimit-Remaining-Req-Minute"},                   // Mistral
		{"X-Ratelimit-Reset-Tokens-Query-Minute", "X-Ratelimit-Remaining-Tokens-Query-Minute"}, // Mistral
	}
}

// resetWait returns the wait until the exhausted limits of a rate limit end. If no header says which limit is
// exhausted, it is the shortest wait: the backoff does the rest.
func resetWait(h http.Header, now time.Time) (wait time.Duration) {
	exhausted := false
	for _, name := range resetHeaders() {
		d := resetIn(h.Get(name.reset), now)
		left, err := strconv.ParseFloat(h.Get(name.left), 64)
		switch empty := err == nil && left <= 0; {
		case d == 0:
		case empty && (!exhausted || d > wait):
			wait, exhausted = d, true
		case !empty && !exhausted && (wait == 0 || d < wait):
			wait = d
		}
	}
	return wait
}

// resetIn reads the value of such a header: a duration, seconds, a Unix time in seconds or milliseconds, or a time.
func resetIn(text string, now time.Time) time.Duration {
	const longAgo = 1e9 // seconds since 1970: a larger number is a time
	n, err := strconv.ParseFloat(text, 64)
	at, failed := time.Parse(time.RFC3339, text)
	switch {
	case err == nil && n > longAgo*1000:
		return boundedWait(n/1000 - float64(now.UnixMilli())/1000)
	case err == nil && n > longAgo:
		return boundedWait(n - float64(now.UnixMilli())/1000)
	case err == nil:
		return boundedWait(n)
	case failed == nil:
		return boundedWait(at.Sub(now).Seconds())
	}
	return durationOf(text)
}

// readWait sets the wait that the provider requests: by a header, in the body, in the message, or by the limits that
// the headers describe. Most answers have the last ones, so they count only for a rate limit.
func (r *apiError) readWait(h http.Header, now time.Time) {
	if wait := retryAfter(h, now); wait > 0 {
		r.wait = wait
	}
	if r.wait > 0 || r.status != http.StatusTooManyRequests && r.status < 500 {
		return
	}
	if r.wait = textWait(r.message); r.wait == 0 && r.status == http.StatusTooManyRequests {
		r.wait = resetWait(h, now)
	}
}
