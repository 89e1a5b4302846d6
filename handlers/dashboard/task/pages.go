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

// Routes registers the pages.
func (d *Pages) Routes() {
	d.decideRoutes()
	d.On("GET", "/tasks/:taskId", d.showTask)
	d.On("POST", "/tasks/:taskId", d.followUp)
	d.On("GET", "/tasks/:taskId/live", d.watchTask)
	d.On("POST", "/tasks/:taskId/cancel", frame.Button(d.cancelTask))
	d.On("POST", "/tasks/:taskId/archive",
		frame.Changing("taskId", d.Runner.ArchiveTask, frame.Done("/tasks", "task-archived")))
	d.On("POST", "/tasks/:taskId/approvals/:approvalId", d.onTask(d.decideApproval))
	d.On("GET", "/tasks/:taskId/turns/:turn", d.showTurn)
	d.On("POST", "/tasks/:taskId/turns/:turn/again", d.onTask(d.runAgain))
	d.On("GET", "/tasks/:taskId/calls/:turn/:step/:call", d.showCall)
	d.On("GET", "/tasks/:taskId/raw/*what", d.showRaw)
}
