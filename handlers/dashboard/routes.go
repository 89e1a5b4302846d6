package dashboard

import (
	"cmp"
	"net/http"

	"journeyman/store"
)

// routes is the list of all pages. A room's own list stands in its own file.
func (d *Dashboard) routes() {
	d.router.RedirectTrailingSlash = true
	d.router.RedirectFixedPath = false
	d.router.HandleOPTIONS = false
	d.router.NotFound = d.refusal(store.Errorf(store.NotFound, "there is no page at this address"))
	d.router.MethodNotAllowed = d.refusal(store.Errorf(store.NotFound, "there is no page at this address for this method"))

	d.router.Handler(http.MethodGet, "/assets/*file", d.assets)
	d.open("GET", "/sign-in", d.showSignIn)
	d.open("POST", "/sign-in", d.signIn)
	d.on("POST", "/sign-out", d.signOut)
	d.on("POST", "/organization", d.switchOrganization)
	d.linkRoutes()
	d.accountRoutes()
	d.settingsRoutes()
	d.on("GET", "/", func(w http.ResponseWriter, r *request) error { return redirect(w, r, "/workers") })
	d.workerRoutes()
	d.taskRoutes()
	d.usageRoutes()
	d.mailRoutes()
	d.systemRoutes()
}

// refusal shows an error page; who is not signed in learns nothing of what pages
// there are.
func (d *Dashboard) refusal(err error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r := &request{Request: req}
		other := d.identify(r)
		if other == nil && r.who.UserID == "" {
			other = d.toSignIn(w, r)
			if other == nil {
				return
			}
		}
		d.refuse(w, r, cmp.Or(other, err))
	})
}
