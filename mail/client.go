package mail

import (
	"context"

	"journeyman/runner/sandbox"
	"journeyman/store"
)

// forAuthor returns a context in which document readers work for the author of the mail. They share
// their time among organizations and senders. For a stranger the sender is the network from which the
// mail comes, because anybody can invent addresses.
func (d *delivery) forAuthor(ctx context.Context) (context.Context, error) {
	caller, err := d.caller(ctx, d.env.To[0])
	if err != nil {
		return ctx, err
	}
	c := sandbox.Client{Organization: d.worker().OrganizationID, Sender: caller.UserID, Mail: true}
	if c.Sender == "" {
		c.Sender, c.Stranger = store.NetworkOf(d.env.RemoteAddr), true
	}
	return sandbox.ForClient(ctx, c), nil
}

// forTurn returns a context in which document readers work for the answer to a turn.
func forTurn(ctx context.Context, t store.Turn) context.Context {
	return sandbox.ForClient(ctx, sandbox.Client{Organization: t.OrganizationID, Sender: t.CreatedByUserID,
		Stranger: t.Stranger(), Mail: true})
}
