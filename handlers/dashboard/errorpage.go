package dashboard

import (
	"net/http"

	"journeyman/handlers"
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

// explained returns the message of an error, which is in English, with the text of its code before it.
// English pages show the message alone.
func explained(l *text.Language, code, message string) string {
	what, whole := codeText(code)
	switch {
	case what == "" || l.Code == text.English().Code:
		return message
	case whole || message == "":
		return l.T(what)
	}
	return l.T(what) + ": " + message
}

// explained returns the message of an error in the language of the page. The code of its kind explains
// an error whose own code has no text.
func (r *request) explained(e *store.Error) string {
	code := handlers.ProblemOf(e).Code
	if what, _ := codeText(code); what == "" {
		code = handlers.ProblemOf(&store.Error{Kind: e.Kind}).Code
	}
	return explained(r.lang, code, e.Message)
}

// invalidField is the code of the fault of one field.
const invalidField = "invalid_field"

// codeText returns the text for a code of an error or of a turn's failure, or "" for an unknown code.
// whole means that the message of such an error says nothing more.
func codeText(code string) (what text.Key, whole bool) {
	if what = wholeTexts()[code]; what != "" {
		return what, true
	}
	if what = errorTexts()[code]; what == "" {
		what = failureTexts()[code]
	}
	return what, false
}

// wholeTexts returns the texts for codes whose errors all have the same message.
func wholeTexts() map[string]text.Key {
	return map[string]text.Key{
		"unauthorized":     "The email address or the password is wrong",
		"payment_required": "The credits of this month are used up.",
		"credit_cap":       "The credits of this month are used up.",
		"storage_damaged":  "The server's database is damaged: its operator has to restore a backup",
		"internal":         "An internal error ended the turn",
		"interrupted":      "The server stopped three times during this turn",
		"approval_timeout": "Nobody decided in time on a tool call",
		"empty_answer":     "The model ended twice without an answer",
	}
}

// errorTexts returns the texts for codes of errors.
func errorTexts() map[string]text.Key {
	return map[string]text.Key{
		invalidField:          "This value is not valid",
		"invalid_request":     "The request is not valid",
		"forbidden":           "This is not allowed",
		"not_found":           "This does not exist",
		"conflict":            "This is not possible now",
		"precondition_failed": "Somebody has changed this meanwhile",
		"too_large":           "This is too large",
		"busy":                "The server is busy",
		"rate_limited":        "There were too many tries",
		"storage":             "The server cannot store anything now",
		"maintenance":         "The server is in maintenance",
		"stopping":            "The server is stopping",
	}
}

// failureTexts returns the texts for codes of failed turns and of models that do not answer.
func failureTexts() map[string]text.Key {
	return map[string]text.Key{
		"connection":        "The model server cannot be reached",
		"timeout":           "The model server did not answer in time",
		"stream":            "The answer of the model broke off",
		"bad_response":      "The answer of the model cannot be read",
		"context_length":    "The conversation is too long for the model",
		"content_filter":    "The provider withheld the answer",
		"refused":           "The model refused to answer",
		"model_unavailable": "The model is not available",
		"replay_miss":       "No recorded answer fits",
		"script":            "The script is not valid",
		"loop":              "The model repeated the same tool call",
		"schema_mismatch":   "The answer does not match the answer format",
		"401":               "The provider refused the key",
		"402":               "The credit at the provider is used up",
		"403":               "The provider refused access",
		"404":               "The provider does not know the model",
		"429":               "The limits at the provider are reached",
		"500":               "The provider reports an error",
		"503":               "The provider is overloaded",
		"529":               "The provider is overloaded",
	}
}
