//go:build race

package command_test

// manyTasksCount is smaller where the race detector slows the filling down; the
// program itself is built without it.
const manyTasksCount = 5_000
