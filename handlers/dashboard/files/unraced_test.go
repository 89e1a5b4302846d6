//go:build !race

package files_test

// raced reports whether the race detector watches the tests.
const raced = false
