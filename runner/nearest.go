package runner

import "slices"

// nearest returns the name in names with the smallest edit distance to name.
func nearest(name string, names []string) string {
	return slices.MinFunc(names, func(a, b string) int { return EditDistance(name, a) - EditDistance(name, b) })
}

// EditDistance returns how many characters must be inserted, deleted or replaced to turn
// a into b.
func EditDistance(a, b string) int {
	from, to := []rune(a), []rune(b)
	// Levenshtein's algorithm, with one row of its table at a time.
	row := make([]int, len(to)+1) // distances from the beginning of a to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range from {
		diagonal := row[0]
		row[0] = i + 1
		for j := range to {
			cost := diagonal
			if from[i] != to[j] {
				cost++
			}
			diagonal, row[j+1] = row[j+1], min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(to)]
}
