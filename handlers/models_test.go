package handlers_test

import (
	"strings"
	"testing"

	"journeyman/store/workers"
)

// TestListModels checks that the models of a connected provider are listed for its organization
// only.
func TestListModels(t *testing.T) {
	is, s := onServer(t)
	p, err := s.store.Workers.AddProvider(t.Context(), s.owner.Caller, workers.NewProvider{Name: "box",
		Kind:    workers.KindOllama,
		BaseURL: "http://box.test:11434", Key: "hush-hush-hush"})
	is.NoErr(err)
	list := []workers.ListedModel{{Name: "m", ContextWindow: 8192, Abilities: []string{"tools"}}}
	is.NoErr(s.store.Workers.RecordProviderTest(t.Context(), s.owner.Caller, p, workers.ProviderTest{}, list, "box:m"))
	mo, _ := s.member(t, "mo@example.com")
	for _, c := range []*site{s, mo} {
		got := string(c.must(t, "GET", "/api/models", "").body)
		is.True(strings.Contains(got, `"default":["box:m"]`))
		is.True(strings.Contains(got, `{"name":"box:m","provider":"box","contextWindow":8192,"abilities":["tools"]}`))
		is.True(!strings.Contains(got, "hush") && !strings.Contains(got, "11434")) // no key and no address
	}
	is.True(!strings.Contains(string(s.stranger(t).must(t, "GET", "/api/models", "").body), "box"))
}
