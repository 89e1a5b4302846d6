package handlers_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/store"
)

// api is what the pages call directly.
func (s *site) api() *handlers.API { return s.web.Config.Handler.(*handlers.API) }

func TestFormWorker(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := newServer(t)
	c := s.owner.Caller
	form := handlers.WorkerForm{Title: "Clerk", Instructions: "Be brief.", OutputSchema: ` {"type": "object"} `, Model: "offline", MCPTools: []string{"crm"}}
	w, err := s.api().CreateFormWorker(t.Context(), c, form, store.Once{})
	is.NoErr(err)
	is.Equal(w.Visibility, store.Public)
	is.Equal(string(w.OutputSchema), `{"type": "object"}`)

	form.Visibility, form.OutputSchema = store.Public, "{\n\"type\":\"object\"}" // the same
	now, err := s.api().UpdateFormWorker(t.Context(), c, w.ID, form)
	is.NoErr(err)
	is.Equal(now.Version, int64(1))
	for _, change := range []func(*handlers.WorkerForm){
		func(f *handlers.WorkerForm) { f.Instructions = "" },
		func(f *handlers.WorkerForm) { f.OutputSchema = "" },
		func(f *handlers.WorkerForm) { f.Model = "" },
		func(f *handlers.WorkerForm) { f.MCPTools = nil },
		func(f *handlers.WorkerForm) { f.ApprovalTools = []string{"shell"} },
	} {
		change(&form)
		before := now.Version
		now, err = s.api().UpdateFormWorker(t.Context(), c, w.ID, form)
		is.NoErr(err)
		is.Equal(now.Version, before+1)
	}
	form.Title, form.Summary, form.Visibility = "Chief clerk", "x", store.Private
	last, err := s.api().UpdateFormWorker(t.Context(), c, w.ID, form)
	is.NoErr(err)
	is.Equal(last.Version, now.Version) // turns are told nothing of these
	is.Equal(last.Title+last.Summary+string(last.Visibility), "Chief clerkxprivate")

	_, err = s.api().UpdateFormWorker(t.Context(), c, w.ID, handlers.WorkerForm{OutputSchema: "{", Summary: strings.Repeat("x", 81)})
	var e *store.Error
	is.True(errors.As(err, &e))
	var paths []string
	for _, d := range e.Details {
		paths = append(paths, d.Path)
	}
	is.Equal(strings.Join(paths, " "), "summary title outputSchema") // all of them at once
	_, member := s.member(t, "mo@acme.test")
	_, err = s.api().UpdateFormWorker(t.Context(), member.Caller, w.ID, form)
	is.True(store.IsKind(err, store.Forbidden))
}

func TestFormWorkerOnce(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := newServer(t)
	c := s.owner.Caller
	ids := make([]string, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			w, err := s.api().CreateFormWorker(t.Context(), c, handlers.WorkerForm{Prompt: "sums up minutes"}, handlers.FormOnce(c, "token", "content"))
			if err != nil {
				t.Error(err)
			}
			ids[i] = w.ID
		})
	}
	wg.Wait()
	for _, id := range ids {
		is.Equal(id, ids[0])
	}
	w, err := s.store.Worker(t.Context(), c, ids[0])
	is.NoErr(err)
	is.True(w.Instructions != "" && w.Title != "")
	others, _, err := s.store.Workers(t.Context(), c, store.WorkerQuery{Limit: 10})
	is.NoErr(err)
	is.Equal(len(others), 1)
	_, member := s.member(t, "mo@acme.test")
	theirs, err := s.api().CreateFormWorker(t.Context(), member.Caller, handlers.WorkerForm{Title: "x"}, handlers.FormOnce(member.Caller, "token", "content"))
	is.NoErr(err)
	is.True(theirs.ID != ids[0]) // a token is its user's alone
	is.Equal(handlers.FormOnce(c, "", "content"), store.Once{})
}

func FuzzParseSchema(f *testing.F) {
	for _, text := range []string{"", "{", "{\n\"ü\": x}", `{"type":"object"}`, "[]", "{\"a\": \"\x00\"}", "\n\n\n]", "\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := handlers.ParseSchema(text)
		if err != nil {
			if len(err.Error()) > 2000 || utf8.ValidString(text) && !utf8.ValidString(err.Error()) {
				t.Errorf("%q: %q", text, err)
			}
			return
		}
		if raw == nil && strings.TrimSpace(text) != "" {
			t.Errorf("%q is no schema", text)
		}
	})
}
