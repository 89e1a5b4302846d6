package models

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"journeyman/store/workers"
)

// The limits of the cache of connected providers.
const (
	maxOrganizations = 256 // organizations whose models are cached
	maxConnected     = 256 // open models; each has its own connections
)

// connectedModels holds the models that organizations have configured. The zero value is ready to
// use.
type connectedModels struct {
	mu            sync.Mutex // guards the fields below; never held while the store is read
	organizations map[string]organizationModels
	open          map[string]Priced // by id
}

// organizationModels is the cached record of an organization's models.
type organizationModels struct {
	workers.OrganizationModels
	changes int64 // the store's change count just before the read
}

// holds reports whether the organization still has this revision of a provider.
func holds(m workers.OrganizationModels, p workers.OpenProvider) bool {
	return slices.ContainsFunc(m.Providers, func(now workers.OpenProvider) bool {
		return now.ID == p.ID && now.Revision == p.Revision
	})
}

// connectedID returns the id of a model of a connected provider. The id changes with the key and
// the address of the provider. Otherwise cached facts could be used for another server.
func connectedID(p workers.OpenProvider, name string) string {
	return fmt.Sprintf("%s/%d:%s", p.ID, p.Revision, name)
}

// providerOf splits a model's name into its provider and the name at that provider.
func providerOf(models workers.OrganizationModels, name string) (p workers.OpenProvider, rest string, ok bool) {
	prefix, rest, named := strings.Cut(name, ":")
	for _, p := range models.Providers {
		if named && p.Name == prefix {
			return p, rest, true
		}
	}
	return p, "", false
}
