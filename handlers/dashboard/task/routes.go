package task

import "journeyman/handlers/dashboard/frame"

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
