package command

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"

	"github.com/coreos/go-systemd/v22/activation"
)

// The names of sockets that a service manager may pass (FileDescriptorName= of systemd).
const (
	SocketHTTP = "http"
	SocketSMTP = "smtp"
)

// PassedSockets returns the listening sockets that a service manager has passed to this process
// (LISTEN_FDS), by name. Several sockets of one name become one listener. It must be called once,
// before the process opens files.
func PassedSockets(log *slog.Logger) (map[string]net.Listener, error) {
	files := activation.Files(true)
	byName := map[string][]net.Listener{}
	var errs []error
	for _, f := range files {
		if name := f.Name(); name != SocketHTTP && name != SocketSMTP {
			errs = append(errs, fmt.Errorf("the service manager passes a socket %q: it must be named %s or %s "+
				"(FileDescriptorName=)", name, SocketHTTP, SocketSMTP))
			continue
		}
		ln, err := net.FileListener(f)
		if err != nil {
			errs = append(errs, fmt.Errorf("the service manager passes a socket %q that does not listen: %w",
				f.Name(), err))
			continue
		}
		byName[f.Name()] = append(byName[f.Name()], ln)
		_ = f.Close() // the listener has a copy of its own
	}
	passed := map[string]net.Listener{}
	for name, list := range byName {
		passed[name] = joinListeners(list)
		log.Info("the service manager has passed sockets", "name", name, "addresses", addresses(list))
	}
	return passed, errors.Join(errs...)
}

// joinListeners returns a listener for the connections of all listeners. Its address is that of
// the first.
func joinListeners(list []net.Listener) net.Listener {
	if len(list) == 1 {
		return list[0]
	}
	j := &joined{Listener: list[0], list: list, conns: make(chan accepted), closed: make(chan struct{})}
	for _, ln := range list {
		go j.accept(ln)
	}
	return j
}

// A joined listener accepts the connections of several listeners.
type joined struct {
	net.Listener // the first
	list         []net.Listener
	conns        chan accepted
	closed       chan struct{} // closed by Close
	once         sync.Once
}

// An accepted is the result of one call of Accept.
type accepted struct {
	conn net.Conn
	err  error
}

// accept passes on the connections of one listener until it fails.
func (j *joined) accept(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		select {
		case j.conns <- accepted{conn, err}:
		case <-j.closed:
			if conn != nil {
				_ = conn.Close() // the service stops: the client connects again
			}
			return
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
	}
}

// Accept returns the next connection of any listener.
func (j *joined) Accept() (net.Conn, error) {
	select {
	case a := <-j.conns:
		return a.conn, a.err
	case <-j.closed:
		return nil, net.ErrClosed
	}
}

// Close closes all listeners.
func (j *joined) Close() error {
	var errs []error
	j.once.Do(func() {
		close(j.closed)
		for _, ln := range j.list {
			errs = append(errs, ln.Close())
		}
	})
	return errors.Join(errs...)
}

// addresses returns the addresses of listeners, for the log.
func addresses(list []net.Listener) string {
	all := make([]string, len(list))
	for i, ln := range list {
		all[i] = ln.Addr().String()
	}
	return strings.Join(all, " ")
}
