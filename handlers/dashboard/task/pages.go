// Package task serves the pages of one task: its turns with their steps and calls, the changes while it runs, the
// forms for a follow-up and for a decision, and the page of a link in a mail on which its reader decides.
//
// It imports handlers, runner, store and rooms below them, stands on frame and draws with show. It imports no other
// package of pages. What models and tools wrote is long and hostile: each text on a page has its limit, and links to
// the whole. A person who decides sees every argument of a call, or where it is truncated.
package task

import "journeyman/handlers/dashboard/frame"

// Pages holds what the pages of this package share.
type Pages struct{ *frame.Frame }

// New returns the pages on a frame. Routes registers them.
func New(fr *frame.Frame) *Pages { return &Pages{fr} }
