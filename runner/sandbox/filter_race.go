//go:build race

package sandbox

// slowdown is the factor by which the race detector increases the time and memory of a program.
// Only tests use the race detector.
const slowdown = 8
