package mail

import (
	"context"
	"fmt"
	"strings"

	"journeyman/mail/message"
	"journeyman/store/db"
	"journeyman/store/workers"
)

// Values of Config.Accept, besides lists of addresses.
const (
	Anyone  = "anyone"
	Members = "members" // of the worker's organization
)

// ParseAccept checks a value of Config.Accept.
func ParseAccept(accept string) error {
	if accept == "" || accept == Anyone || accept == Members {
		return nil
	}
	for entry := range strings.SplitSeq(accept, ",") {
		entry = strings.TrimSpace(entry)
		local, domain, found := strings.Cut(entry, "@")
		if !found || domain == "" || strings.ContainsAny(local+domain, " <>@") {
			return fmt.Errorf("%q is neither %s, %s, an address nor an @domain", entry, Anyone, Members)
		}
	}
	return nil
}

// matches reports whether a comma list of addresses and @domains has an address.
func matches(list, address string) bool {
	for entry := range strings.SplitSeq(strings.ToLower(list), ",") {
		entry = strings.TrimSpace(entry)
		if entry == address || strings.HasPrefix(entry, "@") && strings.HasSuffix(address, entry) {
			return true
		}
	}
	return false
}

// admitSender refuses a sender who may not see a private worker, before the mail is sent. The
// envelope is enough for this decision.
func (s *Server) admitSender(ctx context.Context, r Recipient, from string) error {
	if r.postmaster || r.worker.Visibility != workers.Private {
		return nil
	}
	sees, err := s.memberSees(ctx, r.worker, message.NormalAddress(from))
	if err == nil && !sees {
		err = db.Errorf(db.Forbidden, "the worker is private and accepts mail from its members only")
	}
	return err
}

// memberSees reports whether an address belongs to a member of the organization who
// may see the worker.
func (s *Server) memberSees(ctx context.Context, w workers.Worker, address string) (bool, error) {
	c, member, err := s.cfg.Store.MailCaller(ctx, w.OrganizationID, address)
	if err != nil || !member {
		return false, err
	}
	_, err = s.cfg.Store.Workers.Worker(ctx, c, w.ID)
	if db.IsKind(err, db.Forbidden) {
		return false, nil
	}
	return err == nil, err
}

// refusal returns the reason why the mail may not start work, or an empty string. It returns a Busy
// error if the decision needs the DNS, which does not answer: the sender tries again.
func (d *delivery) refusal(ctx context.Context) (why string, err error) {
	// The domain asks everybody to refuse such mail, so even Anyone does not accept it.
	if d.verdicts.DMARC.Result == resultFail && d.verdicts.DMARC.Policy == "reject" {
		return "the sender's domain asks to refuse mail that fails its DMARC check", nil
	}
	if d.cfg.Accept == Anyone && d.worker().Visibility != workers.Private {
		return "", d.unsureOfMember(ctx)
	}
	listed, err := d.isListed(ctx)
	switch {
	case err != nil:
		return "", err
	case !listed:
		return "the sender may not mail this worker", nil
	case d.verdicts.trusted():
		return "", nil
	case d.verdicts.temporary():
		return "", errUnverified()
	}
	return "the sender cannot be verified: " + d.verdicts.unproven(), nil
}

func errUnverified() error {
	return db.Errorf(db.Busy, "the sender cannot be verified now: the DNS does not answer")
}

// unsureOfMember returns a Busy error for mail whose author claims to be a member while the DNS does
// not answer. If it were accepted now, it would stay the mail of a non-member.
func (d *delivery) unsureOfMember(ctx context.Context) error {
	if !d.verdicts.temporary() {
		return nil
	}
	_, member, err := d.cfg.Store.MailCaller(ctx, d.worker().OrganizationID, d.header.From)
	if err == nil && member {
		err = errUnverified()
	}
	return err
}

// isListed reports whether the worker accepts mail from the address in From.
func (d *delivery) isListed(ctx context.Context) (bool, error) {
	switch {
	case d.worker().Visibility == workers.Private:
		return d.memberSees(ctx, d.worker(), d.header.From)
	case d.cfg.Accept != Members:
		return matches(d.cfg.Accept, d.header.From), nil
	}
	_, member, err := d.cfg.Store.MailCaller(ctx, d.worker().OrganizationID, d.header.From)
	return member, err
}
