package store_test

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"regexp"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// TestPatternsCompile finds the regular expressions in the source code that are compiled at their
// first use, and compiles each. Otherwise an error in one of them would appear only then.
func TestPatternsCompile(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	found := 0
	for _, path := range sources(t) {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		is.NoErr(err)
		for _, e := range patternsIn(file) {
			text := textOf(e)
			if _, err := regexp.Compile(text); err != nil || text == "" {
				t.Errorf("%s: %q: %v", fset.Position(e.Pos()), text, err)
			}
			found++
		}
	}
	ordertest.Above(is, found, 25) // otherwise the search finds no patterns
}

// patternsIn returns the expressions of constants of type pattern.Pattern, and the patterns that functions
// return.
func patternsIn(file *ast.File) (list []ast.Expr) {
	isPattern := func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.Ident:
			return e.Name == "pattern"
		case *ast.SelectorExpr:
			return e.Sel.Name == "Pattern"
		}
		return false
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			if isPattern(n.Type) {
				list = append(list, n.Values...)
			}
		case *ast.FuncDecl:
			if n.Type.Results != nil && isPattern(n.Type.Results.List[0].Type) {
				list = append(list, returned(n.Body)...)
			}
		}
		return true
	})
	return list
}

// returned returns the texts that a function returns.
func returned(body *ast.BlockStmt) (list []ast.Expr) {
	ast.Inspect(body, func(n ast.Node) bool {
		if ret, ok := n.(*ast.ReturnStmt); ok && textOf(ret.Results[0]) != "" {
			list = append(list, ret.Results[0])
		}
		return true
	})
	return list
}

// textOf returns the text of a literal or of concatenated literals, or "" for other expressions.
func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.StringVal(constant.MakeFromLiteral(e.Value, e.Kind, 0))
	case *ast.BinaryExpr:
		return textOf(e.X) + textOf(e.Y)
	}
	return ""
}
