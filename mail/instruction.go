package mail

import (
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"

	"journeyman/mail/message"
)

// maxInstructionAge is the maximum difference between now and the Date of a signed mail that instructs a
// worker. The store recognizes a mail that arrives twice for longer than that.
const maxInstructionAge = 7 * 24 * time.Hour

// A signature of DKIM proves who wrote a mail, but not for whom and when: everybody who received the mail
// can send it again, with other values in all fields that the signature does not cover. So a signature
// counts only if it covers these fields.
var (
	alwaysSigned  = []string{"From", "Subject", "Date", "Message-ID"}
	presentSigned = []string{"To", "Cc", "Content-Type", "MIME-Version", "Content-Transfer-Encoding", "Content-Disposition",
		"In-Reply-To", "References", "Reply-To"}
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
	date, err := h.Date()
	switch {
	case err != nil:
		return "the field Date is missing or malformed"
	case s.cfg.Now().Sub(date).Abs() > maxInstructionAge:
		return fmt.Sprintf("the Date is not within %d days", maxInstructionAge/(24*time.Hour))
	case !h.Identified(): // the same mail could come twice
		return "the field Message-ID is missing or malformed"
	}
	for _, r := range env.To {
		if !slices.ContainsFunc(h.To, func(address string) bool { return s.names(address, r) }) {
			return "neither To nor Cc names " + r.Address
		}
	}
	return ""
}

// names reports whether an address is that of a recipient. A mail to a worker or to its alias may not be sent
// to one of the worker's tasks, but a mail to a task may be sent to the worker.
func (s *Server) names(address string, r Recipient) bool {
	_, wanted, _ := splitAddress(r.Address, s.cfg.Domain)
	id, tag, _ := splitAddress(address, message.DomainOf(address))
	ours := message.DomainOf(address) == message.ASCIIDomain(s.cfg.Domain)
	alias := wanted == "" && slices.Contains(s.cfg.Aliases[address], r.worker.ID)
	return alias || ours && id == r.worker.ID && (wanted == "" || strings.EqualFold(tag, wanted))
}

// ParseAliases parses entries of the form ADDRESS=WORKER, such as help@example.com=wrk_1. The result maps an
// address to the ids of its workers.
func ParseAliases(entries []string) (map[string][]string, error) {
	aliases := map[string][]string{}
	for _, entry := range entries {
		address, worker, _ := strings.Cut(strings.TrimSpace(entry), "=")
		parsed, err := mail.ParseAddress(address)
		if err != nil || !strings.HasPrefix(worker, "wrk_") || strings.ContainsAny(worker, " @=") {
			return nil, fmt.Errorf("%q must be ADDRESS=WORKER, such as help@example.com=wrk_0123", entry)
		}
		normal := message.NormalAddress(parsed.Address)
		aliases[normal] = append(aliases[normal], worker)
	}
	return aliases, nil
}
