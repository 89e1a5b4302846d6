package tool

import (
	"bytes"
	"image/png"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/workspace"
)

// TestMakeChart draws charts in the confined process.
func TestMakeChart(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	out := h.does(t, "make_chart", object{"path": "r/sales.PNG", "kind": "bar", "title": "Größe", "labels": []any{2024, "2025"},
		"series": []object{{"name": "EUR", "values": []any{1.5, nil}}}})
	is.True(strings.HasPrefix(out, `{"path":"r/sales.PNG","size":`))
	_, err := png.Decode(strings.NewReader(h.get(t, "r/sales.PNG")))
	is.NoErr(err)
	h.does(t, "view_image", object{"path": "r/sales.PNG"})
	h.does(t, "publish_file", object{"path": "r/sales.PNG"})
	is.True(!strings.Contains(h.does(t, "write_file", object{"path": "r/a.pdf", "content": "![Sales](sales.PNG)"}), "notes"))

	h.put(t, "data.csv", "Monat;Umsatz;Gr\xf6\xdfe\nJan;1.200,50;3\nFeb;900;4\n") // Windows-1252
	h.does(t, "make_chart", object{"path": "b.svg", "kind": "line", "file": "data.csv"})
	is.True(strings.Contains(h.get(t, "b.svg"), ">Größe<") && strings.Contains(h.get(t, "b.svg"), ">Umsatz<"))
	first := h.get(t, "b.svg")
	h.does(t, "make_chart", object{"path": "b.svg", "kind": "line", "file": "data.csv"})
	is.True(bytes.Equal([]byte(first), []byte(h.get(t, "b.svg"))))
	h.does(t, "make_chart", object{"path": "c.svg", "kind": "bar", "file": "data.csv", "columns": []string{"Größe"}})
	is.True(!strings.Contains(h.get(t, "c.svg"), "1 500"))
	is.True(strings.Contains(h.does(t, "make_chart", object{"path": "d.svg", "kind": "scatter",
		"series": []object{{"name": "漢", "points": [][]float64{{1, 2}, {3, 4}}}, {"points": [][]float64{{1, 1}}}}}), "U+6F22"))
}

func TestMakeChartRefuses(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	h.put(t, "a.csv", "x,y\na,one\n")
	h.put(t, "empty.csv", "\n")
	h.put(t, "p.png", string(testPicture(t, 3, 2)))
	one := []object{{"values": []int{1}}}
	for name, tt := range map[string]struct {
		args object
		says string
	}{
		"no data":      {object{}, "there are no values to draw"},
		"no labels":    {object{"series": one}, "series[0].values has 1 entries and labels has 0"},
		"kind":         {object{"kind": "radar"}, "kind must be one of bar, stacked, horizontal, line, area, pie, scatter"},
		"extension":    {object{"path": "a.jpg"}, "path must end in .png or .svg"},
		"leads out":    {object{"path": "../a.png"}, "outside"},
		"text":         {object{"labels": []string{"a"}, "series": []object{{"values": []string{"1"}}}}, "series[0].values must be a list of numbers"},
		"pairs":        {object{"kind": "scatter", "series": []object{{"points": [][]int{{1, 2}, {3}}}}}, "series[0].points[1] must be [x, y]"},
		"label":        {object{"labels": []any{"a", nil}, "series": one}, "labels[1] must be a string, not null"},
		"both":         {object{"file": "a.csv", "series": one}, "give one of them"},
		"columns":      {object{"columns": []string{"y"}, "labels": []string{"a"}, "series": one}, "columns are columns of file"},
		"words":        {object{"file": "a.csv"}, `the chart cannot be drawn: file: line 2: "one" in the column "y" is no number`},
		"missing file": {object{"file": "none.csv"}, `no file or folder "none.csv"`},
		"empty file":   {object{"file": "empty.csv"}, "file: empty.csv is empty"},
		"picture":      {object{"file": "p.png"}, "file: p.png is image/png, and not a CSV file"},
		"huge":         {object{"labels": []string{"a"}, "series": []object{{"values": []float64{1e300}}}}, "use a larger unit"},
	} {
		t.Run(name, func(t *testing.T) {
			args := object{"path": "a.png", "kind": "bar"}
			for key, value := range tt.args {
				args[key] = value
			}
			h.refuses(t, "make_chart", args, tt.says)
		})
	}
	_, err := h.run(t, "make_chart", `{"path":"a.png","kind":"bar","labels":["a"],"series":[{"values":[1e999]}]}`)
	says(t, err, "series[0].values must be a list of numbers")
	h.refuses(t, "read_file", object{"path": "a.png"}, "no file") // nothing was written
	is.Equal(len(h.images), 0)
}
