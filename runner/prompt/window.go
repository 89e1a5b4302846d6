package prompt

import "journeyman/runner/model"

// Limits of a window, in tokens.
const (
	minWindow = 2048 // minimum window of any model
	minOutput = 256  // minimum length of a useful answer
)

// A Window is the size of a model's context, in tokens.
type Window struct {
	Size      int64 // input and output together
	MaxOutput int64 // maximum output of one call
}

// Room returns the maximum tokens of a call's input: the window minus the tokens reserved for
// the answer.
func (w Window) Room() int64 { return w.Size - min(w.MaxOutput, w.Size/3) }

// Output returns how many tokens a call with that input may produce. Input and output must fit
// into the window together: some providers reject a request for more. A quarter of the input is
// reserved because the estimate may be too low, unless too little would be left for an answer.
func (w Window) Output(input int64) int {
	left := w.Size - input
	if left <= 0 {
		return minOutput // the request is too long anyway, and its refusal says by how much
	}
	return int(min(w.MaxOutput, left, max(w.Size-input*5/4, minOutput)))
}

// Refuse shrinks the window after the provider rejected a request of about that many tokens as
// too long. The new size is the one that the provider states. If it states none, the new size
// is three quarters of the request, so that the next attempt fits.
func (w *Window) Refuse(tokens int64, refusal *model.Error) {
	size := min(tokens, w.Size) * 3 / 4
	if refusal.Window > 0 && refusal.Window < min(tokens, w.Size) {
		size = refusal.Window
	}
	w.Size = min(w.Size, max(size, minWindow))
}

// Narrow shrinks the window to the size that the provider states. It returns that size, which is at least the
// minimum of any model.
func (w *Window) Narrow(size int64) int64 {
	size = max(size, minWindow)
	w.Size = min(w.Size, size)
	return size
}

// Remember restores the size of the window after an earlier refusal. room is the Room of a call
// at that time. Remember is the inverse of Room.
func (w *Window) Remember(room int64) { w.Size = min(w.Size, room*3/2, room+w.MaxOutput) }
