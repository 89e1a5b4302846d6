package dashboard

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"journeyman/store"
)

// auditRoutes are the pages of the audit log.
func (d *Dashboard) auditRoutes() {
	d.may(store.SeeAudit, "GET", "/settings/audit", d.showAudit)
	d.may(store.SeeAudit, "GET", "/settings/audit.csv", d.downloadAudit)
}

// An auditPage is a page of the audit log.
type auditPage struct {
	Form     *form
	Entries  []auditRow
	Filter   string // the filters as a query
	Filtered bool
	Later    bool   // entries come before these
	Next     string // address of the next page; '' after the last
}

type auditRow struct{ store.AuditEntry }

// Who names who did it.
func (e auditRow) Who() string {
	switch {
	case e.Email != "":
		return e.Email
	case e.UserID != "":
		return e.UserID
	}
	return "command line"
}

// What says what was done.
func (e auditRow) What() string { return actionText(e.Action) }

// Details are what else there is to know, in the order of their names.
func (e auditRow) Details() (list []option) {
	for _, name := range slices.Sorted(maps.Keys(e.Detail)) {
		list = append(list, option{name, detailText(e.Detail[name])})
	}
	return list
}

func detailText(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case string:
		return v
	case []any:
		names := make([]string, len(v))
		for i := range v {
			names[i] = detailText(v[i])
		}
		return cmp.Or(strings.Join(names, ", "), "none")
	}
	return fmt.Sprint(v)
}

// actionTexts say actions in words.
var actionTexts = map[string]string{
	"approval.approve": "approved a tool call", "approval.deny": "denied a tool call", "email.release": "released a held mail", "email.retry": "had a reply sent again",
	"invitation.accept": "accepted an invitation", "invitation.create": "invited somebody", "invitation.revoke": "withdrew an invitation",
	"key.create": "created an API key", "key.revoke": "revoked an API key", "key.roll": "rolled an API key",
	"member.add": "added a member", "member.remove": "removed a member", "member.role": "changed a role",
	"organization.cap": "changed the credit cap", "organization.name": "renamed the organization",
	"password.change": "changed their password", "password.link": "created a link to choose a password", "password.reset": "chose a password by a link",
	"password.set": "set a password", "session.create": "signed in", "session.end": "signed out", "user.name": "changed their name",
	"webhook.remove": "removed a webhook", "webhook.renew": "renewed a webhook's token", "webhook.set": "set a webhook",
	"worker.approvals": "changed which tools need approval", "worker.delete": "deleted a worker",
	"worker.member.add": "invited somebody to a worker", "worker.member.remove": "took an invitation to a worker back",
	"worker.visibility": "changed who sees a worker",
}

func actionText(action string) string {
	if text := actionTexts[action]; text != "" {
		return text
	}
	return action
}

// Actions are the choices of the filter.
func (auditPage) Actions() []option {
	list := []option{{"", "Any"}}
	for _, action := range store.Actions() {
		text := actionText(action)
		list = append(list, option{action, strings.ToUpper(text[:1]) + text[1:]})
	}
	return list
}

// auditQuery reads the filters. A day named as the last is in, whole.
func auditQuery(v url.Values) (q store.AuditQuery, err error) {
	var f store.Fields
	q = store.AuditQuery{Action: v.Get("action"), Email: strings.TrimSpace(v.Get("email")), Cursor: v.Get("cursor"), Limit: pageSize}
	q.After = moment(&f, v, "from")
	if q.Before = moment(&f, v, "to"); len(v.Get("to")) == len(time.DateOnly) && !q.Before.IsZero() {
		q.Before = q.Before.AddDate(0, 0, 1)
	}
	return q, f.Err()
}

// auditFilter is the query with the filters that are set.
func auditFilter(v url.Values) url.Values {
	set := url.Values{}
	for _, name := range []string{"action", "email", "from", "to"} {
		if text := v.Get(name); text != "" {
			set.Set(name, text)
		}
	}
	return set
}

func (d *Dashboard) showAudit(w http.ResponseWriter, r *request) error {
	v := r.URL.Query()
	set := auditFilter(v)
	p := auditPage{Form: &form{Values: v, Errors: map[string]string{}}, Filter: set.Encode(), Filtered: len(set) > 0, Later: v.Get("cursor") != ""}
	status := http.StatusOK
	q, err := auditQuery(v)
	var entries []store.AuditEntry
	var next string
	if err == nil {
		entries, next, err = d.store.AuditLog(r.Context(), r.who.Caller, q)
	}
	if err != nil {
		if !p.Form.refused(err) {
			return err
		}
		status = http.StatusUnprocessableEntity
	}
	for _, e := range entries {
		p.Entries = append(p.Entries, auditRow{e})
	}
	if next != "" {
		set.Set("cursor", next)
		p.Next = "/settings/audit?" + set.Encode()
	}
	return d.render(w, r, status, "audit.html", "Audit log", p)
}

// maxAuditRows is how many rows a download has; auditBatch how many are in memory.
const (
	maxAuditRows = 100_000
	auditBatch   = 1000
)

// downloadAudit sends the log as CSV, while it reads it.
func (d *Dashboard) downloadAudit(w http.ResponseWriter, r *request) error {
	q, err := auditQuery(r.URL.Query())
	if err != nil {
		return err
	}
	q.Limit = auditBatch
	entries, next, err := d.store.AuditLog(r.Context(), r.who.Caller, q)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="audit.csv"`)
	out := csv.NewWriter(w)
	out.UseCRLF = true // RFC 4180
	_ = out.Write([]string{"time", "who", "key", "action", "subject", "detail", "from"})
	for sent := 0; ; {
		for _, e := range entries {
			_ = out.Write(csvRow(e))
		}
		sent += len(entries)
		if out.Flush(); out.Error() != nil || next == "" {
			return nil //nolint:nilerr // the browser has gone
		}
		if sent >= maxAuditRows {
			_ = out.Write([]string{"", "", "", fmt.Sprintf("Older entries follow: a download has about %d. Choose an earlier last day for them.", maxAuditRows), "", "", ""})
			out.Flush()
			return nil
		}
		q.Cursor = next
		if entries, next, err = d.store.AuditLog(r.Context(), r.who.Caller, q); err != nil {
			d.cfg.Log.ErrorContext(r.Context(), "audit download", "err", err)
			panic(http.ErrAbortHandler) // what was sent must not be taken for whole
		}
	}
}

func csvRow(e store.AuditEntry) []string {
	detail, err := json.Marshal(e.Detail)
	if err != nil {
		detail = nil
	}
	row := []string{e.CreatedAt.UTC().Format("2006-01-02T15:04:05.000Z"), auditRow{e}.Who(), e.KeyName, e.Action, e.Subject, string(detail), e.RemoteAddr}
	for i := range row {
		row[i] = csvCell(row[i])
	}
	return row
}

// csvCell has spreadsheets take a text for text, and not for a formula.
func csvCell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
