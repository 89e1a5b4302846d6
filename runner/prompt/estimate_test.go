package prompt

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/matryer/is"
)

// TestCalibration checks the calibration after token counts of different providers.
func TestCalibration(t *testing.T) {
	t.Parallel()
	type call struct {
		estimated, counted int64
		cut                bool // the provider may have cut the prompt
	}
	for name, tt := range map[string]struct {
		calls []call
		want  int64 // an estimate of 1,000 tokens after calibration
	}{
		"nothing yet":              {nil, 1000},
		"no count":                 {[]call{{4000, 0, false}}, 1000},
		"a little more":            {[]call{{4000, 4800, false}}, 1200},
		"a little less":            {[]call{{4000, 3400, false}}, 850},
		"the newest counts":        {[]call{{4000, 4800, false}, {5000, 5000, false}}, 1000},
		"less than ever":           {[]call{{4000, 3100, false}}, 1000},
		"less, after more":         {[]call{{4000, 4800, false}, {5000, 3000, false}}, 1200},
		"more than ever":           {[]call{{1000, 9000, false}}, 3000},
		"an Ollama server's cut":   {[]call{{1600, 1500, false}, {5200, 2051, true}, {9000, 2051, true}}, 938},
		"a cut from the beginning": {[]call{{9000, 2051, true}, {9400, 2051, true}}, 1000},
		"a cut that looks fine":    {[]call{{2100, 2051, false}, {2400, 2051, true}, {2500, 2051, true}}, 977},
		"half, of a small prompt":  {[]call{{300, 100, false}}, 1000},
		"the same prompt again":    {[]call{{4000, 4800, false}, {4000, 4800, false}}, 1200},
		"a prompt that shrank":     {[]call{{4000, 4800, false}, {2000, 2000, false}}, 1000},
		"a few bytes more":         {[]call{{4000, 4000, false}, {4010, 4000, false}}, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			var c calibration
			for _, call := range tt.calls {
				is.Equal(c.record(call.estimated, call.counted), call.cut)
			}
			is.Equal(c.correct(1000), tt.want)
		})
	}
}

// TestCalibrationBounds checks that no sequence of wrong counts lowers an estimate below 0.8 of
// its value, or makes it overflow.
func TestCalibrationBounds(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	number := func() int64 {
		switch r.IntN(4) {
		case 0:
			return r.Int64N(10) - 2
		case 1:
			return r.Int64()
		default:
			return r.Int64N(1 << (1 + r.IntN(40)))
		}
	}
	for range 2000 {
		var c calibration
		counted := number()
		for range 20 {
			if r.IntN(2) == 0 {
				counted = number()
			}
			c.record(number(), counted)
			n := r.Int64N(1 << 40)
			if got := c.correct(n); got < n*4/5 || got > n*3+1 {
				t.Fatalf("an estimate of %d becomes %d with %+v", n, got, c)
			}
		}
	}
	if c := (calibration{ratio: minCalibration}); c.correct(math.MaxInt32) < math.MaxInt32*4/5 {
		t.Fatal("the lower bound does not hold for large estimates")
	}
}
