package dashboard_test

import (
	"context"
	"strings"
	"testing"

	"journeyman/handlers"
	"journeyman/handlers/dashboard"
	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store/people"
)

// TestBrowserKeys creates, rolls and revokes a key.
func TestBrowserKeys(t *testing.T) {
	is, _, w := inBrowser(t)
	w.open("/settings")
	w.look("settings")
	w.click("API keys")
	w.arrives("/settings/keys")
	w.fill("Name", "Billing report")
	w.click("Create key")
	w.until("the key", "document.querySelector('.made code')")
	secret := w.text("document.querySelector('.made code').innerText")
	is.True(strings.HasPrefix(secret, "jm_live_") && len(secret) == 51)
	is.Equal(w.text("document.querySelector('.made [data-copy]').dataset.copy"), secret)
	w.look("keys-made")
	w.click("Roll Billing report")
	w.until("the successor", "document.querySelector('.made h2').innerText.includes('The new key')")
	is.True(w.text("document.querySelector('.made code').innerText") != secret)
	w.open("/settings/keys")
	w.look("keys")
	w.click("Revoke Billing report")
	w.until("the message", "document.querySelector('.done')")
	is.True(strings.Contains(w.asked(), "Revoke the key Billing report?"))
	w.sees("The key is revoked.")
}

// TestBrowserMembers invites a person, who joins, gets another role and is removed.
func TestBrowserMembers(t *testing.T) {
	is, s, w := inBrowser(t)
	w.open("/settings/members")
	w.fill("Email address", "new@example.com")
	w.fill("Role", "Admin")
	w.click("Create link")
	w.until("the link", "document.querySelector('.made code')")
	link := w.text("document.querySelector('.made code').innerText")
	w.look("members-invited")
	w.open("/settings/members")
	w.sees("new@example.com")
	w.look("members")

	guest := newWindow(s)
	guest.open(strings.TrimPrefix(link, s.URL))
	guest.look("invitation")
	guest.fill("Your name", "New Person")
	guest.fill("New password", dashboardtest.Password)
	guest.click("Join")
	guest.arrives("/workers")
	guest.sees("You have joined the organization.")

	w.open("/settings/members")
	w.fill("Role of new@example.com", "Member")
	w.click("Change the role of new@example.com")
	w.until("the message", "document.querySelector('.done')")
	guest.open("/settings")
	guest.lacks("API keys")
	guest.open("/account")
	guest.look("account")
	w.click("Create a password link for new@example.com")
	w.until("the link", "document.querySelector('.made code')")
	reset := newWindow(s)
	reset.open(strings.TrimPrefix(w.text("document.querySelector('.made code').innerText"), s.URL))
	reset.look("reset")
	w.click("Remove new@example.com")
	w.until("the message", "document.querySelector('.done')")
	is.True(strings.Contains(w.asked(), "Remove new@example.com?"))
	guest.open("/account")
	guest.arrives("/sign-in")
}

// TestBrowserNewcomer opens the printed link of the first start. After three clicks a task has ended. Then the
// new Owner opens the other settings.
func TestBrowserNewcomer(t *testing.T) {
	_, s := dashboardtest.OnSite(t)
	w := newWindow(s)
	w.open(s.Link(people.LinkWelcome, "ann@example.com")) // one
	w.look("welcome")
	w.fill("Your name", "Ann Arbor")
	w.fill("Your email address", "me@example.com")
	w.fill("New password", dashboardtest.Password)
	w.click("Start") // two
	w.sees("Your password is set, and you are signed in.")
	w.fill("What should be done?", "Write a haiku about rivers to haiku.md")
	w.click("Run") // three
	w.until("the finished task", "location.pathname.startsWith('/tasks/tsk_') && document.querySelector('#end-0')")
	w.sees("haiku.md")
	w.shoot("newcomer.png")

	w.open("/settings/organization")
	w.fill("Credits a month", "much")
	w.click("Save")
	w.until("the refusal", "document.querySelector('.error')")
	w.look("organization-refused")
	w.fill("Credits a month", "500")
	w.click("Save")
	w.until("the message", "document.querySelector('.done')")
	w.look("organization")
	w.open("/settings/audit")
	w.look("audit")
	w.fill("Action", "Changed the credit cap")
	w.click("Filter")
	w.until("the filtered log", "location.search.includes('organization.cap')")
	w.sees("changed the credit cap")
	w.open("/settings/audit?to=2020-01-01")
	w.look("audit-empty")
}

func TestBrowserSystem(t *testing.T) {
	t.Parallel()
	s := dashboardtest.New(t, func(c *dashboard.Config) {
		c.Examine = func(context.Context) []handlers.Checks {
			return []handlers.Checks{{Title: "Disk", List: []handlers.Check{{Name: "free space", Status: handlers.CheckOK,
				Detail: "47 GiB"},
				{Name: "free files", Status: handlers.CheckFailed, Detail: "12 inodes are left",
					Advice: "delete many small files on this disk"}}},
				{Title: "Mail", List: []handlers.Check{{Name: "SPF", Status: handlers.CheckWarning,
					Detail: "mail.test has no such record",
					Advice: "add a TXT record"}, {Name: "relay", Status: handlers.CheckSkipped, Detail: "none is set"}}}}
		}
	})
	w := newWindow(s).borrow(s.SignIn("ann@example.com"))
	w.open("/settings")
	w.click("System")
	w.sees("Free on the disk")
	w.click("Check now")
	w.sees("12 inodes are left")
	w.look("system")
}
