package main

import (
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"time"
)

// bareDelivery writes one event after the other to many connections, in one loop and without a
// server. It returns the CPU time of one write in µs, or 0 if this system does not show it.
func bareDelivery(connections, size int) (each float64, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, ln.Close()) }()
	var ends []net.Conn
	var readers sync.WaitGroup
	defer func() {
		for _, c := range ends {
			err = errors.Join(err, c.Close())
		}
		readers.Wait()
	}()
	var writers []net.Conn
	for range connections {
		to, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			return 0, err
		}
		ends = append(ends, to)
		from, err := ln.Accept()
		if err != nil {
			return 0, err
		}
		ends, writers = append(ends, from), append(writers, from)
		readers.Go(func() { _, _ = io.Copy(io.Discard, to) }) // until Close
	}
	return bareLoop(writers, make([]byte, size))
}

// bareLoop writes an event to all connections for half a second.
func bareLoop(writers []net.Conn, event []byte) (each float64, err error) {
	// The readers have other threads, whose time does not count.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, ok := threadTime()
	written := 0
	for begun := time.Now(); time.Since(begun) < time.Second/2; {
		for _, c := range writers {
			if _, err := c.Write(event); err != nil {
				return 0, err
			}
			written++
		}
	}
	after, _ := threadTime()
	if !ok {
		return 0, nil
	}
	return float64((after - before).Nanoseconds()) / 1000 / float64(written), nil
}
