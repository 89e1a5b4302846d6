package dashboard

import (
	"cmp"
	"net/http"

	"journeyman/handlers"
	"journeyman/store"
)

// routes registers all pages. Each group of pages has its list in its own file.
func (d *Dashboard) routes() {
	d.router.RedirectTrailingSlash = false // see otherSlash
	d.router.RedirectFixedPath = false
	d.router.HandleOPTIONS = false
	nothing := d.refusal(errNotFound)
	d.router.NotFound = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.otherSlash(w, r) {
			nothing.ServeHTTP(w, r)
		}
	})
	d.router.MethodNotAllowed = d.refusal(
		store.Errorf(store.NotFound, "the page at this address does not accept this method"))

	d.router.Handler(http.MethodGet, "/assets/*file", d.assets)
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

// errNotFound is the error for an address without a page.
var errNotFound = store.Errorf(store.NotFound, "there is no page at this address")

// refusal returns a handler for addresses without a page. A program gets the error as JSON. A
// browser that is not signed in is redirected to the sign-in page, so that it cannot find out which
// pages exist.
func (d *Dashboard) refusal(err error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r := &request{Request: req, lang: d.language(req, ""), basePath: d.basePath}
		other := d.identify(r)
		if handlers.RefuseProgram(w, req, cmp.Or(other, err)) {
			return
		}
		if other == nil && r.who.UserID == "" {
			other = d.toSignIn(w, r)
			if other == nil {
				return
			}
		}
		d.refuse(w, r, cmp.Or(other, err))
	})
}
