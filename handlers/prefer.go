package handlers

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"journeyman/handlers/serve"
)

// forever is a wait without a time limit.
const forever = time.Duration(1<<63 - 1)

// A preference says how a client wants to wait (RFC 7240).
type preference struct {
	async   bool
	wait    time.Duration // forever unless waits
	waits   bool          // the client named a time
	strict  bool          // unknown fields are errors
	applied string        // the preferences that the answer follows, for Preference-Applied
}

// prefer reads the Prefer header. It ignores preferences that it does not understand, as
// the RFC requires.
func prefer(r *http.Request) preference {
	p := preference{wait: forever}
	var applied []string
	handled := false
	for _, field := range serve.ListHeader(r, "Prefer") {
		field, _, _ = strings.Cut(field, ";") // no preference that we know has parameters
		name, arg, _ := strings.Cut(field, "=")
		arg = strings.Trim(strings.TrimSpace(arg), `"`)
		// Of a preference that is repeated, the first counts (RFC 7240, section 2).
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "handling":
			if !handled {
				handled, p.strict = true, strings.EqualFold(arg, "strict")
			}
		case "respond-async":
			if !p.async {
				p.async = true
				applied = append(applied, "respond-async")
			}
		case "wait":
			// 31 bits of seconds fit into a Duration.
			n, err := strconv.ParseUint(arg, 10, 31)
			if err == nil && !p.waits {
				p.waits, p.wait = true, time.Duration(n)*time.Second
				applied = append(applied, "wait="+strconv.FormatUint(n, 10))
			}
		}
	}
	p.applied = strings.Join(applied, ", ")
	return p
}
