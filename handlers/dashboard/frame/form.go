package frame

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"journeyman/handlers"
	"journeyman/handlers/dashboard/show"
	"journeyman/store/db"
	"journeyman/store/people"
)

// MaxForm is the largest form without files, in bytes.
const MaxForm = 1 << 20

// A Form holds the values of a form's fields and their faults.
type Form struct {
	Values url.Values
	Errors map[string]string // by field
	Error  string            // an error that belongs to no field
}

// FormOf returns a form that holds values, such as the filters of a list.
func FormOf(values url.Values) *Form {
	return &Form{Values: values, Errors: map[string]string{}}
}

// NewForm returns a form that was not sent yet. It shows the given values.
func NewForm(values map[string]string) *Form {
	f := FormOf(url.Values{})
	for name, v := range values {
		f.Values.Set(name, v)
	}
	return f
}

// ReadForm reads a form that was sent without files.
func ReadForm(w http.ResponseWriter, r *Request) (*Form, error) {
	r.Body = http.MaxBytesReader(handlers.Unwrapped(w), r.Body, MaxForm)
	if err := r.ParseForm(); err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return nil, db.Errorf(db.TooLarge, "the form is larger than %d bytes", MaxForm)
		}
		return nil, db.Errorf(db.Invalid, "the form cannot be read")
	}
	return FormOf(r.PostForm), nil
}

// An Action executes the change that a form describes. It returns the address of the page to show
// next, or an empty one if the action has written a page itself.
type Action func(w http.ResponseWriter, r *Request, f *Form) (next string, err error)

// A FormPage writes a page with a form. f is nil before the form is sent; afterwards it
// holds the values that were sent and their errors.
type FormPage func(w http.ResponseWriter, r *Request, status int, f *Form) error

// Blank returns the handle that shows page before its form is sent.
func Blank(page FormPage) Handle {
	return func(w http.ResponseWriter, r *Request) error { return page(w, r, http.StatusOK, nil) }
}

// Submitted returns the handle of a sent form. If act refuses the values, page shows them again
// with their faults. If page is nil, the error page shows every error.
func Submitted(act Action, page FormPage) Handle {
	return func(w http.ResponseWriter, r *Request) error {
		f, err := ReadForm(w, r)
		if err != nil {
			return err
		}
		next, err := act(w, r, f)
		switch {
		case err == nil && next != "":
			return Redirect(w, r, next)
		case err == nil:
			return nil
		case page == nil || !f.Refused(r, err):
			return err
		}
		return page(w, r, RefusalStatus(w.Header(), err), f)
	}
}

// Button returns the handle of a form without fields: act returns the next page.
func Button(act func(r *Request) (next string, err error)) Handle {
	return func(w http.ResponseWriter, r *Request) error {
		next, err := act(r)
		if err != nil {
			return err
		}
		return Redirect(w, r, next)
	}
}

// Changing returns the handle of a button that changes the record whose id is the parameter of the address.
func Changing(parameter string, change func(context.Context, people.Caller, string) error, next string) Handle {
	return Button(func(r *Request) (string, error) {
		return next, change(r.Context(), r.Who.Caller, r.Params.ByName(parameter))
	})
}

// RefusalStatus returns the status of a page that shows a refused form again. For a TryLater error,
// it also sets the headers with the time to try again.
func RefusalStatus(h http.Header, err error) int {
	if _, later := errors.AsType[*TryLater](err); !later {
		return http.StatusUnprocessableEntity
	}
	handlers.SetRetryAfter(h, err)
	return handlers.StatusOf(err)
}

// Get returns the value of a field.
func (f *Form) Get(name string) string { return f.Values.Get(name) }

// Has reports whether one of the values of a field is value.
func (f *Form) Has(name, value string) bool { return slices.Contains(f.Values[name], value) }

// Text returns the value of a field with the line ends of Unix: browsers send \r\n.
func (f *Form) Text(name string) string { return strings.ReplaceAll(f.Get(name), "\r\n", "\n") }

// Refused adds the faults in err to the form. It returns false if the user cannot correct the
// error.
func (f *Form) Refused(r *Request, err error) bool {
	e, ok := errors.AsType[*db.Error](err)
	if !ok {
		return false
	}
	for _, detail := range e.Details {
		if f.Errors[detail.Path] == "" {
			f.Errors[detail.Path] = Explained(r.Lang, InvalidField, detail.Message)
		}
	}
	if len(e.Details) == 0 {
		f.Error = show.Sentence(r.Explained(e))
	}
	return true
}

// ListStatus returns the status of a list whose query returned err. If the filters are invalid, the
// page shows their faults and an empty list.
func (f *Form) ListStatus(r *Request, err error) (int, error) {
	switch {
	case err == nil:
		return http.StatusOK, nil
	case f.Refused(r, err):
		return http.StatusUnprocessableEntity, nil
	}
	return 0, err
}

// A field is one input of a form. The template "field" draws it.
type field struct {
	Form        *Form
	Name, Label string
	Type        string // of the input element, or "textarea" or "select"
	Hint        string
	Options     []Option // of a select
	Required    bool
	Extra       map[string]string // further attributes; user input must not name them
}

// An Option is a choice of a select, or a name and its value in a list.
type Option struct{ Value, Label string }

// newField is for templates: {{template "field" (field .Form "name" "Label" "text" "A hint")}}.
func newField(f *Form, name, label, kind string, hint ...string) field {
	return field{Form: f, Name: name, Label: label, Type: kind, Hint: strings.Join(hint, " ")}
}

// Value returns the value that the field shows. A page never shows a password again.
func (f field) Value() string {
	if f.Type == "password" {
		return ""
	}
	return f.Form.Get(f.Name)
}

// Error returns the fault of the value, as a sentence.
func (f field) Error() string { return show.Sentence(f.Form.Errors[f.Name]) }

// WithOptions returns the field with these choices.
func (f field) WithOptions(options []Option) field {
	f.Options = options
	return f
}

// Require returns the field as one that must not be empty.
func (f field) Require() field {
	f.Required = true
	return f
}

// WithList returns the field with the id of a list of suggestions.
func (f field) WithList(id string) field { return f.Attribute("list", id) }

// Autocomplete returns the field with a token of the autocomplete attribute, which tells password
// managers the purpose of the field.
func (f field) Autocomplete(token string) field { return f.Attribute("autocomplete", token) }

// Attribute returns the field with a further attribute.
func (f field) Attribute(name, value string) field {
	extra := map[string]string{name: value}
	maps.Copy(extra, f.Extra)
	f.Extra = extra
	return f
}

// FormKey returns the idempotency key of a form. token identifies the form, and content is what the
// user sent. The same form with the same content has the same key. A form without a token has no
// key.
func FormKey(c people.Caller, token, content string) db.IdempotencyKey {
	if token == "" {
		return db.IdempotencyKey{}
	}
	sum := sha256.Sum256([]byte(token + "\x00" + content))
	return db.IdempotencyKey{KeyID: c.UserID, Key: fmt.Sprintf("form %x", sum), Hash: sum[:]}
}

// Token returns a new name for a form. A second click on its button sends the same name, so that
// the store repeats nothing.
func (fr *Frame) Token() string { return db.NewID("frm", fr.Now()) }

// An amountField is a field for a number, with a second field for its unit of time.
type amountField struct {
	field
	Unit string // name of the unit's field
}

// newAmount is for templates: it returns an amountField.
func newAmount(f *Form, name, unit, label string, units []Option) amountField {
	return amountField{newField(f, name, label, "number").WithOptions(units), unit}
}

// UnitValue returns the chosen unit.
func (a amountField) UnitValue() string { return a.Form.Get(a.Unit) }
