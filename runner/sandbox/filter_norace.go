//go:build !race

package sandbox

// slowdown is 1 without the race detector: see filter_race.go.
const slowdown = 1
