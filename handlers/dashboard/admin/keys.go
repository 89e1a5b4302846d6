package admin

import (
	"cmp"
	"net/http"
	"time"

	"journeyman/handlers/dashboard/frame"
	"journeyman/store/people"
)

// keyRoutes registers the pages of API keys.
func (d *Pages) keyRoutes() {
	d.May(people.ManageKeys, "GET", "/settings/keys", frame.Blank(d.keysPage))
	d.May(people.ManageKeys, "POST", "/settings/keys", frame.Submitted(d.createKey, d.keysPage))
	d.May(people.ManageKeys, "POST", "/settings/keys/:keyId/roll", frame.Button(d.rollKey))
	d.May(people.ManageKeys, "POST", "/settings/keys/:keyId/revoke", frame.Button(d.revokeKey))
}

// pageSize is the number of rows on a page of members, keys or the audit log.
const pageSize = 50

// A keysPage lists keys. It also shows the secret of a key that was just created, once.
type keysPage struct {
	Form  *frame.Form
	Keys  []keyRow
	Next  string // address of the next page; "" after the last
	First bool
	justMade[madeKey]
}

// A madeKey is a key that was just created.
type madeKey struct {
	people.Key
	Secret string // "" without a new key
	Rolled bool   // the key replaces an older one
}

// keyMade is the address of the page that shows a new key. keyKind is the kind of the key's secret
// in oneTime.
const (
	keyMade = "/settings/keys?made=1"
	keyKind = "key"
)

type keyRow struct {
	people.Key
	State   string // active, rolled, expired or revoked
	Label   string // the state in the language of the page
	MayRoll bool
}

// Works reports whether requests with the key are accepted.
func (k keyRow) Works() bool { return k.State == "active" || k.State == "rolled" }

// keyState returns the state of a key at a time.
func keyState(k people.Key, now time.Time) string {
	switch {
	case k.RevokedAt != nil:
		return "revoked"
	case k.GrantID != "" || k.ExpiresAt == nil: // a program renews its token when needed
		return "active"
	case k.ExpiresAt.After(now):
		return "rolled"
	}
	return "expired"
}

func (d *Pages) keysPage(w http.ResponseWriter, r *frame.Request, status int, f *frame.Form) error {
	p := keysPage{Form: cmp.Or(f, frame.NewForm(nil))}
	if p.read(d, w, r, keyKind) {
		return nil
	}
	cursor := r.URL.Query().Get("cursor")
	keys, next, err := d.Store.People.OrganizationKeys(r.Context(), r.Who.Caller, cursor, pageSize)
	if err != nil {
		return err
	}
	for _, k := range keys {
		row := keyRow{Key: k, State: keyState(k, d.Now())}
		row.Label = r.Lang.Label("key state", row.State)
		row.MayRoll = row.State == "active" && k.GrantID == "" &&
			(k.Role != people.RoleOwner || r.Who.May(people.ManageOwners))
		p.Keys = append(p.Keys, row)
	}
	p.First, p.Next = cursor == "", frame.ListPage("/settings/keys", nil, next)
	return d.Render(w, r, status, "keys.html", r.T("API keys"), p)
}

func (d *Pages) createKey(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	made, secret, err := d.Store.People.CreateKey(r.Context(), r.Who.Caller, people.NewKey{Name: f.Get("name")})
	if err == nil {
		d.once.put(r.SessionID, keyKind, madeKey{made, secret, false})
	}
	return d.hereOnly(keyMade), err
}

// rollKey replaces a key. The old key works for another day.
func (d *Pages) rollKey(r *frame.Request) (string, error) {
	made, secret, err := d.Store.People.RollKey(r.Context(), r.Who.Caller, r.Params.ByName("keyId"))
	if err == nil {
		d.once.put(r.SessionID, keyKind, madeKey{made, secret, true})
	}
	return d.hereOnly(keyMade), err
}

func (d *Pages) revokeKey(r *frame.Request) (string, error) {
	_, err := d.Store.People.RevokeKey(r.Context(), r.Who.Caller, r.Params.ByName("keyId"))
	return frame.Done("/settings/keys", "key-revoked"), err
}
