package dashboard

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"journeyman/runner"
)

// A modelField is the choice of a worker's model: a select with the models of the providers, and a
// text field for other names.
type modelField struct {
	Form *form
	runner.ModelChoices
}

// modelField returns the field for a form. If the models cannot be read, it has only the text
// field.
func (fr *frame) modelField(r *request, f *form) modelField {
	choices, err := fr.cfg.Runner.ModelChoices(r.Context(), r.who.OrganizationID)
	if err != nil && r.Context().Err() == nil {
		fr.cfg.Log.Error("models of the organization", "err", err)
	}
	return modelField{f, choices}
}

// Usual returns the names of the default models.
func (m modelField) Usual() string { return strings.Join(m.Default, ", ") }

// Value returns the name that the form has.
func (m modelField) Value() string { return m.Form.Get("model") }

// Other reports whether the form has a name that is in no group. The select shows such a name, too,
// so that saving the form keeps it.
func (m modelField) Other() bool {
	return m.Value() != "" && !slices.ContainsFunc(m.Groups, func(g runner.ModelGroup) bool {
		for _, one := range g.Models {
			if one.Name == m.Value() {
				return true
			}
		}
		return false
	})
}

// chosenModel returns the name of the model in a form. A typed name takes precedence over the
// choice.
func (f *form) chosenModel() string {
	return cmp.Or(strings.TrimSpace(f.text("otherModel")), strings.TrimSpace(f.text("model")))
}

// A modelState is the default model, as every page shows it.
type modelState struct {
	Name    string // of the first one; "" if it is not known
	Offline bool   // the offline model is the only one
}

// modelState returns the state for the caller's organization.
func (fr *frame) modelState(ctx context.Context, organizationID string) modelState {
	names, err := fr.cfg.Runner.DefaultModels(ctx, organizationID)
	if err != nil || len(names) == 0 {
		return modelState{} // the page works without the state
	}
	return modelState{names[0], !slices.ContainsFunc(names, func(name string) bool { return name != "offline" })}
}

// Unconnected reports whether the page shows that no model is connected. Pages with instructions
// show it.
func (v pageData) Unconnected() bool {
	at := v.Path == "/" || v.Path == "/tasks" || v.Path == "/workers" || strings.HasPrefix(v.Path, "/workers/")
	return v.Model.Offline && at
}
