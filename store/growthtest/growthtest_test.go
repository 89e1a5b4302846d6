//go:build linux && !race

package growthtest

import "testing"

// TestQuadraticGrowthIsFound measures a reader that compares each block with all before it.
func TestQuadraticGrowthIsFound(t *testing.T) {
	var equal int
	long, ratio := growth(Parser{Read: func(in []byte) {
		for i := 0; i < len(in); i += 16 {
			for j := 0; j < i; j += 16 {
				if in[i] == in[j] {
					equal++
				}
			}
		}
	}}, Times("", "a", ""))
	if long < tooFast || ratio <= maxGrowth {
		t.Errorf("%s and %.0f times are not found (%d)", long, ratio, equal)
	}
}
