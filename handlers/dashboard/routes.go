package dashboard

import "journeyman/handlers/dashboard/frame"

// routes registers all pages. Each group of pages has its list in its own file.
func (d *Dashboard) routes() {
	d.Open("GET", "/sign-in", frame.Blank(d.showSignIn))
	d.Open("POST", "/sign-in", frame.Submitted(d.signIn, d.showSignIn))
	d.On("POST", "/sign-out", d.signOut)
	d.On("POST", "/organization", frame.Submitted(d.switchOrganization, nil))
	d.linkRoutes()
	d.decideRoutes()
	d.accountRoutes()
	d.consentRoutes()
	d.settingsRoutes()
	d.homeRoutes()
	d.On("GET", "/events", d.StreamEvents)
	d.On("GET", "/search", d.search)
	d.workerRoutes()
	d.taskRoutes()
	d.usageRoutes()
	d.mailRoutes()
	d.systemRoutes()
}
