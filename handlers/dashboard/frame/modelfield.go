package frame

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"journeyman/runner/models"
)

// A ModelField is the choice of a worker's model: a select with the models of the providers, and a
// text field for other names.
type ModelField struct {
	Form *Form
	models.Choices
}

// ModelField returns the field for a form. If the models cannot be read, it has only the text
// field.
func (fr *Frame) ModelField(r *Request, f *Form) ModelField {
	choices, err := fr.Runner.Models.Choices(r.Context(), r.Who.OrganizationID)
	if err != nil && r.Context().Err() == nil {
		fr.Log.Error("models of the organization", "err", err)
	}
	return ModelField{f, choices}
}

// Usual returns the names of the default models.
func (m ModelField) Usual() string { return strings.Join(m.Default, ", ") }

// Value returns the name that the form has.
func (m ModelField) Value() string { return m.Form.Get("model") }

// Other reports whether the form has a name that is in no group. The select shows such a name, too,
// so that saving the form keeps it.
func (m ModelField) Other() bool {
	return m.Value() != "" && !slices.ContainsFunc(m.Groups, func(g models.Group) bool {
		for _, one := range g.Models {
			if one.Name == m.Value() {
				return true
			}
		}
		return false
	})
}

// ChosenModel returns the name of the model in a form. A typed name takes precedence over the
// choice.
func (f *Form) ChosenModel() string {
	return cmp.Or(strings.TrimSpace(f.Text("otherModel")), strings.TrimSpace(f.Text("model")))
}

// A ModelState is the default model, as every page shows it.
type ModelState struct {
	Name    string // of the first one; "" if it is not known
	Offline bool   // the offline model is the only one
}

// ModelState returns the state for the caller's organization.
func (fr *Frame) ModelState(ctx context.Context, organizationID string) ModelState {
	names, err := fr.Runner.Models.Defaults(ctx, organizationID)
	if err != nil || len(names) == 0 {
		return ModelState{} // the page works without the state
	}
	return ModelState{names[0], !slices.ContainsFunc(names, func(name string) bool { return name != "offline" })}
}

// Unconnected reports whether the page shows that no model is connected. Pages with instructions
// show it.
func (v pageData) Unconnected() bool {
	at := v.Path == "/" || v.Path == "/tasks" || v.Path == "/workers" || strings.HasPrefix(v.Path, "/workers/")
	return v.Model.Offline && at
}
