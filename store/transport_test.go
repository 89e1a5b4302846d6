package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// TestNoDefaultTransport finds clients in the source code that share http.DefaultTransport. Any
// code in the process may close its connections, for example httptest.Server.Close. Then a request
// of another client fails.
func TestNoDefaultTransport(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	clients := 0
	for _, path := range sources(t) {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		is.NoErr(err)
		found, shared := httpClients(file)
		clients += found
		for _, node := range shared {
			t.Errorf("%s: this uses http.DefaultTransport; make an http.Client with a Transport of its own",
				fset.Position(node.Pos()))
		}
	}
	ordertest.Above(is, clients, 20) // otherwise the search finds no clients
}

// TestDefaultTransportIsFound checks the search of TestNoDefaultTransport with several forms of
// code.
func TestDefaultTransportIsFound(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{
		`http.Get("http://h")`:                                  1,
		`http.PostForm("http://h", nil)`:                        1,
		`http.DefaultClient.Do(nil)`:                            1,
		`http.DefaultTransport.RoundTrip(nil)`:                  1,
		`_ = http.Client{}`:                                     1,
		`_ = &http.Client{Timeout: 1}`:                          1,
		`_ = new(http.Client)`:                                  1,
		`var c http.Client`:                                     1,
		`_ = &http.Client{Transport: http.DefaultTransport}`:    1,
		`_ = &http.Client{Transport: &http.Transport{}}`:        0,
		`var c *http.Client`:                                    0,
		`_ = map[string]*http.Client{"a": {Transport: own}}`:    0,
		`_ = http.NewRequest("GET", http.MethodGet, http.Body)`: 0,
	} {
		is := is.New(t)
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nimport \"net/http\"\nfunc f() {\n"+code+"\n}", 0)
		is.NoErr(err)
		if _, shared := httpClients(file); len(shared) != want {
			t.Errorf("%s: found %d uses of the default transport, want %d", code, len(shared), want)
		}
	}
}

// httpClients returns the number of clients in a file with their own transport, and the uses of the
// default transport.
func httpClients(file *ast.File) (own int, shared []ast.Node) {
	fine := map[ast.Node]bool{} // mentions of the type that create no client
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StarExpr:
			fine[n.X] = true
		case *ast.CompositeLit:
			if inHTTP(n.Type, "Client") && slices.ContainsFunc(n.Elts, isTransport) {
				fine[n.Type] = true
				own++
			}
		case *ast.SelectorExpr:
			if inHTTP(n, "DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm") ||
				inHTTP(n, "Client") && !fine[n] {
				shared = append(shared, n)
			}
		}
		return true
	})
	return own, shared
}

// inHTTP reports whether an expression is one of the given names of package net/http.
func inHTTP(e ast.Expr, names ...string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || !slices.Contains(names, s.Sel.Name) {
		return false
	}
	id, ok := s.X.(*ast.Ident)
	return ok && id.Name == "http"
}

func isTransport(e ast.Expr) bool {
	field, ok := e.(*ast.KeyValueExpr)
	if !ok {
		return false
	}
	id, ok := field.Key.(*ast.Ident)
	return ok && id.Name == "Transport"
}
