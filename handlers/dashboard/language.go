package dashboard

import (
	"fmt"
	"html/template"
	"io"
	"net/http"
	"sync"
	"text/template/parse"

	"journeyman/handlers/dashboard/text"
)

// layoutFile is the template of the frame of every page.
const layoutFile = "layout.html"

// An edition is the templates in one language. They are parsed at their first use: most servers
// show few of the pages, and API clients need none.
type edition struct {
	lang  *text.Language
	funcs template.FuncMap

	mu     sync.Mutex                    // guards the fields below
	shared *template.Template            // the layout and the parts; never executed, so that it can be copied
	parts  *template.Template            // the same for execution; nil until a part is drawn alone
	pages  map[string]*template.Template // by file name, the ones used so far; each includes the layout
}

// setEditions sets the languages and their editions.
func (d *Dashboard) setEditions() {
	d.languages = text.Languages()
	d.editions = map[string]*edition{}
	for _, l := range d.languages {
		d.editions[l.Code] = &edition{lang: l, funcs: d.functions(l), pages: map[string]*template.Template{}}
	}
}

// language returns the language of a request: the one that the user has chosen, otherwise the one
// that the browser prefers.
func (d *Dashboard) language(r *http.Request, chosen string) *text.Language {
	return text.Choose(d.languages, chosen, r.Header.Get("Accept-Language"))
}

// edition returns the templates in the language of a request.
func (d *Dashboard) edition(r *request) *edition { return d.editions[r.lang.Code] }

// page returns the template of a page, which includes the layout.
func (e *edition) page(file string) (*template.Template, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if page := e.pages[file]; page != nil {
		return page, nil
	}
	if err := e.parseShared(); err != nil {
		return nil, err
	}
	// Each page defines a template "content": in one set they would overwrite each other.
	own, err := template.New("").Funcs(e.funcs).ParseFS(embedded, "templates/"+file)
	if err != nil {
		return nil, err
	}
	// A page needs few of the parts. The others would only use memory.
	page := template.New(layoutFile).Funcs(e.funcs)
	if err := addReachable(page, layoutFile, own, e.shared); err != nil {
		return nil, err
	}
	e.pages[file] = page
	return page, nil
}

// part writes a part alone.
func (e *edition) part(w io.Writer, name string, data any) error {
	parts, err := e.partsAlone()
	if err != nil {
		return err
	}
	return parts.ExecuteTemplate(w, name, data)
}

func (e *edition) partsAlone() (_ *template.Template, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.parts != nil {
		return e.parts, nil
	}
	if err := e.parseShared(); err != nil {
		return nil, err
	}
	e.parts, err = e.shared.Clone()
	return e.parts, err
}

// parseShared parses the layout and the parts, once. The file names of the parts begin with part-. The
// caller holds e.mu.
func (e *edition) parseShared() error {
	if e.shared != nil {
		return nil
	}
	if err := e.lang.Check(); err != nil {
		return err
	}
	shared, err := template.New("").Funcs(e.funcs).ParseFS(embedded, "templates/"+layoutFile, "templates/part-*.html")
	if err != nil {
		return err
	}
	e.shared = shared
	return nil
}

// addReachable adds copies of a template and of those that it includes to a set. It takes each from own
// or, if it is not there, from shared.
func addReachable(to *template.Template, name string, own, shared *template.Template) error {
	if t := to.Lookup(name); t != nil && t.Tree != nil {
		return nil // it is there already
	}
	t := own.Lookup(name)
	if t == nil {
		t = shared.Lookup(name)
	}
	if t == nil {
		return fmt.Errorf("there is no template %q", name)
	}
	if _, err := to.AddParseTree(name, t.Tree.Copy()); err != nil { // the first execution changes the tree
		return err
	}
	for _, included := range includes(t.Tree.Root, nil) {
		if err := addReachable(to, included, own, shared); err != nil {
			return err
		}
	}
	return nil
}

// includes appends the names of the templates that a part of a template's tree includes.
func includes(n parse.Node, names []string) []string {
	branch := func(b *parse.BranchNode) []string {
		names = includes(b.List, names)
		if b.ElseList != nil {
			names = includes(b.ElseList, names)
		}
		return names
	}
	switch n := n.(type) {
	case *parse.ListNode:
		for _, child := range n.Nodes {
			names = includes(child, names)
		}
	case *parse.TemplateNode:
		names = append(names, n.Name)
	case *parse.IfNode:
		return branch(&n.BranchNode)
	case *parse.RangeNode:
		return branch(&n.BranchNode)
	case *parse.WithNode:
		return branch(&n.BranchNode)
	}
	return names
}

// t returns a text in the language of the page.
func (r *request) t(key text.Key, values ...any) string { return r.lang.T(key, values...) }
