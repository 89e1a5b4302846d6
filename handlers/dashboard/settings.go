package dashboard

import (
	"net/http"
	"strconv"
	"strings"

	"journeyman/store"
)

// settingsRoutes registers the pages of the organization's settings.
func (d *Dashboard) settingsRoutes() {
	d.on("GET", "/settings", d.showSettings)
	d.may(store.ManageOrganization, "GET", "/settings/organization", blank(d.organizationPage))
	d.may(store.ManageOrganization, "POST", "/settings/organization",
		submitted(d.changeOrganization, d.organizationPage))
	d.may(store.ManageSecrets, "GET", "/settings/secrets", blank(d.secretsPage))
	d.may(store.ManageSecrets, "POST", "/settings/secrets", submitted(d.setSecret, d.secretsPage))
	d.may(store.ManageSecrets, "POST", "/settings/secrets/:name/delete", button(d.deleteSecret))
	d.modelRoutes()
	d.keyRoutes()
	d.memberRoutes()
	d.alertRoutes()
	d.auditRoutes()
}

// showSettings lists the pages of the settings that the role may see.
func (d *Dashboard) showSettings(w http.ResponseWriter, r *request) error {
	return d.page(w, r, "settings.html", r.t("Settings"), nil)
}

// An organizationPage is the data of the page of the organization.
type organizationPage struct {
	Form  *form
	Spent float64 // credits
	Month string
}

func (d *Dashboard) organizationPage(w http.ResponseWriter, r *request, status int, f *form) error {
	o, spent, err := d.store.OrganizationSettings(r.Context(), r.who.Caller)
	if err != nil {
		return err
	}
	if f == nil {
		f = newForm(map[string]string{"name": o.Name})
		if o.MonthlyCreditCap != nil {
			f.Values.Set("monthlyCreditCap", strconv.FormatFloat(*o.MonthlyCreditCap, 'f', -1, 64))
		}
	}
	p := organizationPage{f, store.Credits(spent), r.month(d.cfg.Now().UTC())}
	return d.render(w, r, status, "organization.html", r.t("Organization"), p)
}

func (d *Dashboard) changeOrganization(_ http.ResponseWriter, r *request, f *form) (string, error) {
	o := store.OrganizationSettings{Name: f.Get("name")}
	if text := strings.TrimSpace(f.Get("monthlyCreditCap")); text != "" {
		credits, err := strconv.ParseFloat(text, 64)
		if err != nil {
			credits = -1 // the store refuses it with the rule for caps
		}
		o.MonthlyCreditCap = &credits
	}
	return done("/settings/organization", "saved"), d.store.UpdateOrganization(r.Context(), r.who.Caller, o)
}
