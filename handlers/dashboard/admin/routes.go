package admin

// Routes registers the pages.
func (d *Pages) Routes() {
	d.settingsRoutes()
	d.secretRoutes()
	d.usageRoutes()
	d.systemRoutes()
}
