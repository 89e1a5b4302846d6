package command

import (
	"fmt"

	"journeyman/handlers"
	"journeyman/runner/terminal"
	"journeyman/store"
)

// UserList lists the users.
type UserList struct{}

// Run prints a line a user and organization.
func (UserList) Run(f *Folder) error {
	return f.Administer(func(k handlers.Admin) error {
		users, err := k.Users(f.Context)
		if err == nil {
			terminal.PrintUsers(f.Stdout, users)
		}
		return err
	})
}

// UserReset makes a link at which a user chooses a password.
type UserReset struct {
	Email   string `arg:"" help:"The user's email address."`
	BaseURL string `default:"http://127.0.0.1:8080" help:"Address of the server, where none runs that knows its own." placeholder:"URL"`
}

// Run prints the link alone.
func (c *UserReset) Run(f *Folder) error {
	f.BaseURL = c.BaseURL
	return f.Administer(func(k handlers.Admin) error {
		link, err := k.ResetLink(f.Context, c.Email)
		if err == nil {
			fmt.Fprintln(f.Stdout, link)
		}
		return err
	})
}

// KeyCreate makes an API key.
type KeyCreate struct {
	Name string `required:"" help:"What the key is for."`
	User string `help:"Email address of its user, made if needed; the first owner by default." placeholder:"EMAIL"`
	Role string `enum:",owner,admin,member" default:"" help:"The user's role: owner, admin or member."`
	Org  string `help:"Organization, made if needed; the first one by default." placeholder:"NAME"`
}

// Run prints the key alone, for scripts.
func (c *KeyCreate) Run(f *Folder) error {
	return f.Administer(func(k handlers.Admin) error {
		secret, err := k.CreateKey(f.Context, store.NewKey{Name: c.Name, Email: c.User, Role: store.Role(c.Role), OrganizationName: c.Org})
		if err == nil {
			fmt.Fprintln(f.Stdout, secret)
		}
		return err
	})
}

// KeyList lists API keys.
type KeyList struct {
	Org string `help:"Only the keys of this organization." placeholder:"NAME"`
}

// Run prints a line a key.
func (c *KeyList) Run(f *Folder) error {
	return f.Administer(func(k handlers.Admin) error {
		keys, err := k.Keys(f.Context, c.Org)
		if err == nil {
			terminal.PrintKeys(f.Stdout, keys)
		}
		return err
	})
}

// KeyRevoke ends an API key.
type KeyRevoke struct {
	Key string `arg:"" help:"Its id, its first 12 characters, or the key itself."`
}

// Run revokes the key and says which it was.
func (c *KeyRevoke) Run(f *Folder) error {
	return f.Administer(func(k handlers.Admin) error {
		key, err := k.RevokeKey(f.Context, c.Key, "")
		if err == nil {
			fmt.Fprintf(f.Stdout, "revoked %s (%s)\n", key.ID, key.Name)
		}
		return err
	})
}

// KeyRoll gives an API key a successor.
type KeyRoll struct {
	Key string `arg:"" help:"Its id, its first 12 characters, or the key itself."`
}

// Run prints the new key alone, for scripts.
func (c *KeyRoll) Run(f *Folder) error {
	return f.Administer(func(k handlers.Admin) error {
		_, secret, err := k.RollKey(f.Context, c.Key, "")
		if err == nil {
			fmt.Fprintln(f.Stdout, secret)
		}
		return err
	})
}
