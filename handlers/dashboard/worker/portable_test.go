package worker_test

import (
	"strings"
	"testing"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store/workers"
)

// TestImportPage exports a worker on its page, and imports it as a file and as text.
func TestImportPage(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	wrk := s.Worker(s.Owner, workers.NewWorker{Title: "Clerk", Instructions: "Be brief.\nBe kind."})
	file := b.Get("/workers/" + wrk.ID + "/export")
	is.Equal(file.Status, 200)
	is.True(strings.Contains(file.Header.Get("Content-Disposition"), "attachment"))
	made := s.MadeWorker(b.Send(b.Form("/import", []string{"token", "one"}, "worker.yaml", file.Body)))
	is.True(made.ID != wrk.ID)
	is.Equal(made.Instructions, wrk.Instructions)
	made = s.MadeWorker(b.Send(b.Form("/import", []string{"token", "two", "file", strings.ReplaceAll(file.Body, "\n",
		"\r\n")})))
	is.Equal(made.Instructions, wrk.Instructions)
	p := b.Send(b.Form("/import", []string{"token", "three", "file", "journeyman: 1\ntitel: " + dashboardtest.Hostile}))
	p.Answers(422).Shows("titel: is not a field") // the field and the rule
	is.True(p.Harmless())
	is.Equal(b.Send(b.Form("/import", []string{"file", "a: &a [*a]"})).Status, 422)
}
