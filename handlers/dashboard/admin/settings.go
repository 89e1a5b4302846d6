package admin

import (
	"net/http"
	"strconv"
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/store/db"
	"journeyman/store/people"
)

// settingsRoutes registers the pages of the organization's settings.
func (d *Pages) settingsRoutes() {
	d.On("GET", "/settings", d.showSettings)
	d.May(people.ManageOrganization, "GET", "/settings/organization", frame.Blank(d.organizationPage))
	d.May(people.ManageOrganization, "POST", "/settings/organization",
		frame.Submitted(d.changeOrganization, d.organizationPage))
	d.modelRoutes()
	d.keyRoutes()
	d.memberRoutes()
	d.alertRoutes()
	d.auditRoutes()
}

// showSettings lists the pages of the settings that the role may see.
func (d *Pages) showSettings(w http.ResponseWriter, r *frame.Request) error {
	return d.Page(w, r, "settings.html", r.T("Settings"), nil)
}

// An organizationPage is the data of the page of the organization.
type organizationPage struct {
	Form  *frame.Form
	Spent float64 // credits
	Month string
}

func (d *Pages) organizationPage(w http.ResponseWriter, r *frame.Request, status int, f *frame.Form) error {
	o, spent, err := d.Store.People.OrganizationSettings(r.Context(), r.Who.Caller)
	if err != nil {
		return err
	}
	if f == nil {
		f = frame.NewForm(map[string]string{"name": o.Name})
		if o.MonthlyCreditCap != nil {
			f.Values.Set("monthlyCreditCap", strconv.FormatFloat(*o.MonthlyCreditCap, 'f', -1, 64))
		}
	}
	p := organizationPage{f, db.Credits(spent), r.Month(d.Now().UTC())}
	return d.Render(w, r, status, "organization.html", r.T("Organization"), p)
}

func (d *Pages) changeOrganization(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	o := people.OrganizationSettings{Name: f.Get("name")}
	if text := strings.TrimSpace(f.Get("monthlyCreditCap")); text != "" {
		credits, err := strconv.ParseFloat(text, 64)
		if err != nil {
			credits = -1 // the store refuses it with the rule for caps
		}
		o.MonthlyCreditCap = &credits
	}
	return frame.Done("/settings/organization", "saved"), d.Store.People.UpdateOrganization(r.Context(), r.Who.Caller, o)
}
