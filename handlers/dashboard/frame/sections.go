package frame

import (
	"journeyman/handlers/dashboard/text"
	"journeyman/store/people"
)

// A section is a page of the settings.
type section struct {
	Right people.Right
	Path  string
	Icon  string
	Title text.Key
	Hint  text.Key
}

// Sections returns all pages of the settings, in the order of their tabs.
func Sections() []section {
	return []section{
		{people.SeeProviders, ModelsPath, "spark", "Models",
			"This server stores keys encrypted. Workers use the default model unless they choose another one."},
		{people.ManageKeys, "/settings/keys", "key", "API keys", "Programs call the API with a key."},
		{people.ManageMembers, "/settings/members", "users", "Members",
			"The members of the organization and their roles."},
		{people.ManageOrganization, "/settings/organization", "home", "Organization",
			"The name of the organization and its monthly credit cap."},
		{people.ManageSecrets, "/settings/secrets", "lock", "Secrets",
			"Passwords and keys that tools send and models never see."},
		{people.ManageAlerts, "/settings/alerts", "bell", "Alerts",
			"Channels that get alerts about failures and waiting tasks."},
		{people.SeeAudit, "/settings/audit", "history", "Audit log",
			"The list of all changes, with their time and actor."},
		{people.ManageServer, "/settings/system", "model", "System", "The state of this server."},
	}
}

// Sections returns the pages of the settings that the user may see.
func (v pageData) Sections() (list []section) {
	for _, s := range Sections() {
		if v.May(s.Right) {
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

// ModelsPath is the path of the page Models.
const ModelsPath = "/settings/models"
