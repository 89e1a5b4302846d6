package frame

import (
	"context"

	"journeyman/handlers"
	"journeyman/store/gate"
	"journeyman/store/people"
)

// A diskNotice is the notice on every page of a server that accepts no work, or is about to refuse
// it. The zero value shows none.
type diskNotice struct {
	Low, Full   bool
	Free        int64
	Maintenance bool   // an operator has begun maintenance, so nobody can change anything
	Refusal     string // another reason why nobody can change anything now; "" for none
}

// diskNotice returns the notice for a user. Only users who may see the system get the notice about
// its disk. All users see that nothing can be changed.
func (fr *Frame) diskNotice(v pageData) (n diskNotice) {
	n.Maintenance = fr.Store.Gate.Maintenance() != nil
	if err := fr.Store.Gate.WritableIn(gate.DuringMaintenance(context.Background())); err != nil {
		n.Refusal = handlers.ProblemOf(err).Message
	}
	if v.May(people.ManageServer) {
		space, level := fr.Store.Gate.Disk()
		n.Free, n.Low, n.Full = space.Free, level == gate.DiskLow, level == gate.DiskFull
	}
	return n
}
