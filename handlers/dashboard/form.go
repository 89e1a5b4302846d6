package dashboard

import (
	"errors"
	"net/http"
	"net/url"

	"journeyman/store"
)

// maxForm is how many bytes a form without files may have.
const maxForm = 1 << 20

// A form is what a page asks for: what has been typed, and what is wrong with it.
type form struct {
	Values url.Values
	Errors map[string]string // by field
	Error  string            // of the whole
}

// readForm reads a form that was sent without files.
func readForm(w http.ResponseWriter, r *request) (*form, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return nil, store.Errorf(store.TooLarge, "the form is larger than %d bytes", maxForm)
		}
		return nil, store.Errorf(store.Invalid, "the form cannot be read")
	}
	return &form{Values: r.PostForm, Errors: map[string]string{}}, nil
}

// newForm is a form that shows values to begin with.
func newForm(values map[string]string) *form {
	f := &form{Values: url.Values{}, Errors: map[string]string{}}
	for name, v := range values {
		f.Values.Set(name, v)
	}
	return f
}

// Get is what stands in a field.
func (f *form) Get(name string) string { return f.Values.Get(name) }

// refused notes what err says about the fields, so that the form can be shown
// again; it is false for an error that is nothing to be corrected.
func (f *form) refused(err error) bool {
	var e *store.Error
	if !errors.As(err, &e) {
		return false
	}
	for _, detail := range e.Details {
		if f.Errors[detail.Path] == "" {
			f.Errors[detail.Path] = detail.Message
		}
	}
	if len(e.Details) == 0 {
		f.Error = sentence(e.Message)
	}
	return true
}

// A field is one input of a form as the shared templates draw it.
type field struct {
	Form        *form
	Name, Label string
	Type        string // of the input element; "textarea" and "select" are drawn as such
	Hint        string
	Options     []option // of a select
	Required    bool
	Extra       map[string]string // further attributes; names are our own
}

// An option is a choice of a select.
type option struct{ Value, Label string }

// newField makes a field in a template: {{template "field" (field .Form "name" "Label" "text" "A hint")}}.
func newField(f *form, name, label, kind string, hint ...string) field {
	v := field{Form: f, Name: name, Label: label, Type: kind}
	if len(hint) > 0 {
		v.Hint = hint[0]
	}
	return v
}

// Value is what stands in the field; passwords are never shown again.
func (f field) Value() string {
	if f.Type == "password" || f.Form == nil {
		return ""
	}
	return f.Form.Get(f.Name)
}

// Error is what is wrong with it.
func (f field) Error() string {
	if f.Form == nil {
		return ""
	}
	return f.Form.Errors[f.Name]
}

// With gives the field with choices.
func (f field) With(options []option) field {
	f.Options = options
	return f
}

// Need gives the field as one that must be filled in.
func (f field) Need() field {
	f.Required = true
	return f
}

// Fill gives the field with what a browser may fill it with by itself: a token of
// the autocomplete attribute.
func (f field) Fill(what string) field {
	extra := map[string]string{"autocomplete": what}
	for name, value := range f.Extra {
		extra[name] = value
	}
	f.Extra = extra
	return f
}
