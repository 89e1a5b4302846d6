package runner

import (
	"errors"
	"log/slog"
	"strings"

	"journeyman/runner/model"
	"journeyman/store"
)

// Log lines contain ids, figures and codes of turns, never their text.

// turnLog returns a logger that adds the ids of t to each line.
func (r *Runner) turnLog(t store.Turn) *slog.Logger {
	return r.cfg.Log.With("turn", t.ID, "task", t.TaskID, "worker", t.WorkerID, "organization", t.OrganizationID)
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
func (e *execution) logCall(message string, err error, more ...any) {
	provider, name, _ := strings.Cut(e.model.Name(), ":")
	attrs := append([]any{"provider", provider, "model", name}, more...)
	if me, ok := errors.AsType[*model.Error](err); ok {
		attrs = append(attrs, "code", plainCode(me.Code), "err", me) // its LogValue omits the provider's text
	} else if err != nil {
		attrs = append(attrs, "err", err)
	}
	e.log.Warn(message, attrs...)
}
