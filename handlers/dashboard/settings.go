package dashboard

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"journeyman/store"
)

// settingsRoutes are the pages of the organization's settings.
func (d *Dashboard) settingsRoutes() {
	d.on("GET", "/settings", d.showSettings)
	d.may(store.ManageOrganization, "GET", "/settings/organization", d.showOrganization)
	d.may(store.ManageOrganization, "POST", "/settings/organization", d.changeOrganization)
	d.keyRoutes()
	d.colleagueRoutes()
	d.auditRoutes()
}

// showSettings leads to the first page of settings that there is for the role.
func (d *Dashboard) showSettings(w http.ResponseWriter, r *request) error {
	for _, page := range []struct {
		right store.Right
		path  string
	}{{store.ManageKeys, "/settings/keys"}, {store.ManageMembers, "/settings/members"}, {store.SeeAudit, "/settings/audit"}} {
		if r.who.Role.May(page.right) {
			return redirect(w, r, page.path)
		}
	}
	return redirect(w, r, "/account")
}

// An organizationPage shows what an Owner decides.
type organizationPage struct {
	Form  *form
	Spent float64 // credits
	Month time.Time
}

func (d *Dashboard) showOrganization(w http.ResponseWriter, r *request) error {
	o, _, err := d.store.OrganizationSettings(r.Context(), r.who.Caller)
	if err != nil {
		return err
	}
	f := newForm(map[string]string{"name": o.Name})
	if o.MonthlyCreditCap != nil {
		f.Values.Set("monthlyCreditCap", strconv.FormatFloat(*o.MonthlyCreditCap, 'f', -1, 64))
	}
	return d.organizationPage(w, r, http.StatusOK, f)
}

func (d *Dashboard) organizationPage(w http.ResponseWriter, r *request, status int, f *form) error {
	_, spent, err := d.store.OrganizationSettings(r.Context(), r.who.Caller)
	if err != nil {
		return err
	}
	return d.render(w, r, status, "organization.html", "Organization", organizationPage{f, store.Credits(spent), d.cfg.Now().UTC()})
}

func (d *Dashboard) changeOrganization(w http.ResponseWriter, r *request) error {
	f, err := readForm(w, r)
	if err != nil {
		return err
	}
	o := store.OrganizationSettings{Name: f.Get("name")}
	if text := strings.TrimSpace(f.Get("monthlyCreditCap")); text != "" {
		credits, err := strconv.ParseFloat(text, 64)
		if err != nil {
			credits = -1 // which is none either
		}
		o.MonthlyCreditCap = &credits
	}
	if err := d.store.UpdateOrganization(r.Context(), r.who.Caller, o); err != nil {
		if !f.refused(err) {
			return err
		}
		return d.organizationPage(w, r, http.StatusUnprocessableEntity, f)
	}
	return done(w, r, "/settings/organization", "saved")
}
