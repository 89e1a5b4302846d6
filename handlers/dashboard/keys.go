package dashboard

import (
	"net/http"
	"net/url"
	"time"

	"journeyman/store"
)

// keyRoutes are the pages of API keys.
func (d *Dashboard) keyRoutes() {
	d.may(store.ManageKeys, "GET", "/settings/keys", d.showKeys)
	d.may(store.ManageKeys, "POST", "/settings/keys", d.createKey)
	d.may(store.ManageKeys, "POST", "/settings/keys/:keyId/roll", d.rollKey)
	d.may(store.ManageKeys, "POST", "/settings/keys/:keyId/revoke", d.revokeKey)
}

// pageSize is how many rows a list of the settings has.
const pageSize = 50

// A keysPage lists keys, and shows the secret of one that was just made. That is in
// the answer to the form and nowhere else: it cannot be looked at again.
type keysPage struct {
	Form   *form
	Keys   []keyRow
	Next   string // address of the next page; '' after the last
	First  bool
	Made   store.Key
	Secret string // '' where none was made
	Rolled bool   // it is the successor of another
}

type keyRow struct {
	store.Key
	State   string // active, rolled, expired or revoked
	MayRoll bool
}

// Works reports whether the key is good for anything.
func (k keyRow) Works() bool { return k.State == "active" || k.State == "rolled" }

func keyState(k store.Key, now time.Time) string {
	switch {
	case k.RevokedAt != nil:
		return "revoked"
	case k.ExpiresAt == nil:
		return "active"
	case k.ExpiresAt.After(now):
		return "rolled"
	}
	return "expired"
}

func (d *Dashboard) showKeys(w http.ResponseWriter, r *request) error {
	return d.keysPage(w, r, http.StatusOK, keysPage{Form: newForm(nil)})
}

func (d *Dashboard) keysPage(w http.ResponseWriter, r *request, status int, p keysPage) error {
	cursor := r.URL.Query().Get("cursor")
	keys, next, err := d.store.OrganizationKeys(r.Context(), r.who.Caller, cursor, pageSize)
	if err != nil {
		return err
	}
	for _, k := range keys {
		row := keyRow{Key: k, State: keyState(k, d.cfg.Now())}
		row.MayRoll = row.State == "active" && (k.Role != store.RoleOwner || r.who.Role.May(store.ManageOwners))
		p.Keys = append(p.Keys, row)
	}
	p.First = cursor == ""
	if next != "" {
		p.Next = "/settings/keys?cursor=" + url.QueryEscape(next)
	}
	return d.render(w, r, status, "keys.html", "API keys", p)
}

func (d *Dashboard) createKey(w http.ResponseWriter, r *request) error {
	f, err := readForm(w, r)
	if err != nil {
		return err
	}
	made, secret, err := d.store.CreateKeyAs(r.Context(), r.who.Caller, f.Get("name"))
	if err != nil {
		if !f.refused(err) {
			return err
		}
		return d.keysPage(w, r, http.StatusUnprocessableEntity, keysPage{Form: f})
	}
	return d.keysPage(w, r, http.StatusOK, keysPage{Form: newForm(nil), Made: made, Secret: secret})
}

func (d *Dashboard) rollKey(w http.ResponseWriter, r *request) error {
	made, secret, err := d.store.RollKeyAs(r.Context(), r.who.Caller, r.params.ByName("keyId"))
	if err != nil {
		return err
	}
	return d.keysPage(w, r, http.StatusOK, keysPage{Form: newForm(nil), Made: made, Secret: secret, Rolled: true})
}

func (d *Dashboard) revokeKey(w http.ResponseWriter, r *request) error {
	if _, err := d.store.RevokeKeyAs(r.Context(), r.who.Caller, r.params.ByName("keyId")); err != nil {
		return err
	}
	return done(w, r, "/settings/keys", "key-revoked")
}
