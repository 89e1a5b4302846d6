package dashboard

import (
	"net/http"
	"strconv"
	"strings"

	"journeyman/handlers/dashboard/text"
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

// A section is a page of the settings.
type section struct {
	right store.Right
	Path  string
	Icon  string
	Title text.Key
	Hint  text.Key
}

// sections returns all pages of the settings, in the order of their tabs.
func sections() []section {
	return []section{
		{store.SeeProviders, modelsPath, "spark", "Models",
			"This server stores keys encrypted. Workers use the default model unless they choose another one."},
		{store.ManageKeys, "/settings/keys", "key", "API keys", "Programs call the API with a key."},
		{store.ManageMembers, "/settings/members", "users", "Members",
			"The members of the organization and their roles."},
		{store.ManageOrganization, "/settings/organization", "home", "Organization",
			"The name of the organization and its monthly credit cap."},
		{store.ManageSecrets, "/settings/secrets", "lock", "Secrets",
			"Passwords and keys that tools send and models never see."},
		{store.ManageAlerts, "/settings/alerts", "bell", "Alerts",
			"Channels that get alerts about failures and waiting tasks."},
		{store.SeeAudit, "/settings/audit", "history", "Audit log",
			"The list of all changes, with their time and actor."},
		{store.ManageServer, "/settings/system", "model", "System", "The state of this server."},
	}
}

// Sections returns the pages of the settings that the user may see.
func (v pageData) Sections() (list []section) {
	for _, s := range sections() {
		if v.May(s.right) {
			list = append(list, s)
		}
	}
	return list
}

// Section returns the section of this page, or nil.
func (v pageData) Section() *section {
	for _, s := range v.Sections() {
		if v.Here(s.Path) {
			return &s
		}
	}
	return nil
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
