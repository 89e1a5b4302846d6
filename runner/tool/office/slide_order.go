package office

// maxOrdered is the maximum number of shapes whose order is computed from their places.
const maxOrdered = 300

// bounds are the place of a shape on its slide.
type bounds struct{ x, y, width, height int64 }

// isAbove reports whether a is wholly above b, and in the same column.
func (a bounds) isAbove(b bounds) bool {
	return a.y+a.height <= b.y && a.x < b.x+b.width && b.x < a.x+a.width
}

// isLeft reports whether a is wholly left of b, and in the same row: they share half of the lower one's height.
func (a bounds) isLeft(b bounds) bool {
	shared := min(a.y+a.height, b.y+b.height) - max(a.y, b.y)
	return a.x+a.width <= b.x && 2*shared >= min(a.height, b.height)
}

// inOrder returns shapes in the order of reading: the title, then each shape after those above it and left of
// it. The order in the file is the order in which shapes were drawn; it decides between the others.
func inOrder(shapes []*shape) []*shape {
	ordered := make([]*shape, 0, len(shapes))
	var rest []*shape
	for _, s := range shapes {
		if s.isTitle() {
			ordered = append(ordered, s)
		} else {
			rest = append(rest, s)
		}
	}
	if len(rest) > maxOrdered {
		return append(ordered, rest...)
	}
	after := make([]int, len(rest)) // number of shapes that come before each one
	before := make([][]int, len(rest))
	for i, a := range rest {
		for k, b := range rest {
			if i != k && a.comesBefore(b) {
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
func (s *shape) comesBefore(other *shape) bool {
	if !s.placed || !other.placed {
		return false
	}
	// Rows of languages that are written from right to left begin at the right.
	if s.rightToLeft && other.rightToLeft {
		return s.isAbove(other.bounds) || other.isLeft(s.bounds)
	}
	return s.isAbove(other.bounds) || s.isLeft(other.bounds)
}
