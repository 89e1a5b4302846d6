package mail

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"journeyman/mail/message"
	"journeyman/store"
)

// maxInstructionAge is the maximum difference between now and the Date of a signed mail that instructs a
// worker. The store recognizes a mail that arrives twice for longer than that.
const maxInstructionAge = 7 * 24 * time.Hour

// A signature of DKIM proves who wrote a mail, but not for whom and when: everybody who received the mail
// can send it again, with other values in all fields that the signature does not cover. So a signature
// counts only if it covers these fields.
var (
	alwaysSigned  = []string{"From", "Subject", "Date", "Message-ID"}
	presentSigned = []string{"To", "Cc", "Content-Type", "MIME-Version", "Content-Transfer-Encoding", "In-Reply-To",
		"References"}
)

// gap returns the reason why a signature that covers the signed fields does not make the mail an instruction
// to all its recipients, "" if it does.
func (s *Server) gap(env Envelope, h message.Header, signed []string) string {
	covers := func(field string) bool {
		return slices.ContainsFunc(signed, func(name string) bool { return strings.EqualFold(name, field) })
	}
	for _, field := range slices.Concat(alwaysSigned, presentSigned) {
		switch n := h.Count(field); {
		case n > 1: // a signature may cover another one than mail programs show
			return "the mail has several " + field + " fields"
		case !covers(field) && (n > 0 || slices.Contains(alwaysSigned, field)):
			return "the signature does not cover the field " + field
		}
	}
	if date, err := h.Date(); err != nil || s.cfg.Now().Sub(date).Abs() > maxInstructionAge {
		return fmt.Sprintf("the Date is not within %d days", maxInstructionAge/(24*time.Hour))
	}
	for _, r := range env.To {
		if !slices.ContainsFunc(h.To, func(address string) bool { return s.names(address, r.worker) }) {
			return "neither To nor Cc names the worker"
		}
	}
	return ""
}

// names reports whether an address is that of a worker or of one of its tasks, or an alias that the operator
// forwards to the worker.
func (s *Server) names(address string, w store.Worker) bool {
	id, _, ours := splitAddress(address, s.cfg.Domain)
	return ours && id == w.ID || slices.Contains(s.cfg.Aliases[address], w.ID)
}

// ParseAliases parses entries of the form ADDRESS=WORKER, such as help@example.com=wrk_1. The result maps an
// address to the ids of its workers.
func ParseAliases(entries []string) (map[string][]string, error) {
	aliases := map[string][]string{}
	for _, entry := range entries {
		address, worker, _ := strings.Cut(strings.TrimSpace(entry), "=")
		normal := message.NormalAddress(address)
		local, host, _ := strings.Cut(normal, "@")
		if local == "" || host == "" || worker == "" || strings.ContainsAny(normal, " <>") {
			return nil, fmt.Errorf("%q must be ADDRESS=WORKER, such as help@example.com=wrk_0123", entry)
		}
		aliases[normal] = append(aliases[normal], strings.ToLower(worker))
	}
	return aliases, nil
}
