package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
)

// versions returns the protocol versions to ask for, in order. "" stands for the newest
// version of the SDK. Some servers end when a client asks for a version that they do not
// know. So the first version is one that servers know today. The newest is for servers that
// refuse the first.
func versions() []string { return []string{"2025-11-25", ""} }

// A session is one connection to a server.
type session struct {
	server  *server
	client  *sdk.ClientSession
	process *sandbox.Process // nil if the server has an address
	gone    chan struct{}    // closed when the connection has ended
	done    chan struct{}    // closed when the process has ended, too
	once    sync.Once        // for end
	changed atomic.Bool      // the server says that its tools have changed, or listing them failed

	calls   atomic.Int64 // counts calls, for their progress tokens
	waiting sync.Map     // token -> func() to call when the call of that token reports progress
	tasked  sync.Map     // names of tools that only work as tasks

	mu     sync.Mutex // held while the tools are listed
	listed time.Time  // time of the request for list
	list   []tool.RemoteTool
}

// connect starts or reaches the server and lists its tools.
func (s *server) connect(ctx context.Context) (*session, error) {
	for i, version := range versions() {
		sess, err := s.open(ctx, version)
		if err != nil {
			// A refusal may concern the version. Any other failure would happen again.
			if refusal(err) != nil && i < len(versions())-1 {
				continue
			}
			if s.wantsSignIn() {
				return nil, errSignIn
			}
			return nil, errors.New(s.safe(err.Error()))
		}
		if _, err = sess.tools(ctx); err != nil {
			sess.end()
			return nil, errors.New(s.safe("list tools: " + err.Error()))
		}
		return sess, nil
	}
	return nil, errors.New("it speaks no version of the protocol that is known here")
}

// open connects with one version of the protocol.
func (s *server) open(ctx context.Context, version string) (*session, error) {
	sess := &session{server: s, gone: make(chan struct{}), done: make(chan struct{})}
	transport, err := s.transport(sess)
	if err != nil {
		return nil, err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "journeyman", Version: s.pool.cfg.Version}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{}, // none, so the SDK refuses requests of the server
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			sess.progressed(r.Params.ProgressToken)
		},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true}})
	// Connect can outlast ctx, so await returns in its place. abandon then ends it.
	sess.client, err = await(ctx, s.pool, func() (*sdk.ClientSession, error) {
		return client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	})
	if err != nil {
		sess.abandon()
		return nil, err
	}
	if !s.pool.begin(sess.watch) {
		sess.abandon()
		return nil, errStopped
	}
	return sess, nil
}

// abandon ends an attempt to connect that has failed. It kills the program at once, which also
// ends a Connect that has not returned.
func (c *session) abandon() {
	if c.process != nil {
		c.process.Stop(0)
	}
	close(c.gone)
	close(c.done)
}

// watch waits until the connection ends, for whatever reason, and then cleans up.
func (c *session) watch() {
	_ = c.client.Wait()
	close(c.gone) // closed before Stop, which takes time: no call may use this connection now
	if c.process != nil {
		c.process.Stop(c.server.pool.cfg.Timing.Leave)
	}
	_ = c.client.Close() // the client may be closed already
	close(c.done)
}

// end closes the connection, and waits until it and the program have ended.
func (c *session) end() {
	c.once.Do(func() {
		if c.process != nil {
			c.process.Stop(c.server.pool.cfg.Timing.Leave) // the connection ends with the process
			return
		}
		_ = c.client.Close() // fails if the server is down
	})
	<-c.done
}

// ended reports whether the connection has ended.
func (c *session) ended() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// settleTime bounds how long settle waits. On a busy machine a transport takes some tenths of a second
// to end after an answer that it could not read.
const settleTime = 500 * time.Millisecond

// settle waits a moment for the end of a connection whose call has failed. If it has ended,
// the next call opens a new one.
func (c *session) settle() {
	select {
	case <-c.gone:
	case <-time.After(settleTime):
	}
}

// probe ends the connection if the server does not answer a ping. A refusal is an answer.
func (c *session) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.server.pool.cfg.Timing.Answer)
	defer cancel()
	_, err := await(ctx, c.server.pool, func() (any, error) { return nil, c.client.Ping(ctx, nil) })
	if err == nil || refusal(err) != nil {
		return
	}
	c.server.log.Warn("the MCP server no longer answers")
	c.end()
}

// call makes one call of a tool. from is the token by which this program recognizes a call to
// its own MCP server. call calls moved whenever the server reports progress.
func (c *session) call(ctx context.Context, name, from string, input []byte, moved func()) (result, error) {
	params := &sdk.CallToolParams{Meta: sdk.Meta{tool.CallMeta: from}, Name: name, Arguments: json.RawMessage(input)}
	token := "call-" + strconv.FormatInt(c.calls.Add(1), 10)
	params.SetProgressToken(token)
	c.waiting.Store(token, moved)
	defer c.waiting.Delete(token)
	r, err := await(ctx, c.server.pool, func() (*sdk.CallToolResult, error) { return c.client.CallTool(ctx, params) })
	if err != nil {
		return result{}, err
	}
	return readResult(r)
}

// progressed extends the time of the call with that progress token. A token that is unknown,
// such as that of a call that has ended, has no effect.
func (c *session) progressed(token any) {
	if moved, ok := c.waiting.Load(token); ok {
		moved.(func())()
	}
}

// tools returns the server's tools. It asks the server again when the list is old, or when the
// server says that it has changed.
func (c *session) tools(ctx context.Context) ([]tool.RemoteTool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.listed) < c.server.pool.cfg.Timing.Fresh && !c.changed.Load() {
		return c.list, nil
	}
	// Cleared before the request: a change during it causes another request.
	c.changed.Store(false)
	began := time.Now()
	described, err := c.describe(ctx)
	if err != nil {
		// The change was not read, so the next call has to ask again.
		c.changed.Store(true)
		return nil, err
	}
	c.list, c.listed = c.server.accept(c.usable(described)), began
	// The operator may forbid the tool, and a tool of the server may have its name.
	if reader := c.server.resourceTool(); c.readable() && c.server.permits(reader.Tool) &&
		!slices.ContainsFunc(c.list, func(t tool.RemoteTool) bool { return t.Name == reader.Name }) {
		c.list = append(c.list, reader)
	}
	list := c.list // a variable of its own, which the next listing does not replace
	c.server.known.Store(&list)
	return c.list, nil
}

// The bounds of a list of tools.
const (
	maxPages     = 100
	maxDescribed = 10_000 // tools in all pages, also those that the operator does not permit
	maxTools     = 200    // tools of one server
)

// describe returns the descriptions of the server's tools that the operator permits. It asks
// for them page by page.
func (c *session) describe(ctx context.Context) ([]*sdk.Tool, error) {
	var all []*sdk.Tool
	cursor, seen := "", 0
	c.tasked.Clear() // the new list fills it again
	for range maxPages {
		page, err := c.client.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, err
		}
		seen += len(page.Tools)
		for _, t := range page.Tools {
			// One more than the limit shows that there are too many.
			if t != nil && c.server.permits(t.Name) && len(all) <= maxTools {
				all = append(all, t)
			}
		}
		// A hostile server could send pages without end, or the same page again and again.
		if page.NextCursor == "" || page.NextCursor == cursor || len(all) > maxTools || seen > maxDescribed {
			break
		}
		cursor = page.NextCursor
	}
	if len(all) > maxTools {
		c.server.log.Warn("the MCP server has too many tools: select some of them in its field tools",
			"offered", maxTools)
		all = all[:maxTools]
	}
	return all, nil
}

// refusal returns the JSON-RPC error that the server has answered with, nil if err is no such
// error.
func refusal(err error) *jsonrpc.Error {
	answer, _ := errors.AsType[*jsonrpc.Error](err)
	return answer
}

// lost reports whether err means that the connection has ended.
func lost(err error) bool {
	return errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		missing(err) || errors.Is(err, errFlood) || errors.Is(err, io.ErrClosedPipe)
}

// missing reports whether err means that the server does not know the connection: it answered
// 404 to the session's id, as the MCP specification demands.
func missing(err error) bool { return errors.Is(err, sdk.ErrSessionMissing) }
