package dashboard

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"journeyman/handlers/dashboard/text"
	"journeyman/store"
)

// An errorPage is the data of the error page.
type errorPage struct {
	Status    int
	Message   string
	Details   []option // the faults of fields, with the fields' names on pages
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
func (p errorPage) title() text.Key {
	title, known := map[int]text.Key{
		http.StatusBadRequest:            "Invalid request",
		http.StatusForbidden:             "Access denied",
		http.StatusNotFound:              "Page not found",
		http.StatusConflict:              "Not possible right now",
		http.StatusRequestEntityTooLarge: "Request too large",
		http.StatusTooManyRequests:       "Too many requests",
		http.StatusServiceUnavailable:    "Not possible right now",
	}[p.Status]
	if !known {
		return text.Key("Something went wrong")
	}
	return title
}

// fieldLabel returns the name that pages show for a field of the API.
func (r *request) fieldLabel(path string) string {
	label, known := map[string]text.Key{
		"name": "Name", "title": "Title", "summary": "Summary", "instructions": "Instructions", "input": "Instruction",
		"email": "Email address", "password": "Password", "old": "Old password", "role": "Role", "value": "Value",
		"hosts": "Hosts", "monthlyCreditCap": "Credits a month", "cursor": "Page", "from": "From", "to": "To",
		"status": "Status", "action": "Action", "theme": "Theme", "language": "Language", "answer": "Answer",
		"reason": "Reason", "model": "Model", "budget": "Budget", "outputSchema": "Output schema", "url": "Address",
		"cron": "Schedule", "timezone": "Time zone", "files": "Files", "tools": "Tools", "visibility": "Visibility",
	}[path]
	if !known {
		return path
	}
	return r.t(label)
}

// translated returns err with its messages in the language of the page. An error without messages for
// users stays as it is.
func (r *request) translated(err error) error {
	e, ok := errors.AsType[*store.Error](err)
	if !ok || r.lang.Code == text.English().Code {
		return err
	}
	shown := *e
	shown.Message = r.lang.Message(errorTexts(), e.Message)
	shown.Details = slices.Clone(e.Details)
	for i, detail := range e.Details {
		shown.Details[i].Message = r.lang.Message(errorTexts(), detail.Message)
	}
	if len(e.Details) > 0 && strings.HasPrefix(e.Message, e.Details[0].Path+": ") { // as Fields.Err makes it
		shown.Message = r.fieldLabel(e.Details[0].Path) + ": " + shown.Details[0].Message
	}
	return &shown
}
