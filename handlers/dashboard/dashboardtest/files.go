package dashboardtest

import (
	"regexp"
	"strings"

	"journeyman/store"
	"journeyman/store/workers"
)

var previews = regexp.MustCompile(`<th scope="row"><a href="([^"]*/preview/[^"]*)">([^<]*)</a>`)

// Previews returns the addresses of the files on a page, by path.
func (p Page) Previews() map[string]string {
	list := map[string]string{}
	for _, m := range previews.FindAllStringSubmatch(p.Body, -1) {
		list[m[2]] = strings.ReplaceAll(m[1], "&#43;", "+")
	}
	return list
}

// Publish publishes a text file of a worker.
func (s *Site) Publish(w workers.Worker, path, content string) {
	s.T.Helper()
	turn := s.CarryOut(s.Owner, store.NewTurn{WorkerID: w.ID, Input: Scripted(Calling("write_file", "path", path,
		"content", content), Calling("publish_file", "path", path))})
	if turn.Status != store.Completed {
		s.T.Fatalf("publish %s: %+v", path, turn.Failure)
	}
}

// PublishBytes publishes a binary file of a worker.
func (b *Browser) PublishBytes(w workers.Worker, name string, content []byte) {
	b.T.Helper()
	p := b.Send(b.Form("/workers/"+w.ID+"/run", []string{"input", Scripted(Calling("publish_file", "path", name))}, name,
		string(content)))
	if turn := b.Ended(strings.TrimPrefix(p.Location(), "/tasks/")); turn.Status != store.Completed {
		b.T.Fatalf("publish %s: %+v", name, turn.Failure)
	}
}
