package models

import (
	"context"
	"slices"
	"strings"

	"journeyman/runner/model"
	"journeyman/store/workers"
)

// maxChoices limits the models of one provider in a list of choices. Users can still name others.
const maxChoices = 100

// Choices are the models that workers of an organization may choose.
type Choices struct {
	Default   []string // names of the default models, in order
	Own       bool     // the defaults were chosen by the organization, not by the server
	Offline   bool     // all defaults are the stand-in for tests, which can only quote
	Groups    []Group
	Providers int // connected by the organization

	Unpriced []string // names of the default models without a price, to which caps do not apply
}

// A Group holds the models of one provider.
type Group struct {
	Name   string // of the provider; "" for models of the server's environment
	Models []workers.ListedModel
	More   bool // the provider has more models
}

// Facts returns the known properties of the model of that name.
func (v Choices) Facts(name string) workers.ListedModel {
	for _, g := range v.Groups {
		for _, m := range g.Models {
			if m.Name == name {
				return m
			}
		}
	}
	return workers.ListedModel{Name: name}
}

// Choices returns the models that workers of the organization may choose. Their names are in
// the form that workers store.
func (d *Directory) Choices(ctx context.Context, organizationID string) (v Choices, err error) {
	models, err := d.modelsOf(ctx, organizationID)
	if err != nil {
		return v, err
	}
	v.Own, v.Providers = models.Chain != "" && !d.replays(), len(models.Providers)
	v.Default = d.defaultModels(models)
	v.Unpriced = d.unpricedOf(models, v.Default)
	v.Offline = !slices.ContainsFunc(v.Default, func(name string) bool { return name != "offline" })
	for _, p := range models.Providers {
		g := Group{Name: p.Name, More: len(p.Models) > maxChoices}
		for _, m := range p.Models[:min(len(p.Models), maxChoices)] {
			m.Name = p.Name + ":" + m.Name
			if p.ContextWindow > 0 {
				m.ContextWindow = p.ContextWindow
			}
			g.Models = append(g.Models, m)
		}
		v.Groups = append(v.Groups, g)
	}
	if server := d.serverModels(models); len(server) > 0 {
		v.Groups = append(v.Groups, Group{Models: server})
	}
	return v, nil
}

// Defaults returns the names of the models for workers of the organization that choose no
// model.
func (d *Directory) Defaults(ctx context.Context, organizationID string) ([]string, error) {
	models, err := d.modelsOf(ctx, organizationID)
	if err != nil {
		return nil, err
	}
	return d.defaultModels(models), nil
}

func (d *Directory) defaultModels(models workers.OrganizationModels) (names []string) {
	if models.Chain != "" && !d.replays() {
		return model.Chain(models.Chain)
	}
	for _, m := range d.own {
		names = append(names, m.Name())
	}
	return names
}

// unpricedOf returns the names of the models without a price.
func (d *Directory) unpricedOf(models workers.OrganizationModels, names []string) (list []string) {
	for i, name := range names {
		m, err := d.openModel(models, name)
		if err != nil && i < len(d.own) && d.own[i].Name() == name {
			m, err = d.own[i], nil // the catalogue does not have the server's own models
		}
		if err == nil && m.Price.Basis == model.BasisNone {
			list = append(list, name)
		}
	}
	return list
}

// serverModels returns the models of the price table that the server's environment can open. It
// omits models whose names begin with the name of a connected provider.
func (d *Directory) serverModels(models workers.OrganizationModels) (list []workers.ListedModel) {
	if d.cfg.Models == nil {
		return nil
	}
	for _, name := range d.cfg.Prices.Names() {
		_, _, own := providerOf(models, name)
		if own || strings.HasSuffix(name, ":") || d.cfg.Models.Check(name) != nil {
			continue
		}
		list = append(list, workers.ListedModel{Name: name,
			ContextWindow: d.cfg.Prices.Lookup(name).ContextWindow})
	}
	return list
}
