package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
)

// The protocol versions that are asked for. The first is what servers know today:
// some end themselves when asked for what they do not know, so the newest is asked
// for only where that is refused.
var versions = []string{"2025-11-25", ""}

// A session is a connection to a server, from its beginning to its end.
type session struct {
	server  *server
	client  *sdk.ClientSession
	process *sandbox.Process // nil for an address
	gone    chan struct{}    // closed when the connection has ended
	done    chan struct{}    // closed when the process, too, has
	once    sync.Once
	changed atomic.Bool // the server says that its tools have changed

	mu     sync.Mutex // held while the tools are listed
	listed time.Time
	list   []tool.Offered
}

// connect reaches or starts the server, and reads its tools.
func (s *server) connect(ctx context.Context) (*session, error) {
	for i, version := range versions {
		sess, err := s.open(ctx, version)
		if err != nil {
			if refusal(err) != nil && i < len(versions)-1 {
				continue
			}
			return nil, errors.New(cut(s.without(err.Error())))
		}
		if _, err = sess.tools(ctx); err != nil {
			sess.end()
			return nil, errors.New(cut(s.without("list tools: " + err.Error())))
		}
		return sess, nil
	}
	return nil, errors.New("it speaks no version of the protocol that is known here")
}

// open connects with one version of the protocol, the newest where that is "".
func (s *server) open(ctx context.Context, version string) (*session, error) {
	sess := &session{server: s, gone: make(chan struct{}), done: make(chan struct{})}
	transport, err := s.transport(sess)
	if err != nil {
		return nil, err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "journeyman", Version: s.pool.cfg.Version}, &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{}, // nothing: what a server asks of us is refused
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true}})
	type opened struct {
		client *sdk.ClientSession
		err    error
	}
	result := make(chan opened, 1)
	began := s.pool.begin(func() {
		c, err := client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
		result <- opened{c, err}
	})
	if !began {
		sess.abandon()
		return nil, errStopped
	}
	select {
	case o := <-result:
		if o.err != nil {
			sess.abandon()
			return nil, o.err
		}
		sess.client = o.client
	case <-ctx.Done():
		sess.abandon() // which ends Connect
		return nil, context.Cause(ctx)
	}
	if !s.pool.begin(sess.watch) {
		sess.abandon()
		return nil, errStopped
	}
	return sess, nil
}

// abandon gives a connection up that has never become one.
func (c *session) abandon() {
	if c.process != nil {
		c.process.Stop(0)
	}
	close(c.gone)
	close(c.done)
}

// watch waits for the connection's end, whoever ends it.
func (c *session) watch() {
	_ = c.client.Wait() // that it has ended is what counts
	close(c.gone)
	if c.process != nil {
		c.process.Stop(c.server.pool.cfg.Timing.Leave)
	}
	_ = c.client.Close() // it may be closed
	close(c.done)
}

// end closes the connection, and returns when it is gone.
func (c *session) end() {
	c.once.Do(func() {
		if c.process != nil {
			c.process.Stop(c.server.pool.cfg.Timing.Leave) // then the connection sees the end
			return
		}
		_ = c.client.Close() // the server may not be there to hear it
	})
	<-c.done
}

func (c *session) ended() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// settle waits a moment for a connection that may be ending, so that the next call
// finds another.
func (c *session) settle() {
	select {
	case <-c.gone:
	case <-time.After(50 * time.Millisecond):
	}
}

// probe ends a connection whose server does not answer at all.
func (c *session) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.server.pool.cfg.Timing.Answer)
	defer cancel()
	answered := make(chan error, 1)
	go func() { answered <- c.client.Ping(ctx, nil) }() // ends with ctx, or with the connection
	select {
	case err := <-answered:
		if err == nil || refusal(err) != nil {
			return
		}
	case <-ctx.Done():
	}
	c.server.log.Warn("the MCP server does not answer any more")
	c.end()
}

// call makes one call.
func (c *session) call(ctx context.Context, name string, input []byte) (result, error) {
	type outcome struct {
		result *sdk.CallToolResult
		err    error
	}
	done := make(chan outcome, 1)
	began := c.server.pool.begin(func() { // ends soon after ctx: writing has a deadline
		r, err := c.client.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(input)})
		done <- outcome{r, err}
	})
	if !began {
		return result{}, errStopped
	}
	select {
	case o := <-done:
		if o.err != nil {
			return result{}, o.err
		}
		return readResult(o.result)
	case <-ctx.Done():
		return result{}, context.Cause(ctx)
	}
}

// tools gives what the server offers. The list is asked for again when it is old,
// or the server says that it has changed.
func (c *session) tools(ctx context.Context) ([]tool.Offered, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.listed) < c.server.pool.cfg.Timing.Fresh && !c.changed.Load() {
		return c.list, nil
	}
	c.changed.Store(false)
	began := time.Now()
	described, err := c.describe(ctx)
	if err != nil {
		c.changed.Store(true)
		return nil, err
	}
	c.list, c.listed = c.server.accept(described), began
	return c.list, nil
}

// The bounds of a list of tools.
const (
	maxPages     = 100
	maxDescribed = 10_000
	maxTools     = 200 // of one server
)

// describe asks for the list of tools, page by page.
func (c *session) describe(ctx context.Context) ([]*sdk.Tool, error) {
	var all []*sdk.Tool
	cursor, seen := "", 0
	for range maxPages {
		page, err := c.client.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, err
		}
		seen += len(page.Tools)
		for _, t := range page.Tools {
			if t != nil && c.server.offers(t.Name) && len(all) <= maxTools {
				all = append(all, t)
			}
		}
		if page.NextCursor == "" || page.NextCursor == cursor || len(all) > maxTools || seen > maxDescribed {
			break
		}
		cursor = page.NextCursor
	}
	if len(all) > maxTools {
		c.server.log.Warn("the MCP server has too many tools: name those you want in its field tools", "offered", maxTools)
		all = all[:maxTools]
	}
	return all, nil
}

// refusal is the answer of a server that refuses, nil where err is something else.
func refusal(err error) *jsonrpc.Error {
	var answer *jsonrpc.Error
	if errors.As(err, &answer) {
		return answer
	}
	return nil
}

// lost says that a connection has ended.
func lost(err error) bool {
	return errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || missing(err) || errors.Is(err, errFlood) || errors.Is(err, io.ErrClosedPipe)
}

// missing says that the server does not know the connection any more.
func missing(err error) bool { return errors.Is(err, sdk.ErrSessionMissing) }

// maxMessage bounds what is told of an error, in bytes.
const maxMessage = 1000

// cut gives text without what is beyond maxMessage.
func cut(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return fmt.Sprintf("%.*s…", maxMessage, text)
}
