package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// TestWritesAssignFirst checks the functions in the source code that run in a write. Such a
// function may run again. So it must assign a variable of its caller before it reads that variable.
// It must assign a whole result of its caller before it assigns a field. Otherwise a field from the
// first run could remain.
func TestWritesAssignFirst(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	paths, err := filepath.Glob("*.go")
	is.NoErr(err)
	found := 0
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, 0)
		is.NoErr(err)
		results := namedResults(file)
		ast.Inspect(file, func(n ast.Node) bool {
			fn, ok := n.(*ast.FuncLit)
			if !ok || !takesTx(fn) {
				return true
			}
			found++
			for _, pos := range readBeforeAssigned(fn) {
				t.Errorf("%s: the write changes a variable of its caller that it has not assigned", fset.Position(pos))
			}
			for _, pos := range fieldsBeforeWhole(fn, results) {
				t.Errorf("%s: the write sets a field of its caller's result, and has not assigned the result", fset.Position(pos))
			}
			return true
		})
	}
	is.True(found > 100) // otherwise the search finds no writes
}

func takesTx(fn *ast.FuncLit) bool {
	for _, p := range fn.Type.Params.List {
		if id, ok := p.Type.(*ast.Ident); ok && id.Name == "Tx" {
			return true
		}
	}
	return false
}

// readBeforeAssigned returns the positions where a function changes outer variables that it has
// read before assigning them.
func readBeforeAssigned(fn *ast.FuncLit) (changes []token.Pos) {
	assigned, read := map[string]bool{}, map[string]bool{}
	// The fields of an assigned variable are assigned, too.
	name := func(e ast.Expr) string {
		v := outside(fn, e)
		if base, _, _ := strings.Cut(v, "."); assigned[base] {
			return ""
		}
		return v
	}
	reads := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok {
				if v := name(e); v != "" && !assigned[v] {
					read[v] = true
				}
			}
			return true
		})
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Rhs {
				reads(e)
			}
			for _, e := range n.Lhs {
				v := name(e)
				if v == "" {
					continue
				}
				if !assigned[v] && (read[v] || n.Tok != token.ASSIGN) {
					changes = append(changes, e.Pos())
				}
				assigned[v] = true
			}
		case *ast.IncDecStmt:
			if v := name(n.X); v != "" && !assigned[v] {
				changes = append(changes, n.Pos())
			}
		case ast.Expr:
			if v := name(n); v != "" && !assigned[v] {
				read[v] = true
			}
		}
		return true
	})
	return changes
}

// namedResults returns the positions of the named results in a file.
func namedResults(file *ast.File) map[token.Pos]bool {
	results := map[token.Pos]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if fn, ok := n.(*ast.FuncType); ok && fn.Results != nil {
			for _, field := range fn.Results.List {
				for _, name := range field.Names {
					results[name.Pos()] = true
				}
			}
		}
		return true
	})
	return results
}

// fieldsBeforeWhole returns the positions where a function assigns a field of an outer result. It
// omits results that the function has assigned as a whole before.
func fieldsBeforeWhole(fn *ast.FuncLit, results map[token.Pos]bool) (changes []token.Pos) {
	whole := map[token.Pos]bool{}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		assign, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for _, e := range assign.Lhs {
			field, isField := e.(*ast.SelectorExpr)
			base := e
			for isField {
				base = field.X
				field, isField = base.(*ast.SelectorExpr)
			}
			id, ok := base.(*ast.Ident)
			switch {
			case !ok || outside(fn, id) == "" || !results[id.Obj.Pos()]:
			case base == e:
				whole[id.Obj.Pos()] = true
			case !whole[id.Obj.Pos()]:
				changes = append(changes, e.Pos())
			}
		}
		return true
	})
	return changes
}

// outside returns the name of a variable, or of its field, that is declared outside of a function.
// It returns "" for other expressions.
func outside(fn *ast.FuncLit, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		if e.Obj == nil || e.Obj.Kind != ast.Var || e.Obj.Pos() >= fn.Pos() && e.Obj.Pos() < fn.End() {
			return ""
		}
		return e.Name
	case *ast.SelectorExpr:
		if v := outside(fn, e.X); v != "" {
			return v + "." + e.Sel.Name
		}
	}
	return ""
}
