package admin

import (
	"net/http"
	"net/url"
	"time"

	"journeyman/handlers/dashboard/frame"
	"journeyman/store/db"
	"journeyman/store/people"
)

// serverRoutes registers the sign-in to MCP servers. It needs the right ManageServer, because a
// sign-in applies to the whole server: workers of every organization may use the tools.
func (d *Pages) serverRoutes() {
	d.May(people.ManageServer, "POST", "/settings/system/servers/:server/sign-in", frame.Button(d.signInServer))
	d.May(people.ManageServer, "GET", "/settings/system/servers/:server/sign-in", d.showServerSignIn)
	d.May(people.ManageServer, "GET", "/settings/system/servers/:server/callback", d.serverSignedIn) // mcp.CallbackPath
	d.May(people.ManageServer, "POST", "/settings/system/servers/:server/sign-out", frame.Button(d.signOutServer))
}

// A serverPage links to the page where a user signs in to an MCP server.
type serverPage struct {
	Server  string
	Host    string // host of the authorization server
	Address string // where the user signs in
}

// serversPath begins the addresses of the pages for a sign-in.
const serversPath = "/settings/system/servers/"

// nodeCookie names the runner of the node at which a sign-in has begun. Only that node can complete it.
const nodeCookie = "journeyman_node"

// nodeCookieTime is how long a browser stays with that node. It is the time limit of a sign-in.
const nodeCookieTime = 10 * time.Minute

// signInServer begins a sign-in. It returns a page with a link. A redirect to the other site would
// fail, because the policy of the pages forbids it. The user also sees the target of the link.
func (d *Pages) signInServer(r *frame.Request) (string, error) {
	name := r.Params.ByName("server")
	// The session binds the sign-in to this browser: no other browser can complete it.
	address, err := d.cfg.Servers.SignIn(r.Context(), name, r.SessionID)
	if err != nil {
		return "", db.Errorf(db.Conflict, "%s", err)
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", db.Errorf(db.Conflict, "the authorization server has no valid address")
	}
	d.once.put(r.SessionID, serverKind(name), serverPage{name, u.Host, address})
	return d.hereOnly(serversPath + url.PathEscape(name) + "/sign-in"), nil
}

// serverKind returns the kind of the sign-in to a server in oneTime.
func serverKind(name string) string { return "server " + name }

// showServerSignIn shows the link of a sign-in that was just begun.
func (d *Pages) showServerSignIn(w http.ResponseWriter, r *frame.Request) error {
	if d.forwardToNode(w, r) {
		return nil
	}
	kind := serverKind(r.Params.ByName("server"))
	p, found := d.once.take(r.SessionID, kind).(serverPage)
	if !found {
		return db.Errorf(db.NotFound, "no sign-in to this server has begun here: begin it on the page System")
	}
	d.once.put(r.SessionID, kind, p) // the link is no secret, so a reload may show it again
	if d.Store.Shared() {
		// The authorization server returns the browser to an address that names no node.
		http.SetCookie(w, &http.Cookie{Name: nodeCookie, Value: d.Runner.ID(), Path: d.BasePath + serversPath,
			MaxAge: int(nodeCookieTime.Seconds()), HttpOnly: true, Secure: d.Secure, SameSite: http.SameSiteLaxMode})
	}
	return d.Page(w, r, "server.html", r.T("Sign in to %s", p.Server), p)
}

// serverSignedIn completes a sign-in after the authorization server has sent the browser back.
func (d *Pages) serverSignedIn(w http.ResponseWriter, r *frame.Request) error {
	name := r.Params.ByName("server")
	if c, err := r.Cookie(nodeCookie); err == nil && d.API.ForwardPageTo(w, r.Request, c.Value) {
		return nil
	}
	if err := d.Store.Gate.Maintenance(); err != nil { // the only GET that changes something
		return err
	}
	if err := d.cfg.Servers.CompleteSignIn(r.Context(), name, r.SessionID, r.URL.Query()); err != nil {
		return db.Errorf(db.Conflict, "%s", err)
	}
	if err := d.Store.People.AuditMCPLogin(r.Context(), r.Who.Caller, name, true); err != nil {
		return err
	}
	return frame.Redirect(w, r, frame.Done("/settings/system", "server-in"))
}

func (d *Pages) signOutServer(r *frame.Request) (string, error) {
	name := r.Params.ByName("server")
	if err := d.cfg.Servers.SignOut(r.Context(), name); err != nil {
		return "", db.Errorf(db.NotFound, "%s", err)
	}
	return frame.Done("/settings/system", "server-out"), d.Store.People.AuditMCPLogin(r.Context(), r.Who.Caller, name,
		false)
}
