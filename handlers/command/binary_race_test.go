//go:build race

package command_test

// manyTasksCount is smaller because the race detector slows down the creation of tasks. The program
// itself is built without it.
const manyTasksCount = 5_000
