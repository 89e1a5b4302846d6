package admin

import (
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/text"
)

// A cardField is an input of a provider's card. The page has several cards with the same fields, so
// each field has its own id.
type cardField struct {
	ID, Name, Type  string
	Label           text.Key
	Hint            text.Key
	Placeholder     text.Key
	Value, Error    string
	Required, Mono  bool
	Link, LinkTitle string // of a page that helps
}

// newCardField returns a field with the value and the error of a form. A key is never shown.
func newCardField(f *frame.Form, id, name, kind string, label text.Key) cardField {
	c := cardField{ID: id + "-" + name, Name: name, Type: kind, Label: label, Mono: true, Error: f.Errors[name]}
	if kind != "password" {
		c.Value = f.Get(name)
	}
	return c
}

// Described returns the ids of the texts that describe the input.
func (c cardField) Described() string {
	var ids []string
	if c.Error != "" {
		ids = append(ids, "e-"+c.ID)
	}
	if c.Hint != "" || c.Link != "" {
		ids = append(ids, "h-"+c.ID)
	}
	return strings.Join(ids, " ")
}

func (k kindInfo) keyField(f *frame.Form, id string) cardField {
	c := newCardField(f, id, "key", "password", "API key")
	c.Placeholder, c.Required = k.KeyHint, k.NeedsKey
	c.Link, c.LinkTitle = k.Keys, k.Title
	return c
}

func (k kindInfo) urlField(f *frame.Form, id string) cardField {
	c := newCardField(f, id, "baseUrl", "url", "Address")
	c.Placeholder, c.Required = text.Key(k.UsualHost), k.UsualHost == ""
	if c.Required {
		c.Placeholder = "https://models.example.com/v1"
	}
	return c
}

func windowField(f *frame.Form, id string) cardField {
	c := newCardField(f, id, "contextWindow", "text", "Context length, in tokens")
	c.Hint = "Leave it empty to use the provider's value. A shorter context costs less."
	return c
}

// Fields returns the fields that change the provider.
func (c providerCard) Fields() []cardField {
	id := "p-" + c.Name
	key, address := c.keyField(c.Form, id), c.urlField(c.Form, id)
	if key.Required = false; c.HasKey {
		key.Placeholder = "Leave it empty to keep the current one"
	}
	return []cardField{key, address, windowField(c.Form, id)}
}

// First returns the fields that everybody needs.
func (c connectCard) First() (list []cardField) {
	id := "k-" + string(c.Kind)
	if c.WithURL {
		list = append(list, c.urlField(c.Form, id))
	}
	if c.NeedsKey || c.UsualHost == "" {
		list = append(list, c.keyField(c.Form, id))
	}
	return list
}

// More returns the fields that few people need.
func (c connectCard) More() (list []cardField) {
	id := "k-" + string(c.Kind)
	name := newCardField(c.Form, id, "name", "text", "Name")
	name.Value = c.Name
	name.Hint = "Models of this provider are named NAME:MODEL. The name cannot be changed later."
	list = append(list, name)
	if !c.WithURL {
		list = append(list, c.urlField(c.Form, id))
	}
	if !c.NeedsKey && c.UsualHost != "" {
		list = append(list, c.keyField(c.Form, id))
	}
	return append(list, windowField(c.Form, id))
}

// Unfold reports whether one of the fields that few people need is invalid.
func (c connectCard) Unfold() bool {
	for _, f := range c.More() {
		if f.Error != "" {
			return true
		}
	}
	return false
}
