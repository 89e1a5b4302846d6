package chart

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// try draws a chart, and returns its picture.
func try(t testing.TB, input string) (Report, []byte, error) {
	t.Helper()
	out, err := Write([]byte(input))
	if err != nil {
		return Report{}, nil, err
	}
	r, picture, err := Split(out)
	is.New(t).NoErr(err)
	return r, picture, nil
}

// texts returns the texts of an SVG.
func texts(t testing.TB, picture []byte) (all []string) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(picture))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		is.New(t).NoErr(err) // it is XML
		if data, ok := token.(xml.CharData); ok && strings.TrimSpace(string(data)) != "" {
			all = append(all, string(data))
		}
	}
}

// count returns how many pixels have about that color.
func count(img image.Image, c color.NRGBA) (n int) {
	near := func(a uint32, b uint8) bool { return a>>8+6 >= uint32(b) && a>>8 <= uint32(b)+6 }
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if r, g, b, _ := img.At(x, y).RGBA(); near(r, c.R) && near(g, c.G) && near(b, c.B) {
				n++
			}
		}
	}
	return n
}

// TestKinds draws each kind in both formats, and twice.
func TestKinds(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			data := `"labels":["Ä & B","b","c"],"series":[{"name":"One","values":[3,1.5,2]}`
			switch kind {
			case scatter:
				data = `"series":[{"name":"One","points":[[1,2],[3,-4]]},{"points":[[2,2]]}`
			case pie:
			default:
				data += `,{"name":"Two","values":[-1,null,2e6]}`
			}
			input := `{"kind":"` + kind + `","title":"Größe <x>","xTitle":"€","yTitle":"°C",` + data + `],"format":`
			r, picture, err := try(t, input+`"svg"}`)
			is.NoErr(err)
			is.Equal(len(r.Notes), 0)
			shown := strings.Join(texts(t, picture), "|")
			is.True(strings.Contains(shown, "Größe <x>"))
			is.True(kind == scatter || strings.Contains(shown, "Ä & B"))
			is.True(kind == pie || strings.Contains(shown, "One") && strings.Contains(shown, "°C") && strings.Contains(shown, "€"))
			_, picture, err = try(t, input+`"png"}`)
			is.NoErr(err)
			img, err := png.Decode(bytes.NewReader(picture))
			is.NoErr(err)
			is.Equal(img.Bounds().Max, image.Pt(width*scale, height*scale))
			is.True(kind == area || count(img, palette[0]) > 30) // the first series is visible
			_, again, err := try(t, input+`"png"}`)
			is.NoErr(err)
			is.True(bytes.Equal(picture, again))
		})
	}
}

// TestBarsAreTrue measures the bars of a chart: they are as long as the values say.
func TestBarsAreTrue(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	_, picture, err := try(t, `{"kind":"bar","format":"png","labels":["a","b","c"],"series":[{"values":[100,null,-50]}]}`)
	is.NoErr(err)
	img, err := png.Decode(bytes.NewReader(picture))
	is.NoErr(err)
	high := map[int]int{} // of the bar in each third
	for i, x := range []int{2, 5, 8} {
		for y := range img.Bounds().Dy() {
			if r, _, b, _ := img.At(60+(x-1)*width*scale/9, y).RGBA(); b>>8 == 0xb5 && r>>8 == 0x2f {
				high[i]++
			}
		}
	}
	ordertest.Above(is, high[0], 400)
	is.Equal(high[1], 0)
	ordertest.Between(is, high[0], 2*high[2]-4, 2*high[2]+4)
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	many := func(n int) string { return strings.TrimSuffix(strings.Repeat(`"a",`, n), ",") }
	for name, tt := range map[string]struct{ input, says string }{
		"no series":        {`"kind":"bar","labels":["a"]`, "no values"},
		"only gaps":        {`"kind":"bar","labels":["a"],"series":[{"values":[null]}]`, "no values"},
		"no points":        {`"kind":"scatter","series":[{"points":[]}]`, "no values"},
		"unknown kind":     {`"kind":"radar","labels":["a"],"series":[{"values":[1]}]`, `no kind "radar"`},
		"lengths":          {`"kind":"bar","labels":["a"],"series":[{"values":[1]},{"values":[1,2]}]`, "series[1].values has 2 entries and labels has 1"},
		"huge":             {`"kind":"line","labels":["a"],"series":[{"values":[1e300]}]`, "series[0].values[0] is beyond 1e+15"},
		"huge point":       {`"kind":"scatter","series":[{"points":[[1,1],[1,-2e15]]}]`, "series[0].points[1] is beyond"},
		"too many labels":  {`"kind":"bar","labels":[` + many(201) + `],"series":[]`, "labels can have 200 entries in a bar chart and has 201"},
		"too many parts":   {`"kind":"pie","labels":[` + many(21) + `],"series":[]`, "labels can have 20 entries"},
		"too many series":  {`"kind":"bar","labels":["a"],"series":[` + strings.Repeat(`{"values":[1]},`, 12) + `{"values":[1]}]`, "series can have 12 entries and has 13"},
		"long label":       {`"kind":"bar","labels":["` + strings.Repeat("ä", 201) + `"],"series":[{"values":[1]}]`, "can have 200 characters"},
		"negative part":    {`"kind":"pie","labels":["a","b"],"series":[{"values":[1,-1]}]`, "series[0].values[1] is negative"},
		"nothing to share": {`"kind":"pie","labels":["a"],"series":[{"values":[0]}]`, "not all be zero"},
		"two pies":         {`"kind":"pie","labels":["a"],"series":[{"values":[1]},{"values":[1]}]`, "a pie has one series"},
		"values scattered": {`"kind":"scatter","labels":["a"],"series":[{"values":[1]}]`, "has points [x, y]"},
		"points of bars":   {`"kind":"bar","series":[{"points":[[1,2]]}]`, "only a scatter chart has points"},
		"table of words":   {`"kind":"bar","table":"a,b\nx,1\ny,two\n"`, `line 3: "two" in the column "b" is no number`},
		"no columns":       {`"kind":"bar","table":"a\nx\n"`, "a row of names"},
		"unknown column":   {`"kind":"bar","table":"a,b\nx,1\n","columns":["c"]`, `no column "c" after its first one; it has: b`},
		"scattered words":  {`"kind":"scatter","table":"a,b\nx,1\n"`, `line 2: "x" in the first column is no number`},
		"long table":       {`"kind":"pie","table":"a,b\n` + strings.Repeat(`x,1\n`, 100) + `"`, "labels can have 20 entries"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := try(t, `{"format":"svg",`+tt.input+`}`)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v does not say %q", err, tt.says)
			}
		})
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ table, columns, want string }{
		"commas":     {"Month,Sales\nJan,\"1,200.50\"\nFeb,-3\n", "", "1200.5 -3"},
		"semicolons": {"Monat;Umsatz\nJan;1.200,50 €\nFeb;12,5\n", "", "1200.5 12.5"},
		"tabs":       {"m\tv\na\t5 %\nb\t\n", "", "5 gap"},
		"columns":    {"m,a,b\nx,1,word\ny,2,word\n", `"a"`, "1 2"},
		"short row":  {"m,a\nx,1\ny\n", "", "1 gap"},
		"thousands":  {"m,a\nx,\"1,200\"\ny,1 300\n", "", "1200 1300"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			in := Input{Kind: bar, Table: tt.table}
			if tt.columns != "" {
				is.NoErr(json.Unmarshal([]byte("["+tt.columns+"]"), &in.Columns))
			}
			is.NoErr(in.readTable())
			var got []string
			for _, v := range in.Series[0].Values {
				if v == nil {
					got = append(got, "gap")
					continue
				}
				b, err := json.Marshal(*v)
				is.NoErr(err)
				got = append(got, string(b))
			}
			is.Equal(strings.Join(got, " "), tt.want)
		})
	}
}

// TestExtremes draws data at the limits. Each tick has a text of its own.
func TestExtremes(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"equal values": `"kind":"line","labels":["a","b"],"series":[{"values":[5,5]}]`,
		"one value":    `"kind":"line","labels":["a"],"series":[{"values":[0]}]`,
		"tiny":         `"kind":"line","labels":["a","b"],"series":[{"values":[1e-9,3e-9]}]`,
		"smallest":     `"kind":"bar","labels":["a","b"],"series":[{"values":[5e-324,0]}]`,
		"large":        `"kind":"bar","labels":["a","b"],"series":[{"values":[1e15,-1e15]}]`,
		"close":        `"kind":"line","labels":["a","b"],"series":[{"values":[1000000,1000001]}]`,
		"closest":      `"kind":"line","labels":["a","b"],"series":[{"values":[1e15,999999999999999.9]}]`,
		"one point":    `"kind":"scatter","series":[{"points":[[-7,1e-300]]}]`,
		"zeros":        `"kind":"stacked","labels":["a","b"],"series":[{"values":[0,0]}]`,
		"whole pie":    `"kind":"pie","labels":["a","b"],"series":[{"values":[1,0]}]`,
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			_, picture, err := try(t, `{"format":"svg",`+data+`}`)
			is.NoErr(err)
			shown := texts(t, picture)
			ordertest.Below(is, len(shown), 60)
			for _, text := range append(shown, string(picture)) {
				is.True(!strings.Contains(text, "NaN") && !strings.Contains(text, "Inf"))
			}
			_, _, err = try(t, `{"format":"png",`+data+`}`)
			is.NoErr(err)
		})
	}
}

func TestMissingCharacters(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	r, picture, err := try(t, `{"format":"svg","kind":"bar","title":"漢 → ✓","labels":["🫠"],"series":[{"values":[1]}]}`)
	is.NoErr(err)
	is.Equal(r.Notes, []string{"The fonts lack these characters, which a PNG shows as empty boxes: 漢 (U+6F22), 🫠 (U+1FAE0)."})
	is.True(strings.Contains(string(picture), "漢 → ✓"))
}

// FuzzWrite draws any chart of any table.
func FuzzWrite(f *testing.F) {
	f.Add([]byte(`{"kind":"bar","format":"png","labels":["a"],"series":[{"values":[1e-5]}]}`))
	f.Add([]byte(`{"kind":"scatter","format":"png","table":"a;b\n1;2\n"}`))
	f.Add([]byte(`{"kind":"pie","format":"svg","labels":["a","b"],"series":[{"values":[1,2]}]}`))
	f.Add([]byte(`{"kind":"horizontal","format":"png","title":"x","labels":["a","b"],"series":[{"values":[1,-2]}]}`))
	f.Fuzz(func(t *testing.T, input []byte) {
		if r, picture, err := try(t, string(input)); err == nil && len(picture) == 0 {
			t.Fatalf("%q: %v", input, r)
		}
	})
}

// TestTurnedTexts turns a text: it has as much ink as the upright one, and is as long in the direction of the turn.
func TestTurnedTexts(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	drawn := func(degrees float64) (ink int, extent image.Rectangle) {
		r := newRaster(newType())
		r.text(point{400, 250}, "Umsatz in Größen", look{13, false, color.NRGBA{A: 255}}, 0.5, degrees)
		for y := range r.img.Rect.Dy() {
			for x := range r.img.Rect.Dx() {
				if dark := 255 - int(r.img.RGBAAt(x, y).G); dark > 0 {
					ink += dark
					extent = extent.Union(image.Rect(x, y, x+1, y+1))
				}
			}
		}
		return ink, extent
	}
	upright, extent := drawn(0)
	ordertest.Above(is, extent.Dx(), 8*extent.Dy())
	near := func(a, b, most int) bool { return a-b <= most && b-a <= most }
	for degrees, size := range map[float64]image.Point{
		90: {X: extent.Dy(), Y: extent.Dx()},
		45: {X: (extent.Dx() + extent.Dy()) * 1000 / 1414, Y: (extent.Dx() + extent.Dy()) * 1000 / 1414},
	} {
		ink, turned := drawn(degrees)
		is.True(near(ink, upright, upright/50))
		is.True(near(turned.Dx(), size.X, 8))
		is.True(near(turned.Dy(), size.Y, 8))
	}
}
