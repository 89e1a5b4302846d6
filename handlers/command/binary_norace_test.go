//go:build !race

package command_test

// manyTasksCount is the number of tasks in a large folder.
const manyTasksCount = 200_000
