//go:build !race

package storetest

// Race reports whether the tests run with the race detector, which makes them several times slower.
const Race = false
