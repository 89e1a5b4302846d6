// Package account serves the pages on which users enter and leave, and those of their own account: sign-in, the links
// of mails with an invitation or a new password, the consent to a program, and the settings of one user.
//
// It imports handlers, the store and rooms below them, stands on frame and draws with show. It imports no other
// package of pages. Each check of a password is counted by a throttle: no page of this package may call the store
// for one in another way.
package account

import "journeyman/handlers/dashboard/frame"

// Pages holds what the pages of this package share.
type Pages struct {
	*frame.Frame
	throttle *throttle
}

// New returns the pages on a frame. Routes registers them.
func New(fr *frame.Frame) *Pages {
	return &Pages{Frame: fr, throttle: newThrottle(fr.Now, fr.API.Nodes)}
}
