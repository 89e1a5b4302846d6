package lists

// Routes registers the pages.
func (d *Pages) Routes() {
	d.homeRoutes()
	d.On("GET", "/search", d.search)
	d.workerListRoutes()
	d.taskListRoutes()
	d.mailRoutes()
}
