package mail

import (
	"context"

	"journeyman/store"
)

// admit starts the work of the mail. If there is a reason against that, the mail is held. A copy costs a stranger
// nothing of the limits of a day, nor does a mail that the full queue refuses: its sender tries again.
func (d *delivery) admit(ctx context.Context, why string) ([]store.Email, error) {
	status := store.EmailAccepted
	if why != "" {
		status = store.EmailHeld
	}
	known, err := d.known(ctx, status)
	if err == nil && known { // neither its files nor its source are needed
		return d.keep(ctx, store.EmailIgnored, "a copy")
	}
	if err == nil && status == store.EmailAccepted {
		err = d.queueRoom(ctx)
	}
	if err == nil {
		err = d.chargeStranger(ctx) // before anything is written
	}
	switch {
	case err != nil:
		return nil, err
	case status == store.EmailHeld:
		return d.keep(ctx, status, why)
	}
	return d.accept(ctx)
}

// queueRoom returns a Busy error if the queue is too full for the mail. A full queue refuses no answer to a
// question.
func (d *delivery) queueRoom(ctx context.Context) error {
	for _, r := range d.env.To {
		c, err := d.caller(ctx, r)
		if err != nil {
			return err
		}
		full := d.cfg.Store.QueueRoom(c)
		if full == nil {
			continue
		}
		task, err := d.task(ctx, r, c)
		if err != nil {
			return err
		}
		if task.ID == "" {
			return full
		}
		answers, err := d.cfg.Store.AnswersQuestion(ctx, task, c, d.header.From, d.header.ThreadIDs())
		if err != nil {
			return err
		}
		if !answers {
			return full
		}
	}
	return nil
}

// known reports whether every recipient has received the mail before, so that it would not get a status again. It
// reports false for a mail without an id: such a mail is known for some minutes only, which may end before the
// mail is stored.
func (d *delivery) known(ctx context.Context, status store.EmailStatus) (bool, error) {
	if !d.header.Identified() {
		return false, nil
	}
	for _, r := range d.env.To {
		e := d.newEmail(r)
		caller, err := d.caller(ctx, r)
		if err != nil {
			return false, err
		}
		e.Status, e.Proven = status, d.proof(caller)
		seen, err := d.cfg.Store.EmailKnown(ctx, e)
		if err != nil || !seen {
			return false, err
		}
	}
	return true, nil
}

// chargeStranger takes the bytes of the mail from the limits of strangers, unless a member is its author, or
// the mail is of this machine.
func (d *delivery) chargeStranger(ctx context.Context) error {
	if d.verdicts.Local {
		return nil
	}
	c, err := d.caller(ctx, d.env.To[0])
	if err != nil || c.UserID != "" {
		return err
	}
	if err := d.cfg.Store.DiskOf(d.worker().OrganizationID).RoomForStrangers(); err != nil {
		return err
	}
	return d.intake.take(d.worker().OrganizationID, d.network(), int64(len(d.raw)), d.cfg.Now())
}

// network returns the network to which the limits of strangers apply, or "" if the mail comes from a relay of
// the operator, from this machine or over HTTP: then it may be of anybody.
func (d *delivery) network() string {
	addr := d.env.RemoteAddr
	if d.env.Helo == "" || isLoopback(addr) || len(d.relaysAt(addr)) > 0 {
		return ""
	}
	return store.NetworkOf(addr)
}
