//go:build race

package dashboard_test

// raced reports whether the race detector watches the tests.
const raced = true
