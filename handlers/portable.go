package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// A worker can be exported as a YAML file, and imported as a new worker. The file holds the
// definition of the worker: fields, schedules, and the address of its webhook. It holds no secrets,
// no members, no files and no tasks.

// portableFormat is the number of the file's format. A later format gets another number.
const portableFormat = 1

// ExportWorker returns a worker that the caller may see as a YAML file.
func (a *API) ExportWorker(ctx context.Context, c people.Caller, id string) ([]byte, error) {
	w, err := a.store.Workers.Worker(ctx, c, id)
	if err != nil {
		return nil, err
	}
	schedules, err := a.store.Schedules(ctx, c, id)
	if err != nil {
		return nil, err
	}
	hook := ""
	if w.UserID == c.UserID { // only its creator may see the webhook
		h, err := a.store.Effects.Webhook(ctx, c, id)
		if err != nil {
			return nil, err
		}
		hook = withoutSecrets(h.URL)
	}
	out := portable(w, schedules, hook)
	if len(out) > maxYAML {
		return nil, db.Errorf(db.Conflict, "the file would be larger than %d bytes: shorten the schedules",
			maxYAML)
	}
	return out, nil
}

// withoutSecrets returns an address without the parts that often hold a secret: user, password,
// query and fragment.
func withoutSecrets(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment, u.RawFragment = nil, "", "", ""
	return u.String()
}

// portable writes the file of a worker. Its values are JSON, which is also YAML. Only long texts
// are blocks, so that people can read and change them.
func portable(w workers.Worker, schedules []store.Schedule, webhook string) []byte {
	var b bytes.Buffer
	b.WriteString("# A worker of Journeyman. Secrets, members, files and tasks are not in this file.\n")
	put := func(key string, value any) { fmt.Fprintf(&b, "%s: %s\n", key, yamlValue(value)) }
	put("journeyman", portableFormat)
	put("title", w.Title)
	put("summary", w.Summary)
	fmt.Fprintf(&b, "instructions: %s\n", yamlText(w.Instructions, "  "))
	if w.OutputSchema != nil {
		fmt.Fprintf(&b, "outputSchema: %s\n", indentJSON(w.OutputSchema))
	}
	if w.Settings.Model != "" {
		put("model", w.Settings.Model)
	}
	if w.Settings.Effort != "" {
		put("effort", w.Settings.Effort)
	}
	if w.Settings.Temperature != nil {
		put("temperature", *w.Settings.Temperature)
	}
	if w.Settings.Tools != nil {
		put("tools", w.Settings.Tools)
	}
	if w.Settings.StrangerTools != nil {
		put("strangerTools", w.Settings.StrangerTools)
	}
	put("approvalTools", w.Settings.ApprovalTools)
	put("mcpTools", w.Settings.MCPTools)
	put("workspace", w.Workspace)
	if w.KeepTaskDays != nil {
		put("keepTaskDays", *w.KeepTaskDays)
	}
	put("visibility", w.Visibility)
	if webhook != "" {
		put("webhook", webhook)
	}
	if len(schedules) > 0 {
		b.WriteString("schedules:\n")
	}
	for _, s := range schedules {
		fmt.Fprintf(&b, "  - when: %s\n    budget: %s\n", yamlValue(portableWhen(s)), s.Budget)
		if s.Paused {
			b.WriteString("    paused: true\n")
		}
		fmt.Fprintf(&b, "    input: %s\n", yamlText(s.Input, "      "))
	}
	return b.Bytes()
}

// portableWhen returns the rule of a schedule in the form of the API. A delay becomes its date.
func portableWhen(s store.Schedule) map[string]any {
	switch s.When.Type {
	case store.CronType:
		return map[string]any{"type": s.When.Type, "cron": s.When.Cron}
	case store.Interval:
		return map[string]any{"type": s.When.Type, "intervalSeconds": s.When.IntervalSeconds}
	}
	return map[string]any{"type": store.Scheduled, "date": view.Timestamp(s.NextRunAt)}
}

// yamlValue returns a value as JSON on one line.
func yamlValue(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // texts, numbers and lists of them
	return strings.TrimRight(b.String(), "\n")
}

// indentJSON returns JSON with a line for each field, indented as the value of a key.
func indentJSON(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "  ", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// plainBlock matches lines that a block may hold as they are.
var plainBlock = regexp.MustCompile(`^[^\s].*[^\s]$|^[^\s]$`)

// escapeBrackets replaces opening brackets in a JSON string by escape sequences.
func escapeBrackets(text string) string {
	return strings.NewReplacer("[", `\u005b`, "{", `\u007b`).Replace(text)
}

// yamlText returns a text as a block if it has several lines and a block can hold it unchanged.
// Otherwise it returns a JSON string. It hides brackets that stay open from yamlToJSON, which also counts
// the brackets in texts and would refuse the file.
func yamlText(text, indent string) string {
	if open, most := openBrackets([]byte(text), 0); open > 0 || most > maxYAMLDepth/2 {
		return escapeBrackets(yamlValue(text))
	}
	body := strings.TrimSuffix(text, "\n")
	lines := strings.Split(body, "\n")
	safe := len(lines) > 1 && lines[0] != "" && lines[len(lines)-1] != "" && lines[0][0] != ' '
	for _, line := range lines {
		trimmed := strings.TrimLeft(line, " ")
		safe = safe && (line == "" || plainBlock.MatchString(trimmed))
	}
	for _, r := range body {
		safe = safe && (r == '\n' || unicode.IsPrint(r))
	}
	if !safe {
		return yamlValue(text)
	}
	var b strings.Builder
	b.WriteString("|")
	if body == text {
		b.WriteString("-") // no line end after the last line
	}
	for _, line := range lines {
		b.WriteString("\n")
		if line != "" {
			b.WriteString(indent + line)
		}
	}
	return b.String()
}

// An importedWorker is the worker that a file of ExportWorker describes.
type importedWorker struct {
	draft     workers.NewWorker
	schedules []store.NewSchedule
	webhook   string
}

// ImportWorker creates a worker from a file of ExportWorker. It never changes another worker. Its
// error names every field that breaks a rule. A request that created a worker before gets that
// worker, and replayed is true.
func (a *API) ImportWorker(ctx context.Context, c people.Caller, file []byte, key db.IdempotencyKey) (
	w workers.Worker, replayed bool, err error) {
	in, err := a.readPortable(ctx, c, file)
	if err != nil {
		return w, false, err
	}
	w, replayed, err = a.store.ImportWorker(ctx, c, in.draft, in.schedules, in.webhook, key)
	if err == nil && len(in.schedules) > 0 {
		a.cfg.ScheduleChanged()
	}
	return w, replayed, err
}

// readPortable reads and checks a file.
func (a *API) readPortable(ctx context.Context, c people.Caller, file []byte) (in importedWorker, err error) {
	raw, err := a.readYAML(ctx, c, file)
	if err != nil {
		return in, err
	}
	b, err := ParseBody(raw)
	if err != nil {
		return in, db.Errorf(db.Invalid, "the file must be an object with the field journeyman")
	}
	var format float64
	if !b.has("journeyman") || json.Unmarshal(b.fields["journeyman"], &format) != nil || format != portableFormat {
		return in, invalid("journeyman", fmt.Sprintf("must be %d, the format of this file: "+
			"it is no worker of this program, or one of a newer version", portableFormat))
	}
	draft := b.worker(ctx, c, a.runner)
	in.draft = draft.New()
	if in.webhook = b.Text("webhook"); in.webhook != "" {
		if err := a.cfg.Webhooks.Check(in.webhook); err != nil {
			b.Invalid.Add("webhook", "%s", err.Error())
		}
	}
	in.schedules = a.portableSchedules(b)
	b.refuseUnread()
	return in, b.Invalid.Err()
}

// portableSchedules reads the list of schedules.
func (a *API) portableSchedules(b *Body) (list []store.NewSchedule) {
	if !b.has("schedules") {
		return nil
	}
	var items []json.RawMessage
	if json.Unmarshal(b.fields["schedules"], &items) != nil {
		b.Invalid.Add("schedules", "must be a list")
		return nil
	}
	if len(items) > store.MaxSchedules {
		b.Invalid.Add("schedules", "must have at most %d items", store.MaxSchedules)
		return nil
	}
	for i, raw := range items {
		path := fmt.Sprintf("schedules.%d", i)
		one := &Body{}
		if json.Unmarshal(raw, &one.fields) != nil || one.fields == nil {
			b.Invalid.Add(path, "must be an object with when and input")
			continue
		}
		n := store.NewSchedule{Input: one.Instruction(), Budget: one.Budget(), Paused: one.flag("paused")}
		if when := a.when(one); when != nil {
			n.When = *when
		} else if !one.has("when") {
			one.Invalid.Add("when", "is required")
		}
		one.refuseUnread()
		for _, d := range one.Invalid {
			b.Invalid.Add(path+"."+d.Path, "%s", d.Message)
		}
		list = append(list, n)
	}
	return list
}

// refuseUnread notes each field that no method has read.
func (b *Body) refuseUnread() {
	for _, name := range b.unread() {
		b.refuseField(name)
	}
}

func (a *API) exportWorker(w http.ResponseWriter, r *request) error {
	out, err := a.ExportWorker(r.Context(), r.who.Caller, r.param("workerId"))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Disposition", `attachment; filename="worker.yaml"`)
	return respondBytes(w, "application/yaml", out)
}

// importWorker creates a worker from a YAML file, or from the same as JSON.
func (a *API) importWorker(w http.ResponseWriter, r *request) error {
	raw, done, err := readAll(w, r, "a YAML file", maxYAML)
	if err != nil {
		return err
	}
	defer done()
	key, err := idempotencyKey(r, raw)
	if err != nil {
		return err
	}
	wrk, replayed, err := a.ImportWorker(r.Context(), r.who.Caller, raw, key)
	return a.respondTemplate(w, wrk, replayed, err)
}
