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
	title text.Key
	hint  text.Key
	Title string // in the language of the page
	Hint  string
}

// sections returns all pages of the settings, in the order of their tabs.
func sections() []section {
	return []section{
		{right: store.SeeProviders, Path: modelsPath, Icon: "spark", title: text.Key("Models"),
			hint: text.Key("This server stores keys encrypted. Workers use the default model unless they choose another one.")},
		{right: store.ManageKeys, Path: "/settings/keys", Icon: "key", title: text.Key("API keys"),
			hint: text.Key("Programs call the API with a key.")},
		{right: store.ManageMembers, Path: "/settings/members", Icon: "users", title: text.Key("Members"),
			hint: text.Key("The members of the organization and their roles.")},
		{right: store.ManageOrganization, Path: "/settings/organization", Icon: "home", title: text.Key("Organization"),
			hint: text.Key("The name of the organization and its monthly credit cap.")},
		{right: store.ManageSecrets, Path: "/settings/secrets", Icon: "lock", title: text.Key("Secrets"),
			hint: text.Key("Passwords and keys that tools send and models never see.")},
		{right: store.ManageAlerts, Path: "/settings/alerts", Icon: "bell", title: text.Key("Alerts"),
			hint: text.Key("Channels that get alerts about failures and waiting tasks.")},
		{right: store.SeeAudit, Path: "/settings/audit", Icon: "history", title: text.Key("Audit log"),
			hint: text.Key("The list of all changes, with their time and actor.")},
		{right: store.SeeSystem, Path: "/settings/system", Icon: "model", title: text.Key("System"),
			hint: text.Key("The state of this server.")},
	}
}

// Sections returns the pages of the settings that the user may see.
func (v pageData) Sections() (list []section) {
	for _, s := range sections() {
		if v.May(s.right) {
			s.Title, s.Hint = v.lang.T(s.title), v.lang.T(s.hint)
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

// One reports whether exactly one credit was spent.
func (p organizationPage) One() bool { return p.Spent == 1 }

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
