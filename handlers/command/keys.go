package command

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"journeyman/store/people"
)

// Keys holds the commands for API keys.
type Keys struct {
	Create KeyCreate `cmd:"" help:"Create an API key and print it."`
	List   KeyList   `cmd:"" help:"List the API keys."`
	Revoke KeyRevoke `cmd:"" help:"Revoke an API key at once."`
	Roll   KeyRoll   `cmd:"" help:"Create the successor of an API key and print it; the old key stays valid for a day."`
}

// Users holds the commands for users.
type Users struct {
	List  UserList  `cmd:"" help:"List the users."`
	Reset UserReset `cmd:"" help:"Print a link with which a user chooses a new password; it works once, for 24 hours."`
}

// UserList prints the users.
type UserList struct{}

// Run prints one line for each user and organization.
func (UserList) Run(p *Program) error {
	return p.call("", Call{Users: true}, func(r Reply) { PrintUsers(p.Stdout, r.Users) })
}

// UserReset creates a link with which a user chooses a password.
type UserReset struct {
	Email   string `arg:"" help:"The user's email address."`
	BaseURL string `default:"http://127.0.0.1:8080" help:"Base of the link, where no server runs." placeholder:"URL"`
}

// Run prints nothing but the link.
func (c *UserReset) Run(p *Program) error {
	if err := checkBaseURL(c.BaseURL); err != nil {
		return err
	}
	return p.call(c.BaseURL, Call{Reset: &c.Email}, func(r Reply) { fmt.Fprintln(p.Stdout, r.Link) })
}

// KeyCreate creates an API key.
type KeyCreate struct {
	Name string  `required:"" help:"Name of the key, such as the program that uses it."`
	User string  `help:"Email address of its user, created if needed; the first owner by default." placeholder:"EMAIL"`
	Role *string `enum:"owner,admin,member" help:"The user's role: owner, admin or member." placeholder:"ROLE"`
	Org  string  `help:"Organization, created if needed; the first one by default." placeholder:"NAME"`
}

// Run prints nothing but the key, so that scripts can use the output.
func (c *KeyCreate) Run(p *Program) error {
	key := people.NewKey{Name: c.Name, Email: c.User, Role: people.Role(chosen(c.Role)), OrganizationName: c.Org}
	return p.call("", Call{Create: &key}, func(r Reply) { fmt.Fprintln(p.Stdout, r.Secret) })
}

// KeyList prints the API keys.
type KeyList struct {
	Org string `help:"Only the keys of this organization." placeholder:"NAME"`
}

// Run prints one line for each key.
func (c *KeyList) Run(p *Program) error {
	return p.call("", Call{List: &c.Org}, func(r Reply) { PrintKeys(p.Stdout, r.Keys) })
}

// KeyRevoke revokes an API key.
type KeyRevoke struct {
	Key string `arg:"" help:"Id of the key, its first 12 characters, or the key itself."`
}

// Run revokes the key and prints its id and name.
func (c *KeyRevoke) Run(p *Program) error {
	return p.call("", Call{Revoke: &c.Key}, func(r Reply) {
		for _, key := range r.Keys {
			fmt.Fprintf(p.Stdout, "revoked %s (%s)\n", key.ID, key.Name)
		}
	})
}

// KeyRoll creates the successor of an API key.
type KeyRoll struct {
	Key string `arg:"" help:"Id of the key, its first 12 characters, or the key itself."`
}

// Run prints nothing but the new key, so that scripts can use the output.
func (c *KeyRoll) Run(p *Program) error {
	return p.call("", Call{Roll: &c.Key}, func(r Reply) { fmt.Fprintln(p.Stdout, r.Secret) })
}

// PrintKeys writes a table of API keys.
func PrintKeys(w io.Writer, keys []people.Key) {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tNAME\tKEY\tUSER\tROLE\tCREATED\tLAST USED\tSTATE")
	for _, k := range keys {
		used, state := "never", "active"
		if k.LastUsedAt != nil {
			used = k.LastUsedAt.Format(time.RFC3339)
		}
		switch {
		case k.RevokedAt != nil:
			state = "revoked"
		case k.ExpiresAt != nil:
			state = "expires " + k.ExpiresAt.Format(time.RFC3339)
		}
		fmt.Fprintf(t, "%s\t%s\t%s…\t%s\t%s\t%s\t%s\t%s\n", k.ID, printable(k.Name), k.Prefix, printable(k.Email),
			k.Role, k.CreatedAt.Format(time.RFC3339), used, state)
	}
	_ = t.Flush() // it fails only if the reader has closed the output
}

// PrintUsers writes a table of users.
func PrintUsers(w io.Writer, users []people.User) {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tEMAIL\tNAME\tORGANIZATION\tROLE\tPASSWORD")
	for _, u := range users {
		password := "none"
		if u.HasPassword {
			password = "set"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n",
			u.ID, printable(u.Email), printable(u.Name), printable(u.OrganizationName), u.Role, password)
	}
	_ = t.Flush() // it fails only if the reader has closed the output
}
