package frame

import (
	"cmp"
	"net/http"
	"strconv"

	"journeyman/handlers"
	"journeyman/handlers/dashboard/text"
	"journeyman/store/db"
)

// An errorPage is the data of the error page.
type errorPage struct {
	Status    int
	Message   string
	Details   []Option // the faults of fields, with the fields' names on pages
	RequestID string
}

// Icon returns the icon for the kind of error.
func (p errorPage) Icon() string {
	switch p.Status {
	case http.StatusNotFound:
		return "search"
	case http.StatusForbidden:
		return "lock"
	}
	return "warn"
}

// title returns the heading of the page.
func (p errorPage) title(r *Request) string {
	return cmp.Or(r.Lang.Label("error page", strconv.Itoa(p.Status)), r.T("Something went wrong"))
}

// fieldLabel returns the name that pages show for a field of the API.
func (r *Request) fieldLabel(path string) string { return cmp.Or(r.Lang.Label("field", path), path) }

// Explained returns the message of an error, which is in English, with the text of its code before it.
// English pages show the message alone.
func Explained(l *text.Language, code, message string) string {
	what, whole := codeText(l, code)
	switch {
	case what == "" || l.Code == "en":
		return message
	case whole || message == "":
		return what
	}
	return what + ": " + message
}

// Explained returns the message of an error in the language of the page. The code of its kind explains
// an error whose own code has no text.
func (r *Request) Explained(e *db.Error) string {
	code := handlers.ProblemOf(e).Code
	if what, _ := codeText(r.Lang, code); what == "" {
		code = handlers.ProblemOf(&db.Error{Kind: e.Kind}).Code
	}
	return Explained(r.Lang, code, e.Message)
}

// InvalidField is the code of the fault of one field.
const InvalidField = "invalid_field"

// codeText returns the text for a code of an error or of a turn's failure, or "" for an unknown code.
// whole means that the message of such an error says nothing more.
func codeText(l *text.Language, code string) (what string, whole bool) {
	if what = l.Label("whole error", code); what != "" {
		return what, true
	}
	return l.Label("error", code), false
}

// A TryLater error refuses a password or a session for some time. Its page has the status of the
// wrapped error, such as 429.
type TryLater struct{ error }

// Unwrap returns the db.Error.
func (e *TryLater) Unwrap() error { return e.error }

// Later returns err as a TryLater error if it is Limited or Busy, and otherwise as it is.
func Later(err error) error {
	if db.IsKind(err, db.Limited) || db.IsKind(err, db.Busy) {
		return &TryLater{err}
	}
	return err
}

// ErrNotFound is the error for an address without a page.
var ErrNotFound = db.Errorf(db.NotFound, "there is no page at this address")

// refusal returns a handler for addresses without a page. A program gets the error as JSON. A
// browser that is not signed in is redirected to the sign-in page, so that it cannot find out which
// pages exist.
func (fr *Frame) refusal(err error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r := &Request{Request: req, Lang: fr.language(req, ""), basePath: fr.BasePath}
		other := fr.identify(r)
		if handlers.RefuseProgram(w, req, cmp.Or(other, err)) {
			return
		}
		if other == nil && r.Who.UserID == "" {
			other = fr.toSignIn(w, r)
			if other == nil {
				return
			}
		}
		fr.refuse(w, r, cmp.Or(other, err))
	})
}
