package admin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/show"
	"journeyman/runner/view"
	"journeyman/store/db"
	"journeyman/store/people"
)

// auditRoutes registers the pages of the audit log.
func (d *Pages) auditRoutes() {
	d.May(people.SeeAudit, "GET", "/settings/audit", d.showAudit)
	d.May(people.SeeAudit, "GET", "/settings/audit.csv", d.downloadAudit)
}

// An auditPage is the data of a page of the audit log.
type auditPage struct {
	Form     *frame.Form
	Actions  []frame.Option
	Entries  []auditRow
	Filter   string // the filters as a query
	Filtered bool
	Later    bool   // this is not the first page
	Next     string // address of the next page; "" after the last
}

type auditRow struct {
	people.AuditEntry
	r     *frame.Request
	names map[string]string // of records, by id
}

// Who returns the email address of the person who acted.
func (e auditRow) Who() string {
	switch {
	case e.Email != "":
		return e.Email
	case e.UserID != "":
		return cmp.Or(e.names[e.UserID], e.r.T("a former member"))
	}
	return e.r.T("command line")
}

// What returns the text of the action.
func (e auditRow) What() string { return actionText(e.r, e.Action) }

// From returns the address of the client.
func (e auditRow) From() string { return cmp.Or(e.RemoteAddr, e.r.T("this machine")) }

// An auditValue is a value of an entry: its label, its text, and the page of the named record.
type auditValue struct{ Label, Text, Path string }

// Changed returns the changed record, or nil if the entry has no name for it.
func (e auditRow) Changed() *auditValue {
	name := e.names[e.Subject]
	if name == "" || e.Subject == e.UserID {
		return nil
	}
	return &auditValue{Text: show.Brief(name), Path: recordPath(e.Subject)}
}

// Details returns the further values of the entry, sorted by name. It leaves out empty values, and
// ids without a name.
func (e auditRow) Details() (list []auditValue) {
	shown := ""
	if subject := e.Changed(); subject != nil {
		shown = subject.Text
	}
	for _, name := range slices.Sorted(maps.Keys(e.Detail)) {
		value := detailText(e.Detail[name])
		path := ""
		if known := e.names[value]; known != "" {
			value, path = known, recordPath(value)
		} else if recordID.MatchString(value) {
			continue
		}
		if value != "" && value != shown {
			list = append(list, auditValue{cmp.Or(e.r.Lang.Label("audit detail", name), name), show.Brief(value), path})
		}
	}
	return list
}

// recordID matches the ids of records, which end in a ULID.
var recordID = regexp.MustCompile(`^[a-z]{2,5}_[0-9a-z]{26}$`)

// recordPath returns the address of the page of a record, or "" if it has none.
func recordPath(id string) string {
	prefix, _, _ := strings.Cut(id, "_")
	switch prefix {
	case "wrk":
		return "/workers/" + id
	case "msg":
		return "/mail/messages/" + id
	case "key":
		return "/settings/keys"
	case "usr":
		return "/settings/members"
	case "tsk":
		return view.TaskPath(id)
	}
	return ""
}

// detailText returns a value of an entry for people. It is empty for an empty value.
func detailText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []any:
		names := make([]string, len(v))
		for i := range v {
			names[i] = detailText(v[i])
		}
		return strings.Join(names, ", ")
	}
	return fmt.Sprint(v)
}

// actionText returns the text of an action of the audit log.
func actionText(r *frame.Request, action string) string {
	return cmp.Or(r.Lang.Label("audit action", action), action)
}

// actionOptions returns the choices of the filter.
func actionOptions(r *frame.Request) []frame.Option {
	list := []frame.Option{{Value: "", Label: r.T("Any")}}
	for _, action := range people.Actions() {
		list = append(list, frame.Option{Value: action, Label: show.Capital(actionText(r, action))})
	}
	return list
}

// auditQuery reads the filters. The result includes the last day.
func auditQuery(v url.Values) (q people.AuditQuery, err error) {
	var f db.Fields
	q = people.AuditQuery{Action: v.Get("action"), Email: strings.TrimSpace(v.Get("email")), Cursor: v.Get("cursor"),
		Limit: pageSize, After: frame.FormTime(&f, v, "from"), Before: frame.FormTime(&f, v, "to")}
	// The value is the beginning of the day, but the filter includes the whole day.
	if len(v.Get("to")) == len(time.DateOnly) && !q.Before.IsZero() {
		q.Before = q.Before.AddDate(0, 0, 1)
	}
	return q, f.Err()
}

func (d *Pages) showAudit(w http.ResponseWriter, r *frame.Request) error {
	v := r.URL.Query()
	set := frame.Filters(v, "action", "email", "from", "to")
	p := auditPage{Form: frame.FormOf(v), Actions: actionOptions(r), Filter: set.Encode(), Filtered: len(set) > 0,
		Later: v.Get("cursor") != ""}
	q, err := auditQuery(v)
	var entries []people.AuditEntry
	var next string
	if err == nil {
		entries, next, err = d.Store.People.AuditLog(r.Context(), r.Who.Caller, q)
	}
	status, err := p.Form.ListStatus(r, err)
	if err != nil {
		return err
	}
	names, err := d.Store.People.AuditNames(r.Context(), r.Who.Caller, entries)
	if err != nil {
		return err
	}
	for _, e := range entries {
		p.Entries = append(p.Entries, auditRow{e, r, names})
	}
	p.Next = frame.ListPage("/settings/audit", set, next)
	return d.Render(w, r, status, "audit.html", r.T("Audit log"), p)
}

const (
	maxAuditRows = 100_000 // of a download
	auditBatch   = 1000    // rows in memory at once
)

// downloadAudit sends the newest entries that the filters find.
func (d *Pages) downloadAudit(w http.ResponseWriter, r *frame.Request) error {
	q, err := auditQuery(r.URL.Query())
	if err != nil {
		return err
	}
	q.Limit = auditBatch
	sent := 0
	batch := func() (rows [][]string, more bool, err error) {
		if sent >= maxAuditRows {
			note := fmt.Sprintf("Older entries follow: a download has about %d. "+
				"Choose an earlier last day for them.", maxAuditRows)
			return [][]string{{"", "", "", note, "", "", ""}}, false, nil
		}
		entries, next, err := d.Store.People.AuditLog(r.Context(), r.Who.Caller, q)
		for _, e := range entries {
			rows = append(rows, auditCells(auditRow{AuditEntry: e, r: r}))
		}
		q.Cursor, sent = next, sent+len(rows)
		return rows, next != "", err
	}
	return d.SendCSV(w, r, "audit.csv", []string{"time", "who", "key", "action", "subject", "detail", "from"}, batch)
}

// auditCells returns the row of an entry.
func auditCells(e auditRow) []string {
	detail, err := json.Marshal(e.Detail)
	if err != nil {
		detail = nil
	}
	row := []string{e.CreatedAt.UTC().Format("2006-01-02T15:04:05.000Z"), e.Who(), e.KeyName, e.Action,
		e.Subject, string(detail), e.RemoteAddr}
	for i := range row {
		row[i] = frame.CSVCell(row[i])
	}
	return row
}
