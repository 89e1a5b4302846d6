package dashboard

import (
	"net/http"

	"journeyman/handlers/dashboard/text"
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
