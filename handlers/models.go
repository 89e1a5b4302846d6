package handlers

import (
	"net/http"

	"journeyman/runner/models"
	"journeyman/runner/view"
	"journeyman/store/workers"
)

// A modelItem is a model that a worker may choose, as the API shows it.
type modelItem struct {
	Name          string   `json:"name"`
	Provider      *string  `json:"provider"` // null for a model of the server's environment
	ContextWindow *int64   `json:"contextWindow"`
	Abilities     []string `json:"abilities"` // null if unknown
}

// listModels writes the models that workers of the caller's organization may choose, and the
// default models.
func (a *API) listModels(w http.ResponseWriter, r *request) error {
	choices, err := a.runner.Models.Choices(r.Context(), r.who.OrganizationID)
	items := []modelItem{}
	for _, g := range choices.Groups {
		for _, m := range g.Models {
			items = append(items, newModelItem(g, m))
		}
	}
	return respondOK(w, map[string]any{"default": choices.Default, "items": items}, err)
}

func newModelItem(g models.Group, m workers.ListedModel) modelItem {
	item := modelItem{Name: m.Name, Provider: view.Optional(g.Name), Abilities: m.Abilities}
	if m.ContextWindow > 0 {
		item.ContextWindow = &m.ContextWindow
	}
	return item
}
