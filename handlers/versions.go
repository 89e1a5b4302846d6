package handlers

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"journeyman/handlers/serve"
	"journeyman/runner/toolset"
	"journeyman/runner/view"
	"journeyman/store/db"
	"journeyman/store/workers"
)

// A versionView is a version of a worker in the list of versions.
type versionView struct {
	Version      int64    `json:"version"`
	CreatedAt    string   `json:"createdAt"`
	UserID       *string  `json:"userId"`       // null if the author was not recorded
	RestoredFrom *int64   `json:"restoredFrom"` // null unless the version restores another
	Changed      []string `json:"changed"`      // fields that differ from the version before
}

func newVersionView(v workers.Version) versionView {
	shown := versionView{Version: v.Number, CreatedAt: view.Timestamp(v.CreatedAt), UserID: view.Optional(v.UserID),
		Changed: v.Changed}
	if v.RestoredFrom != 0 {
		shown.RestoredFrom = &v.RestoredFrom
	}
	if shown.Changed == nil {
		shown.Changed = []string{} // not null in JSON
	}
	return shown
}

// A versionContent is a version with all its fields.
type versionContent struct {
	versionView
	Instructions  string            `json:"instructions"`
	OutputSchema  json.RawMessage   `json:"outputSchema"`
	Model         *string           `json:"model"`
	ApprovalTools []string          `json:"approvalTools"`
	MCPTools      []string          `json:"mcpTools"`
	Tools         workers.ToolRules `json:"tools"`
	StrangerTools workers.ToolRules `json:"strangerTools"`
	Effort        *string           `json:"effort"`
	Temperature   *float64          `json:"temperature"`
}

func (a *API) listVersions(w http.ResponseWriter, r *request) error {
	var f db.Fields
	limit := pageLimit(&f, r.query)
	if err := f.Err(); err != nil {
		return err
	}
	list, next, err := a.store.Workers.WorkerVersions(r.Context(), r.who.Caller, r.param("workerId"),
		r.query.Get("cursor"), limit)
	return respondPage(w, list, next, newVersionView, err)
}

func (a *API) getVersion(w http.ResponseWriter, r *request) error {
	v, err := a.version(r)
	if err != nil {
		return err
	}
	set := v.Settings
	return respond(w, http.StatusOK, versionContent{versionView: newVersionView(v), Instructions: v.Instructions,
		OutputSchema: v.OutputSchema, Model: view.Optional(set.Model), ApprovalTools: set.ApprovalTools,
		MCPTools: set.MCPTools, Tools: set.Tools, StrangerTools: toolset.StrangerTools(set),
		Effort: view.Optional(string(set.Effort)), Temperature: set.Temperature})
}

// version returns the version that the address names.
func (a *API) version(r *request) (workers.Version, error) {
	// A text that is not a number becomes 0, which the store refuses: no version has the number
	// 0.
	number, _ := strconv.ParseInt(r.param("version"), 10, 64)
	return a.store.Workers.WorkerVersion(r.Context(), r.who.Caller, r.param("workerId"), number)
}

// restoreVersion makes a new version of a worker with the content of an older one.
func (a *API) restoreVersion(w http.ResponseWriter, r *request) error {
	key, err := idempotencyKey(r, nil)
	if err != nil {
		return err
	}
	revisions, err := expectedRevisions(r)
	if err != nil {
		return err
	}
	v, err := a.version(r)
	if err != nil {
		return err
	}
	wrk, replayed, err := a.runner.RestoreVersion(r.Context(), r.who.Caller, r.param("workerId"), v, revisions, key)
	return a.respondTemplate(w, wrk, replayed, err)
}

// expectedRevisions reads the header If-Match (RFC 9110, section 13.1.1). It returns nil if every
// revision of the worker is expected.
func expectedRevisions(r *request) ([]string, error) {
	if len(r.Header.Values("If-Match")) == 0 {
		return nil, nil
	}
	revisions := []string{}
	for _, tag := range serve.ListHeader(r.Request, "If-Match") {
		if tag == "*" {
			return nil, nil
		}
		// A weak tag never matches here. It is still well-formed.
		quoted := strings.TrimPrefix(tag, "W/")
		if len(quoted) < 2 || quoted[0] != '"' || quoted[len(quoted)-1] != '"' {
			return nil, invalid("If-Match", `must be "*", or the ETag of the worker's template with its quotes`)
		}
		if quoted == tag {
			revisions = append(revisions, quoted[1:len(quoted)-1])
		}
	}
	return revisions, nil
}
