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

// versions returns the protocol versions to request, in order. "" is the newest version of the
// SDK. Some servers end when a client requests an unknown version. So the first version is one
// that servers support today. The newest is for servers that reject the first.
func versions() []string { return []string{"2025-11-25", ""} }

// A session is one connection to a server.
type session struct {
	server  *server
	client  *sdk.ClientSession
	process *sandbox.Process // nil if the server has an address
	gone    chan struct{}    // closed when the connection has ended
	done    chan struct{}    // closed when the process has ended, too
	once    sync.Once        // guards end
	changed atomic.Bool      // the server reported a change of its tools, or listing them failed

	calls   atomic.Int64 // number of calls, for their progress tokens
	waiting sync.Map     // token -> func() that is called when the call with that token reports progress
	tasked  sync.Map     // names of tools that require tasks

	mu     sync.Mutex // held while the tools are listed
	listed time.Time  // time of the request that returned list
	list   []tool.RemoteTool
}

// connect starts or reaches the server and lists its tools.
func (s *server) connect(ctx context.Context) (*session, error) {
	for i, version := range versions() {
		sess, err := s.open(ctx, version)
		if err != nil {
			// A rejection may concern the version. Any other failure would occur again.
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
		Capabilities: &sdk.ClientCapabilities{}, // none, so the SDK rejects requests of the server
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			sess.progressed(r.Params.ProgressToken)
		},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true}})
	// Connect can outlast ctx, so await returns earlier. abandon then ends Connect.
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

// abandon ends a failed attempt to connect. It kills the program immediately, which also ends a
// Connect that has not returned.
func (c *session) abandon() {
	if c.process != nil {
		c.process.Stop(0)
	}
	close(c.gone)
	close(c.done)
}

// watch waits until the connection ends, for any reason, and then cleans up.
func (c *session) watch() {
	_ = c.client.Wait()
	close(c.gone) // before Stop, which takes time: no call may use this connection any more
	if c.process != nil {
		c.process.Stop(c.server.pool.cfg.Timing.Leave)
	}
	_ = c.client.Close() // the client may already be closed
	close(c.done)
}

// end closes the connection, and waits until it and the program have ended.
func (c *session) end() {
	c.once.Do(func() {
		if c.process != nil {
			c.process.Stop(c.server.pool.cfg.Timing.Leave) // the connection ends with the process
			return
		}
		_ = c.client.Close() // fails if the server has ended
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

// settleTime limits the wait of settle. On a busy machine, a transport needs some tenths of a
// second to end after an invalid response.
const settleTime = 500 * time.Millisecond

// settle waits a short time for the end of a connection whose call has failed. If it has ended,
// the next call opens a new one.
func (c *session) settle() {
	select {
	case <-c.gone:
	case <-time.After(settleTime):
	}
}

// probe ends the connection if the server does not respond to a ping. An error response counts
// as a response.
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
// its own MCP server; "" for another server. call calls moved whenever the server reports progress.
func (c *session) call(ctx context.Context, name, from string, input []byte, moved func()) (result, error) {
	params := &sdk.CallToolParams{Meta: sdk.Meta{}, Name: name, Arguments: json.RawMessage(input)}
	if from != "" {
		params.Meta[tool.CallMeta] = from
	}
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

// progressed extends the time limit of the call with that progress token. An unknown token,
// such as that of a finished call, has no effect.
func (c *session) progressed(token any) {
	if moved, ok := c.waiting.Load(token); ok {
		moved.(func())()
	}
}

// tools returns the server's tools. It requests the list again if it is old, or if the server
// has reported a change.
func (c *session) tools(ctx context.Context) ([]tool.RemoteTool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.listed) < c.server.pool.cfg.Timing.Fresh && !c.changed.Load() {
		return c.list, nil
	}
	// Cleared before the request: a change during the request causes another one.
	c.changed.Store(false)
	began := time.Now()
	described, err := c.describe(ctx)
	if err != nil {
		// The change was not read, so the next call must request the list again.
		c.changed.Store(true)
		return nil, err
	}
	c.list, c.listed = c.server.accept(c.usable(described)), began
	// The operator may not permit the tool, and a tool of the server may have the same name.
	if reader := c.server.resourceTool(); c.readable() && c.server.permits(reader.Tool) &&
		!slices.ContainsFunc(c.list, func(t tool.RemoteTool) bool { return t.Name == reader.Name }) {
		c.list = append(c.list, reader)
	}
	list := c.list // a copy, which the next listing does not replace
	c.server.known.Store(&list)
	return c.list, nil
}

// Limits of a list of tools.
const (
	maxPages     = 100
	maxDescribed = 10_000 // tools in all pages, including those that are not permitted
	maxTools     = 200    // tools of one server
)

// describe returns the descriptions of the server's tools that the operator permits. It
// requests them page by page.
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
		// A hostile server could send an unlimited number of pages, or the same page
		// repeatedly.
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

// refusal returns the JSON-RPC error in err, nil if err contains none.
func refusal(err error) *jsonrpc.Error {
	answer, _ := errors.AsType[*jsonrpc.Error](err)
	return answer
}

// lost reports whether err means that the connection has ended.
func lost(err error) bool {
	return errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		missing(err) || errors.Is(err, errFlood) || errors.Is(err, io.ErrClosedPipe)
}

// missing reports whether the server does not know the session: it responded with 404 to the
// session's id, as the MCP specification requires.
func missing(err error) bool { return errors.Is(err, sdk.ErrSessionMissing) }
