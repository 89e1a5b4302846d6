package account

// Routes registers the pages.
func (d *Pages) Routes() {
	d.signInRoutes()
	d.linkRoutes()
	d.accountRoutes()
	d.consentRoutes()
}
