package lists

import (
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/show"
	"journeyman/handlers/dashboard/text"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/people"
	"journeyman/store/visible"
	"journeyman/store/workers"
)

// maxPerKind is the greatest number of results of one kind that a search shows.
const maxPerKind = 6

// A searchPage is the data of the results of a search.
type searchPage struct {
	Form   *frame.Form
	Groups []resultGroup
	Text   string
}

// A resultGroup holds the results of one kind.
type resultGroup struct {
	Title string
	Items []searchResult
	More  string // address of all results of this kind; "" for none
}

// A searchResult is one result.
type searchResult struct {
	Address              string
	Before, Match, After string // the title, and its part that matches the search
	Sign                 template.HTML
	State                string // for the template "status"; "" for none
	Hint                 string
	Keys                 []string // of the shortcut
	Run                  string   // address that Ctrl+Enter opens; "" for none
}

// search writes the results. The search palette requests only the results.
func (d *Pages) search(w http.ResponseWriter, r *frame.Request) error {
	typed := r.URL.Query()
	p := searchPage{Form: frame.FormOf(typed), Text: strings.TrimSpace(typed.Get("q"))}
	status, err := p.Form.ListStatus(r, d.addFound(r, &p))
	if err != nil {
		return err
	}
	if !typed.Has("part") {
		return d.Render(w, r, status, "search.html", r.T("Search"), p)
	}
	set, err := d.TemplatesFor(r)
	if err != nil {
		return err
	}
	return frame.Send(w, r, status, set, "found", p, visible.Running)
}

// addFound puts the results into p: workers, tasks, files, pages and commands.
func (d *Pages) addFound(r *frame.Request, p *searchPage) error {
	for _, kind := range []struct {
		title text.Key
		find  func(*frame.Request, string) ([]searchResult, error)
		more  string
	}{
		{"Workers", d.findWorkers, "/workers"},
		{"Tasks", d.findTasks, "/tasks"},
		{"Files", d.findFiles, ""},
		{"Pages", d.findPlaces(pagesToFind()), ""},
		{"Commands", d.findPlaces(commandsToFind()), ""},
	} {
		// An empty text matches everything, but without a search only commands are offered.
		if p.Text == "" && kind.title != "Commands" {
			continue
		}
		items, err := kind.find(r, p.Text)
		if err != nil {
			return err
		}
		g := resultGroup{Title: r.T(kind.title), Items: items}
		if kind.more != "" {
			g.More = kind.more + "?" + url.Values{"q": {p.Text}}.Encode()
		}
		if len(items) > 0 {
			p.Groups = append(p.Groups, g)
		}
	}
	return nil
}

// marked returns a result with the matching part of its title.
func marked(title, part string) searchResult {
	lower := strings.ToLower(title)
	at := strings.Index(lower, strings.ToLower(part))
	// Some letters have another length in lower case: then nothing is marked.
	if part == "" || at < 0 || len(lower) != len(title) || at+len(part) > len(title) {
		return searchResult{Before: title}
	}
	return searchResult{Before: title[:at], Match: title[at : at+len(part)], After: title[at+len(part):]}
}

func (d *Pages) findWorkers(r *frame.Request, part string) (list []searchResult, err error) {
	workers, _, err := d.Store.Workers.List(r.Context(), r.Who.Caller,
		workers.Query{Text: part, Origin: workers.CreatedOrigin, Limit: maxPerKind, Scan: store.MaxSearched})
	for _, w := range workers {
		f := marked(w.Title, part)
		f.Address, f.Run, f.Hint = "/workers/"+w.ID, "/workers/"+w.ID+"#f-input", show.Ellipsis(w.Summary, titleInFilter)
		if f.Sign, err = d.Glyph(w.ID, w.Title, "s"); err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return list, err
}

func (d *Pages) findTasks(r *frame.Request, part string) (list []searchResult, err error) {
	tasks, _, err := d.Store.Tasks(r.Context(), r.Who.Caller,
		store.TaskQuery{Text: part, Limit: maxPerKind, Scan: store.MaxSearched})
	for _, t := range tasks {
		f := marked(t.Title, part)
		f.Address, f.State = view.TaskPath(t.ID), string(t.Status)
		list = append(list, f)
	}
	return list, err
}

func (d *Pages) findFiles(r *frame.Request, part string) (list []searchResult, err error) {
	files, err := d.Store.SearchFiles(r.Context(), r.Who.Caller, part, maxPerKind)
	for _, file := range files {
		f := marked(file.Path, part)
		f.Address, f.Hint = "/workers/"+file.WorkerID+"/preview/"+escapedPath(file.Path),
			show.Ellipsis(file.Worker, titleInFilter)
		if f.Sign, err = d.Icon("doc"); err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return list, err
}

// escapedPath returns a file's path as a part of an address.
func escapedPath(path string) string { return (&url.URL{Path: path}).EscapedPath() }

// A destination is a page or a command that a search finds by its name.
type destination struct {
	title         text.Key
	address, icon string
	right         people.Right // that its page needs; "" for none
	keys          []string     // of the shortcut
}

// pagesToFind returns the pages that a search finds.
func pagesToFind() []destination {
	list := []destination{
		{"Home", "/", "home", "", []string{"G", "H"}},
		{"Workers", "/workers", "workers", "", []string{"G", "W"}},
		{"Tasks", "/tasks", "tasks", "", []string{"G", "T"}},
		{"Usage", "/usage", "usage", people.SeeUsage, []string{"G", "U"}},
		{"Mail", "/mail", "mail", "", []string{"G", "M"}},
		{"Outbox", "/mail/outbox", "mail", "", nil},
		{"Account", "/account", "workers", "", nil},
	}
	for _, s := range frame.Sections() {
		list = append(list, destination{title: s.Title, address: s.Path, icon: s.Icon, right: s.Right})
	}
	return list
}

// commandsToFind returns the commands that a search finds.
func commandsToFind() []destination {
	return []destination{
		{"New task", "/", "plus", "", []string{"N"}},
		{"New worker", "/workers/new", "plus", "", []string{"C"}},
		{"Next approval", "/tasks?show=waiting", "shield", "", []string{"G", "A"}},
		{"Theme: light, dark or system", "/account#looks", "sun", "", nil},
	}
}

// findPlaces returns the function that finds the places whose name matches the search, and whose page the
// user may open.
func (d *Pages) findPlaces(places []destination) func(r *frame.Request, part string) ([]searchResult, error) {
	return func(r *frame.Request, part string) (list []searchResult, err error) {
		for _, p := range places {
			title, may := r.T(p.title), p.right == "" || r.Who.May(p.right)
			if !may || !strings.Contains(strings.ToLower(title), strings.ToLower(part)) {
				continue
			}
			f := marked(title, part)
			f.Address, f.Keys = p.address, p.keys
			if f.Sign, err = d.Icon(p.icon); err != nil {
				return nil, err
			}
			list = append(list, f)
		}
		return list, nil
	}
}
