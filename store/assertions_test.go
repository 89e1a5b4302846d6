package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"

	"github.com/matryer/is"
)

// TestComparisonsShowValues checks that no test compares values with is.True(a < b), alone or as a part of a &&:
// its failure shows no values. The functions of ordertest do.
func TestComparisonsShowValues(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	fset := token.NewFileSet()
	for _, file := range sources(t) {
		f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		is.NoErr(err)
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && assertsTrue(call) && comparesOrder(call.Args[0]) {
				t.Errorf("%s: use a function of ordertest, which shows the values", fset.Position(call.Pos()))
			}
			return true
		})
	}
}

// assertsTrue reports whether call is an is.True(expression), of whatever variable.
func assertsTrue(call *ast.CallExpr) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "True" && len(call.Args) == 1
}

// comparesOrder reports whether e is a < b, a <= b, a > b or a >= b, its negation, or a && with such a part.
func comparesOrder(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.UnaryExpr:
		return e.Op == token.NOT && comparesOrder(e.X)
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LSS, token.LEQ, token.GTR, token.GEQ:
			return true
		case token.LAND:
			return comparesOrder(e.X) || comparesOrder(e.Y)
		}
	}
	return false
}

func TestComparesOrder(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	for expression, want := range map[string]bool{
		"a < b": true, "a >= b": true, "(a > 0)": true, "ok && len(a) <= b": true, "!(a < b)": true,
		"a == b": false, "ok || a < b": false, "a < b == c": false, "f(a < b)": false,
	} {
		e, err := parser.ParseExpr(expression)
		is.NoErr(err)
		is.Equal(comparesOrder(e), want) // for expression
	}
}
