package dashboard

import (
	"context"

	"journeyman/handlers"
	"journeyman/store"
)

// A diskNotice is what every page says about a server that takes no work, or soon will not. The
// zero value says nothing.
type diskNotice struct {
	Low, Full   bool
	Free        int64
	Maintenance bool   // nobody can change anything, because the operator wants it so
	Refusal     string // another reason why nobody can change anything now; '' for none
}

// diskNotice returns the notice for a user. Only people who may see the system read about its
// disk. That nothing can be changed is everybody's concern.
func (d *Dashboard) diskNotice(v pageData) (n diskNotice) {
	n.Maintenance = d.store.Maintenance() != nil
	if err := d.store.WritableIn(store.DuringMaintenance(context.Background())); err != nil {
		n.Refusal = handlers.ProblemOf(err).Message
	}
	if v.May(store.SeeSystem) {
		space, level := d.store.Disk()
		n.Free, n.Low, n.Full = space.Free, level == store.DiskLow, level == store.DiskFull
	}
	return n
}
