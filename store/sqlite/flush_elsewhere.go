//go:build !linux

package sqlite

import "os"

// A Flusher writes a growing file. Only Linux has a call that flushes it to the disk in parts.
type Flusher struct{ f *os.File }

// NewFlusher returns a writer to an empty file.
func NewFlusher(f *os.File) *Flusher { return &Flusher{f} }

// Write writes b.
func (w *Flusher) Write(b []byte) (int, error) { return w.f.Write(b) }

func (*Flusher) flush(int64) {}
