package handlers

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A SpareListener still accepts connections when the process has no file descriptor left. It keeps
// a few descriptors open, and closes one to accept a connection in its place. So clients get an
// answer, and the server recovers by itself when descriptors are free again.
type SpareListener struct {
	net.Listener
	yield func() bool // closes an idle connection; false if there is none

	mu     sync.Mutex // guards the fields below
	files  []*os.File
	closed bool
}

const (
	// spares is the number of connections that are served without a free descriptor.
	spares = 8
	// spareTime bounds the life of a connection that needs a spare descriptor or is turned away.
	spareTime = 3 * time.Second
	// spareRetry is the pause after which the listener tries again when all spares are in use.
	spareRetry = 50 * time.Millisecond
	// pollMillis is how long the listener waits for a client before it checks whether it is closed.
	pollMillis = 100
)

// KeepSpare returns a listener that accepts from ln and keeps spare descriptors.
func KeepSpare(ln net.Listener) *SpareListener {
	l := &SpareListener{Listener: ln, yield: func() bool { return false }}
	l.refill()
	return l
}

// A SpareConn is a connection that uses a spare descriptor. It lives for a short time: its client
// only gets the answer that the server has no descriptor left.
type SpareConn struct {
	net.Conn
	listener *SpareListener
	limit    *time.Timer
}

// OutOfFiles reports that the process has no file descriptor left for the connection.
func (*SpareConn) OutOfFiles() bool { return true }

// Close closes the connection. Its descriptor becomes a spare again.
func (c *SpareConn) Close() error {
	c.limit.Stop()
	err := c.Conn.Close()
	c.listener.refill()
	return err
}

// Accept returns the next connection. It is a *SpareConn if no descriptor is left for it.
func (l *SpareListener) Accept() (net.Conn, error) {
	for waits := false; ; {
		c, err := l.Listener.Accept()
		if err == nil {
			l.refill()
			return c, nil
		}
		switch {
		case !outOfFiles(err):
			return nil, err
		case !waits:
			// accept also fails while no client waits, so wait for one first.
			if err := l.awaitClient(); err != nil {
				return nil, err
			}
			waits = true // descriptors may be free again
		case l.yield():
		default:
			if c, err = l.acceptSpare(); err == nil || !outOfFiles(err) {
				return c, err
			}
			time.Sleep(spareRetry)
			waits = false
		}
	}
}

// acceptSpare accepts a connection with a spare descriptor.
func (l *SpareListener) acceptSpare() (net.Conn, error) {
	l.mu.Lock()
	n := len(l.files)
	if n > 0 {
		l.files[n-1].Close() // if another goroutine takes the descriptor first, Accept fails again
		l.files = l.files[:n-1]
	}
	l.mu.Unlock()
	raw, err := l.Listener.Accept()
	if err != nil {
		l.refill()
		return nil, err
	}
	c := &SpareConn{Conn: raw, listener: l}
	c.limit = time.AfterFunc(spareTime, func() { _ = raw.Close() }) // the server closes c when it notices
	return c, nil
}

// refill opens the missing spares. If no descriptor is left, a later call does.
func (l *SpareListener) refill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.files) < spares && !l.closed {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return
		}
		l.files = append(l.files, f)
	}
}

// Close closes the listener and its spares.
func (l *SpareListener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.files {
		f.Close()
	}
	l.files, l.closed = nil, true
	return l.Listener.Close()
}

// awaitClient waits until a client asks for a connection.
func (l *SpareListener) awaitClient() error {
	sys, ok := l.Listener.(syscall.Conn)
	if !ok {
		time.Sleep(spareRetry)
		return nil
	}
	raw, err := sys.SyscallConn()
	if err != nil {
		return err
	}
	for waiting := 0; waiting == 0; {
		// Only Accept waits for a client. This wait is short, so that Close ends it.
		err := raw.Control(func(fd uintptr) {
			waiting, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, pollMillis)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// outOfFiles reports whether a call failed because the process or the machine has no file
// descriptor left.
func outOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
