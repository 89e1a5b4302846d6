package dashboard

import "journeyman/handlers/dashboard/account"

// routes registers all pages. Each group of pages has its list in its own file.
func (d *Dashboard) routes() {
	account.New(d.Frame).Routes()
	d.decideRoutes()
	d.settingsRoutes()
	d.secretRoutes()
	d.homeRoutes()
	d.On("GET", "/events", d.StreamEvents)
	d.On("GET", "/search", d.search)
	d.workerListRoutes()
	d.workerRoutes()
	d.starterRoutes()
	d.fileRoutes()
	d.taskListRoutes()
	d.taskRoutes()
	d.usageRoutes()
	d.mailRoutes()
	d.systemRoutes()
}
