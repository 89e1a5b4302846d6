package models

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"journeyman/runner/model"
	"journeyman/store/workers"
)

var errNoModels = errors.New("must be null: this server has its own model only")

// modelsOf returns the models that an organization has configured. It reads the store only after a
// change.
func (d *Directory) modelsOf(ctx context.Context, organizationID string) (workers.OrganizationModels, error) {
	changes := d.cfg.Store.Workers.ModelChanges()
	k := &d.connected
	k.mu.Lock()
	known, ok := k.organizations[organizationID]
	k.mu.Unlock()
	if ok && known.changes == changes {
		return known.OrganizationModels, nil
	}
	m, err := d.cfg.Store.Workers.OrganizationModels(ctx, organizationID)
	if err != nil {
		return m, fmt.Errorf("read the models of the organization: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.organizations == nil || len(k.organizations) >= maxOrganizations {
		k.organizations = map[string]organizationModels{}
	}
	// Drop the models of replaced keys with their connections. Calls in progress keep their model.
	for _, was := range known.Providers {
		for id := range k.open {
			if strings.HasPrefix(id, connectedID(was, "")) && !holds(m, was) {
				delete(k.open, id)
			}
		}
	}
	k.organizations[organizationID] = organizationModels{m, changes}
	return m, nil
}

// provider converts a stored provider to the type of the model package.
func (d *Directory) provider(p workers.OpenProvider, first bool) model.Provider {
	// The Owner of the first organization operates the machine. Owners of other organizations must
	// not reach the machine's private network.
	guard := d.cfg.Dialer
	guard.AllowPrivate = guard.AllowPrivate || first
	return model.Provider{Name: p.Name, Kind: string(p.Kind), BaseURL: p.BaseURL, Key: p.Key,
		ContextWindow: p.ContextWindow, Dial: guard.DialContext, Proxy: guard.AllowPrivate}
}

// openModel returns the model of a name: from the organization's own provider, else from the
// server's environment.
func (d *Directory) openModel(models workers.OrganizationModels, name string) (Priced, error) {
	if p, rest, ok := providerOf(models, name); ok {
		return d.openConnected(p, models.First, rest)
	}
	if d.cfg.Models == nil {
		return Priced{}, errNoModels
	}
	m, err := d.cfg.Models.Open(name)
	if err != nil {
		return Priced{}, err
	}
	return priced(m, d.cfg.Prices), nil
}

// openConnected returns a model of a connected provider. It returns the same model each time, with
// its connections and the known limits of its server.
func (d *Directory) openConnected(p workers.OpenProvider, first bool, name string) (Priced, error) {
	if p.Sealed != nil {
		return Priced{}, fmt.Errorf("the key of %s cannot be read: %s", p.Name, p.Sealed.Message)
	}
	id := connectedID(p, name)
	k := &d.connected
	k.mu.Lock()
	defer k.mu.Unlock()
	// Opening a model makes no request, so the lock may be held.
	if m, ok := k.open[id]; ok {
		return m, nil
	}
	open := model.Provider.Open
	if d.cfg.Models != nil {
		open = d.cfg.Models.Connected // may record or replay
	}
	opened, err := open(d.provider(p, first), name)
	if err != nil {
		return Priced{}, err
	}
	m := priced(opened, d.cfg.Prices)
	m.ID, m.Kind = id, string(p.Kind)
	if p.ContextWindow > 0 {
		m.Price.ContextWindow, m.windowSet = p.ContextWindow, true
	}
	if k.open == nil || len(k.open) >= maxConnected {
		k.open = map[string]Priced{} // models in use are soon opened again
	}
	k.open[id] = m
	return m, nil
}
