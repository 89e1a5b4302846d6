package runner

import (
	"errors"
	"strings"

	"journeyman/runner/model"
	"journeyman/store"
)

// Log lines contain ids, figures and codes of turns, never their text.

// turnIDs returns the log attributes that identify a turn.
func turnIDs(t store.Turn) []any {
	return []any{"turn", t.ID, "task", t.TaskID, "worker", t.WorkerID, "organization", t.OrganizationID}
}

// plainCode returns code if it looks like an error code of this program or of HTTP, otherwise
// "other". A script or a provider may send any text as a code, which must not be logged.
func plainCode(code string) string {
	if code == "" || len(code) > 40 || strings.Trim(code, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return "other"
	}
	return code
}

// logCall logs that a model call failed or returned no answer.
func (r *Runner) logCall(e *execution, message string, err error, more ...any) {
	provider, name, _ := strings.Cut(e.model.Name(), ":")
	attrs := append([]any{"provider", provider, "model", name}, more...)
	if me, ok := errors.AsType[*model.Error](err); ok {
		attrs = append(attrs, "code", plainCode(me.Code), "err", me) // its LogValue omits the provider's text
	} else if err != nil {
		attrs = append(attrs, "err", err)
	}
	r.cfg.Log.Warn(message, append(attrs, turnIDs(e.claim.Turn)...)...)
}
