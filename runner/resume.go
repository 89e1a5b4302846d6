package runner

import "journeyman/store"

// AfterTurn is the id of the last event of a turn that has ended: a reader of its
// task's stream that begins there gets the turns after it.
func AfterTurn(t store.Turn) string {
	return position{turn: t.Num, step: endStep, slot: slotFinalDone}.String()
}
