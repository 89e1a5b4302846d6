package toolset

import "slices"

// Nearest returns the element of names with the smallest edit distance to name.
func Nearest(name string, names []string) string {
	return slices.MinFunc(names, func(a, b string) int { return EditDistance(name, a) - EditDistance(name, b) })
}

// EditDistance returns the number of characters to insert, delete or replace to change a into b.
func EditDistance(a, b string) int {
	from, to := []rune(a), []rune(b)
	// This is Levenshtein's algorithm with one row of its table at a time.
	row := make([]int, len(to)+1) // distances from the current prefix of a to each prefix of b
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
