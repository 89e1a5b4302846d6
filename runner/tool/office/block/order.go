package block

// maxOrdered is the maximum number of shapes whose order is computed from their places.
const maxOrdered = 300

// Bounds are the place of a shape on its slide.
type Bounds struct{ X, Y, Width, Height int64 }

// A Place is what decides when a shape on a slide is read.
type Place struct {
	Bounds
	Known       bool // the place is known
	Title       bool // the shape is the title
	RightToLeft bool // of a language that is written from right to left
}

// isAbove reports whether a is wholly above b, and in the same column.
func (a Bounds) isAbove(b Bounds) bool {
	return a.Y+a.Height <= b.Y && a.X < b.X+b.Width && b.X < a.X+a.Width
}

// isLeft reports whether a is wholly left of b, and in the same row: they share half of the lower one's height.
func (a Bounds) isLeft(b Bounds) bool {
	shared := min(a.Y+a.Height, b.Y+b.Height) - max(a.Y, b.Y)
	return a.X+a.Width <= b.X && 2*shared >= min(a.Height, b.Height)
}

// Order returns the numbers of shapes in the order of reading: the title, then each shape after those above it
// and left of it. The order in the file is the order in which shapes were drawn; it decides between the others.
func Order(shapes []Place) []int {
	ordered := make([]int, 0, len(shapes))
	var rest []int
	for i, s := range shapes {
		if s.Title {
			ordered = append(ordered, i)
		} else {
			rest = append(rest, i)
		}
	}
	if len(rest) > maxOrdered {
		return append(ordered, rest...)
	}
	after := make([]int, len(rest)) // number of shapes that come before each one
	before := make([][]int, len(rest))
	for i, a := range rest {
		for k, b := range rest {
			if i != k && shapes[a].comesBefore(shapes[b]) {
				after[k]++
				before[i] = append(before[i], k)
			}
		}
	}
	done := make([]bool, len(rest))
	for range rest {
		next := firstFree(after, done)
		done[next] = true
		ordered = append(ordered, rest[next])
		for _, k := range before[next] {
			after[k]--
		}
	}
	return ordered
}

// firstFree returns the first shape before which no other one comes. Shapes can be placed in a circle: then
// it returns the first one.
func firstFree(after []int, done []bool) int {
	first := -1
	for i := range after {
		switch {
		case done[i]:
		case after[i] == 0:
			return i
		case first < 0:
			first = i
		}
	}
	return first
}

// comesBefore reports whether the place of a shape says that it is read before another one.
func (a Place) comesBefore(b Place) bool {
	if !a.Known || !b.Known {
		return false
	}
	// Rows of languages that are written from right to left begin at the right.
	if a.RightToLeft && b.RightToLeft {
		return a.isAbove(b.Bounds) || b.isLeft(a.Bounds)
	}
	return a.isAbove(b.Bounds) || a.isLeft(b.Bounds)
}
