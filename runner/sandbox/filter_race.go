//go:build race

package sandbox

// slowdown is by which factor a program takes more time and memory with the race
// detector, which only tests use.
const slowdown = 8
