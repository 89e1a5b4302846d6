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
)

// A Start is what a serving process tells its operator when it begins.
type Start struct {
	Version, Model, Data, BaseURL, MailDomain string
	MailAddr                                  string // where mail is taken in, '' where it is off
	APIKey, AdminEmail, AdminPassword         string // as given by the operator

	key, password, link string // made here: what is empty stays unsaid
}

// Make makes the first owner's key, the given one or a fresh one, and their sign-in:
// the given password, or a fresh one while nobody has any. What is shown once is
// made when nothing is left that can stop its showing.
func (s *Start) Make(ctx context.Context, st *store.Store) error {
	has, err := st.HasKeys(ctx)
	if err != nil {
		return err
	}
	if !has || s.APIKey != "" {
		s.key, err = st.CreateKey(ctx, store.NewKey{Name: "First key", Email: s.AdminEmail, Role: store.RoleOwner, Secret: s.APIKey})
		if err != nil && s.APIKey != "" {
			err = fmt.Errorf("--api-key: %w", err)
		}
		if err != nil {
			return err
		}
	}
	if s.APIKey != "" {
		s.key = "" // its owner knows it
	}
	if s.AdminPassword != "" {
		defer debug.FreeOSMemory() // a hash takes 19 MiB, which an idle server need not hold
		return s.setPassword(ctx, st)
	}
	known, err := st.HasPasswords(ctx)
	if err != nil || known {
		return err
	}
	defer debug.FreeOSMemory()
	return s.makePassword(ctx, st)
}

// setPassword makes the given password the first owner's. Setting it anew at each
// start would sign them out each time.
func (s *Start) setPassword(ctx context.Context, st *store.Store) error {
	_, err := st.CheckPassword(ctx, s.AdminEmail, s.AdminPassword)
	if store.IsKind(err, store.Unauthorized) {
		err = st.SetPassword(ctx, s.AdminEmail, s.AdminPassword)
	}
	if err != nil {
		return fmt.Errorf("--admin-password: %w", err)
	}
	return nil
}

// makePassword makes a password for the first owner, and a link to choose another.
func (s *Start) makePassword(ctx context.Context, st *store.Store) error {
	if _, err := st.Owner(ctx, s.AdminEmail); err != nil {
		return fmt.Errorf("--admin-email: %w", err)
	}
	s.password = strings.ToLower(rand.Text()[:20])
	if err := st.SetPassword(ctx, s.AdminEmail, s.password); err != nil {
		return err
	}
	_, token, err := st.CreateReset(ctx, store.LinkWelcome, s.AdminEmail)
	s.link = handlers.LinkAddress(s.BaseURL, store.LinkWelcome, token)
	return err
}

// Print says where things are. What is secret is shown this once and never logged.
func (s *Start) Print(w io.Writer) {
	fmt.Fprintf(w, "Journeyman %s serves on %s\n", s.Version, s.BaseURL)
	fmt.Fprintf(w, "  data       %s\n", s.Data)
	fmt.Fprintf(w, "  model      %s\n", s.Model)
	if s.MailAddr != "" {
		fmt.Fprintf(w, "  mail       WORKER_ID@%s, taken in on smtp://%s\n", s.MailDomain, s.MailAddr)
	}
	if s.key != "" {
		fmt.Fprintf(w, "  API key    %s  (shown only now: keep it)\n", s.key)
	}
	if s.password == "" {
		fmt.Fprintf(w, "  dashboard  %s/\n", s.BaseURL)
	} else {
		fmt.Fprintf(w, "  dashboard  %s/  sign in as %s with password %s\n", s.BaseURL, s.AdminEmail, s.password)
		fmt.Fprintf(w, "             %s  signs you in, too (once, within 24 hours)\n", s.link)
	}
	fmt.Fprintf(w, `
Try it:
  curl -s %s/api/tasks -H "Authorization: Bearer %s" \
    -H "Content-Type: application/json" -d '{"input": "Say hello and tell me what you can do."}'
`, s.BaseURL, cmp.Or(s.key, "$JOURNEYMAN_API_KEY"))
}
