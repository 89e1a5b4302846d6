package prompt

import (
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// TestOutputFitsTheWindow checks that input and output fit into the window together.
func TestOutputFitsTheWindow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		size, most, input int64
		want              int
	}{
		{8192, 32_000, 1000, 6942}, // a quarter of the input is reserved
		{8192, 4000, 1000, 4000},
		{8192, 32_000, 6500, 256}, // enough for an answer
		{8192, 32_000, 8000, 192}, // never more than is left
		{8192, 100, 8000, 100},
		{8192, 32_000, 9000, 256}, // does not fit
	} {
		is.New(t).Equal(Window{Size: tt.size, MaxOutput: tt.most}.Output(tt.input), tt.want)
	}
	is := is.New(t)
	for size := int64(minWindow); size < 40_000; size += 777 {
		for _, most := range []int64{64, 1000, 32_000} {
			w := Window{Size: size, MaxOutput: most}
			for input := int64(0); input < w.Room(); input += 99 {
				ordertest.AtMost(is, int64(w.Output(input))+input, size)
			}
		}
	}
}
