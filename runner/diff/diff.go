// Package diff compares two texts line by line.
//
// Its functions are pure. Tools show the result to a model, and pages show it to users.
package diff

import "slices"

// maxDistance is the number of lines in which texts may differ. With more, one change replaces
// everything between the equal beginning and the equal end.
const maxDistance = 400

// contextLines is the number of equal lines around a change.
const contextLines = 3

// A Line is a line of a comparison. Old and New are its numbers in both texts, from 1. They are 0
// if the text does not have the line.
type Line struct {
	Kind     string // add, del, "" for an equal line, or gap for equal lines that are left out
	Old, New int
	Text     string
	Hidden   int // lines that a gap leaves out; the other fields describe the first of them
}

// Lines compares the lines a with the lines b. Equal lines that are far from all changes become
// gaps. For equal texts it returns nil.
func Lines(a, b []string) (lines []Line) {
	at, shift, head := 0, 0, 0
	equal := func(end, tail int) {
		for i := at; i < end; i++ {
			line := Line{Old: i + 1, New: i + 1 + shift, Text: a[i]}
			if hidden := end - tail - i; i >= at+head && hidden > 0 {
				line.Kind, line.Hidden = "gap", hidden
				i += hidden - 1
			}
			lines = append(lines, line)
		}
	}
	all := changes(a, b)
	for _, c := range all {
		equal(c.a, contextLines)
		for i := c.a; i < c.aEnd; i++ {
			lines = append(lines, Line{Kind: "del", Old: i + 1, Text: a[i]})
		}
		for i := c.b; i < c.bEnd; i++ {
			lines = append(lines, Line{Kind: "add", New: i + 1, Text: b[i]})
		}
		at, shift, head = c.aEnd, c.bEnd-c.aEnd, contextLines
	}
	if len(all) > 0 {
		equal(len(a), 0)
	}
	return lines
}

// A change replaces lines a to aEnd of the old text by lines b to bEnd of the new one. Lines
// count from 0, and the end lines are not included.
type change struct{ a, aEnd, b, bEnd int }

// changes returns the changes that turn the lines a into the lines b, in their order.
func changes(a, b []string) []change {
	// Most edits are small. Without the equal lines at both ends, myers has little left to compare.
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < len(a)-start && end < len(b)-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	mid := myers(a[start:len(a)-end], b[start:len(b)-end])
	for i := range mid {
		// Line numbers of the middle become line numbers of the whole text.
		c := &mid[i]
		c.a, c.aEnd, c.b, c.bEnd = c.a+start, c.aEnd+start, c.b+start, c.bEnd+start
	}
	return mid
}

// myers returns the shortest list of changes that turns a into b. It uses the algorithm of
// Myers, "An O(ND) Difference Algorithm and Its Variations" (1986). Beyond maxDistance that
// would take too long, and one change replaces all lines.
func myers(a, b []string) []change {
	if len(a) == 0 && len(b) == 0 {
		return nil
	}
	// A path leads through a grid: at (x, y), x lines of a and y lines of b are consumed. Diagonal
	// k holds the points with x - y = k. reached[most+1+k] is the largest x reached on diagonal k.
	most := min(len(a)+len(b), maxDistance)
	reached := make([]int, 2*most+3)
	var trace [][]int
	for d := 0; d <= most; d++ {
		// backtrack needs each earlier round, but only the diagonals that this round can read.
		trace = append(trace, slices.Clone(reached[most+1-d-1:most+1+d+2]))
		for k := -d; k <= d; k += 2 {
			at := most + 1 + k
			x := reached[at-1] + 1 // a line of a is removed
			if k == -d || k != d && reached[at-1] < reached[at+1] {
				x = reached[at+1] // a line of b is added
			}
			// Equal lines cost nothing, so a path follows them as far as they go.
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			reached[at] = x
			if x >= len(a) && x-k >= len(b) {
				return backtrack(trace, len(a), len(b))
			}
		}
	}
	return []change{{0, len(a), 0, len(b)}}
}

// backtrack follows the shortest path of myers from its end (x, y) back to the start. It
// returns the changes on the path, and joins those that touch.
func backtrack(trace [][]int, x, y int) []change {
	var list []change
	for d := len(trace) - 1; d > 0; d-- {
		before := trace[d] // index 0 is diagonal -d-1
		k := x - y
		at := k + d + 1
		// The same choice as in myers finds the step that led here.
		down := k == -d || k != d && before[at-1] < before[at+1]
		fromX := before[at-1]
		if down {
			fromX = before[at+1]
		}
		fromY := fromX - k - 1 // on diagonal k+1
		if !down {
			fromY = fromX - k + 1 // on diagonal k-1
		}
		one := change{fromX, fromX + 1, fromY, fromY}
		if down {
			one = change{fromX, fromX, fromY, fromY + 1}
		}
		// The path is followed backwards: the previous change stands after this one in the text.
		if n := len(list); n > 0 && list[n-1].a == one.aEnd && list[n-1].b == one.bEnd {
			list[n-1].a, list[n-1].b = one.a, one.b
		} else {
			list = append(list, one)
		}
		x, y = fromX, fromY
	}
	slices.Reverse(list)
	return list
}
