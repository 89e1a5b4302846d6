//go:build !race

package storetest

// Race reports whether the race detector watches, which makes tests several times slower.
const Race = false
