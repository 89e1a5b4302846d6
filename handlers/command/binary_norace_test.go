//go:build !race

package command_test

// manyTasksCount is how many tasks a folder has that counts as full.
const manyTasksCount = 200_000
