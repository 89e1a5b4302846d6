// Package startheap lets the heap grow while the program starts. The packages of a start allocate
// more than the garbage collector's smallest heap, and keep nearly all of it. So a collection then
// costs a fifth of the start's processor time and frees little. Each command of a worker pays that,
// too, because the program confines it in a process of its own.
//
// It imports little, so that it is initialized before the packages that allocate much.
package startheap

import "runtime/debug"

// usual is the growth that the environment asks for (GOGC), as percentage. It is a variable of the
// package because nothing in main runs before the other packages.
var usual = debug.SetGCPercent(400)

// Settle ends the start: from now on the heap grows as the environment asks.
func Settle() { debug.SetGCPercent(usual) }
