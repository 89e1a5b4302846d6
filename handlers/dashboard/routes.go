package dashboard

// routes registers all pages. Each group of pages has its list in its own file.
func (d *Dashboard) routes() {
	d.open("GET", "/sign-in", blank(d.showSignIn))
	d.open("POST", "/sign-in", submitted(d.signIn, d.showSignIn))
	d.on("POST", "/sign-out", d.signOut)
	d.on("POST", "/organization", submitted(d.switchOrganization, nil))
	d.linkRoutes()
	d.decideRoutes()
	d.accountRoutes()
	d.consentRoutes()
	d.settingsRoutes()
	d.homeRoutes()
	d.on("GET", "/events", d.streamEvents)
	d.on("GET", "/search", d.search)
	d.workerRoutes()
	d.taskRoutes()
	d.usageRoutes()
	d.mailRoutes()
	d.systemRoutes()
}
