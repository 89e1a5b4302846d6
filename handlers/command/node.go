package command

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"journeyman/store"
)

// NodeFlags let several servers share a database: see the README of store.
type NodeFlags struct {
	NodeURL       string        `help:"Address at which the other servers that share --database reach this one, such as http://10.0.0.2:8080. It needs --cluster-secret, and a data folder that all of them share." placeholder:"URL"`
	ClusterSecret string        `help:"Secret of the servers that share --database, at least 32 characters, the same for all." placeholder:"SECRET" secret:"the secret of the servers that share a database"`
	NodeLease     time.Duration `default:"20s" help:"Time after which the other servers that share --database take over the work of one that is gone, at least 3s."`
	ClockOffset   time.Duration `hidden:"" help:"Moves the clock of this process. Only tests of servers with different clocks use it."`
}

// Now returns the time of this process, moved by ClockOffset.
func (f *NodeFlags) Now() time.Time { return time.Now().Add(f.ClockOffset) }

const (
	leastSecret = 32              // characters of the shortest cluster secret
	leastLease  = 3 * time.Second // a busy machine may delay a renewal by a second
)

// node returns the description of this server for the other servers, or nil if no other server shares
// its database.
func (s *Settings) node(version string) (*store.Node, error) {
	switch {
	case s.NodeURL == "" && s.ClusterSecret == "":
		return nil, nil
	case s.NodeURL == "":
		return nil, errors.New("--cluster-secret: needs --node-url")
	case len(s.ClusterSecret) < leastSecret:
		return nil, fmt.Errorf("--cluster-secret: must have at least %d characters, and --node-url needs it", leastSecret)
	case s.Database == "":
		return nil, errors.New("--node-url: needs --database, because servers cannot share a database in a data folder")
	case s.NodeLease < leastLease:
		return nil, fmt.Errorf("--node-lease: must be at least %v", leastLease)
	}
	u, err := url.Parse(s.NodeURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Path != "" ||
		u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("--node-url: must be http:// or https:// with a host and a port, and nothing behind it")
	}
	return &store.Node{URL: s.NodeURL, Version: version}, nil
}

// ControlClient returns a client of the server that has the data folder open. Among servers that share
// the folder it is the one of --node-url.
func (s *Settings) ControlClient() *ControlClient {
	return NewControlClient(socketPath(s.Data, s.nodeName()))
}

// errNodes refuses a command on a data folder that several servers share, if it names none of them.
var errNodes = errors.New("servers that share a database have the data folder open: " +
	"run the command with the --node-url and the --cluster-secret of one of them, on its machine")

// nodesAnswer reports whether a server runs on this machine that shares the data folder with others.
func (s *Settings) nodesAnswer(ctx context.Context) bool {
	sockets, err := filepath.Glob(socketPath(globQuote(s.Data), "*"))
	return err == nil && slices.ContainsFunc(sockets, func(path string) bool { return NewControlClient(path).Answers(ctx) })
}

// globQuote returns a pattern that matches only path.
func globQuote(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// nodeName returns the part of the names of files that belong to this server alone, or "".
func (s *Settings) nodeName() string {
	if s.NodeURL == "" {
		return ""
	}
	return (&store.Node{URL: s.NodeURL}).Name()
}
