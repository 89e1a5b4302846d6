package command

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"journeyman/handlers"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
)

// A Banner is the text that a server prints for its operator at the start. It creates
// the secrets that it shows.
type Banner struct {
	Version, Model, Data, BaseURL, MailDomain string
	MailAddr                                  string // listen address for mail, "" where mail is off
	APIKey, AdminEmail, AdminPassword         string // from the flags

	key, password, link string // generated; "" if there is nothing to show
}

// CreateSecrets creates the first owner's API key and password. It uses those of the flags. Without
// flags it generates them, unless the folder already has a key and a password. Call it when nothing
// else can stop the start, because Print shows secrets only once.
func (b *Banner) CreateSecrets(ctx context.Context, st *store.Store) error {
	has, err := st.People.HasKeys(ctx)
	if err != nil {
		return err
	}
	key := people.NewKey{Name: "First key", Email: b.AdminEmail, Role: people.RoleOwner, Secret: b.APIKey}
	switch {
	case b.APIKey != "": // the operator knows it already
		if _, _, err := st.People.CreateKey(ctx, people.Operator(), key); err != nil {
			return fmt.Errorf("--api-key: %w", err)
		}
	case !has:
		if b.key, err = st.People.CreateFirstKey(ctx, key); err != nil {
			return err
		}
	}
	if b.AdminPassword != "" {
		defer debug.FreeOSMemory() // hashing took 19 MiB, which an idle server does not need
		return b.setPassword(ctx, st)
	}
	known, err := st.People.HasPasswords(ctx)
	if err != nil || known {
		return err
	}
	defer debug.FreeOSMemory()
	return b.generatePassword(ctx, st)
}

// setPassword sets the password of the flags unless it is set already: setting a
// password ends all sessions of its user.
func (b *Banner) setPassword(ctx context.Context, st *store.Store) error {
	// The flags are the same at every start, and a restart must not sign the owner out.
	_, err := st.People.CheckPassword(ctx, b.AdminEmail, b.AdminPassword)
	if db.IsKind(err, db.Unauthorized) {
		err = st.People.SetPassword(ctx, b.AdminEmail, b.AdminPassword)
	}
	if err != nil {
		return fmt.Errorf("--admin-password: %w", err)
	}
	return nil
}

// generatePassword sets a random password for the first owner and creates a link to
// choose another one.
func (b *Banner) generatePassword(ctx context.Context, st *store.Store) error {
	if _, err := st.People.Owner(ctx, b.AdminEmail); err != nil {
		return fmt.Errorf("--admin-email: %w", err)
	}
	password := strings.ToLower(rand.Text()[:20]) // 100 random bits, which a person can type
	set, err := st.People.SetFirstPassword(ctx, b.AdminEmail, password)
	if err != nil || !set { // another server has just set one, and shows it
		return err
	}
	b.password = password
	_, token, err := st.People.CreatePasswordLink(ctx, people.Operator(), people.LinkWelcome, b.AdminEmail)
	b.link = handlers.LinkAddress(b.BaseURL, people.LinkWelcome, token)
	return err
}

// Print writes the banner. Generated secrets appear here only, and never in a log.
func (b *Banner) Print(w io.Writer) {
	fmt.Fprintf(w, "Journeyman %s serves on %s\n", b.Version, b.BaseURL)
	fmt.Fprintf(w, "  data       %s\n", b.Data)
	fmt.Fprintf(w, "  model      %s\n", b.Model)
	if b.MailAddr != "" {
		fmt.Fprintf(w, "  mail       WORKER_ID@%s, received on smtp://%s\n", b.MailDomain, b.MailAddr)
	}
	if b.key != "" {
		fmt.Fprintf(w, "  API key    %s  (shown only once: keep it)\n", b.key)
	}
	if b.password == "" {
		fmt.Fprintf(w, "  dashboard  %s/\n", b.BaseURL)
	} else {
		fmt.Fprintf(w, "  dashboard  %s/  sign in as %s with password %s\n", b.BaseURL, b.AdminEmail, b.password)
		fmt.Fprintf(w, "             %s  signs you in, too (once, within 24 hours)\n", b.link)
	}
	fmt.Fprintf(w, `
Try it:
  curl -s %s/api/tasks -H "Authorization: Bearer %s" \
    -H "Content-Type: application/json" -d '{"input": "Say hello and tell me what you can do."}'
`, b.BaseURL, cmp.Or(b.key, "$JOURNEYMAN_API_KEY"))
}
