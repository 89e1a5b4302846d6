package prompt

import "journeyman/runner/model"

// Bounds of a window, in tokens.
const (
	minWindow = 2048 // the smallest that a model is believed to have
	minOutput = 256  // the smallest answer that is worth a call
)

// A Window is the size of a model's context, in tokens.
type Window struct {
	Size      int64 // input and output together
	MaxOutput int64 // the most that the model produces in one call
}

// Room returns how many tokens of input a call may have: the window minus the tokens for the
// answer.
func (w Window) Room() int64 { return w.Size - min(w.MaxOutput, w.Size/3) }

// Output returns how many tokens a call with that input may produce. Input and output
// must fit into the window together, and some providers refuse a request for more. A
// quarter of the input is kept free because the estimate may be wrong.
func (w Window) Output(input int64) int {
	return int(max(min(w.MaxOutput, w.Size-input*5/4), minOutput))
}

// Refuse makes the window narrower after the provider refused a request of about that many tokens
// as too long. The window becomes the size that the provider states, else a size well below that
// of the request, so that the next try fits.
func (w *Window) Refuse(tokens int64, refusal *model.Error) {
	size := min(tokens, w.Size) * 3 / 4
	if refusal.Window > 0 && refusal.Window < min(tokens, w.Size) {
		size = refusal.Window
	}
	w.Size = min(w.Size, max(size, minWindow))
}

// Remember makes the window as narrow as an earlier refusal has left it, when a call had
// room for that many tokens of input. It is the inverse of Room.
func (w *Window) Remember(room int64) { w.Size = min(w.Size, room*3/2, room+w.MaxOutput) }
