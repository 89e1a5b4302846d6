package postgres

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"journeyman/store/engine"
)

// maxPrepared limits the prepared statements of a connection.
const maxPrepared = 1000

// A conn is a connection of the pool. One goroutine at a time uses it.
type conn struct {
	pg      *pgconn.PgConn
	unnamed bool      // no statement stays prepared, but the types of its values are cached
	reused  bool      // it was idle since its last use, so the server may have closed it
	stale   bool      // it must not be used again
	since   string    // see selectSince; set by the pool
	ends    time.Time // it must not be used again from then on; set by the pool

	prepared map[string]*pgconn.StatementDescription // by text; see name
	serial   int                                     // of the last prepared statement
	trips    int64                                   // round trips since the last use
}

// connect opens a connection.
func connect(ctx context.Context, cfg *config) (*conn, error) {
	pg, err := pgconn.ConnectConfig(ctx, cfg.Config)
	if err != nil {
		if ended := ctx.Err(); ended != nil {
			return nil, ended
		}
		return nil, &connectionError{doing: "connect to the database", err: err, fresh: true}
	}
	return &conn{pg: pg, unnamed: cfg.unnamed, prepared: map[string]*pgconn.StatementDescription{}}, nil
}

// broken reports whether the connection has ended.
func (c *conn) broken() bool { return c.pg.IsClosed() }

// usable reports whether another caller can use the connection.
func (c *conn) usable() bool {
	return !c.stale && !c.expired() && !c.broken() && c.pg.TxStatus() == 'I'
}

// expired reports whether a connection of the pool has reached its lifetime.
func (c *conn) expired() bool { return !time.Now().Before(c.ends) }

// close closes the connection. The server then ends its transaction.
func (c *conn) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = c.pg.Close(ctx) // an error while closing has no remedy
}

// script runs statements without parameters.
func (c *conn) script(ctx context.Context, text string) error {
	_, err := c.pg.Exec(ctx, text).ReadAll()
	return failed(ctx, c, err)
}

// query runs a statement.
func (c *conn) query(ctx context.Context, text string, args []any) (*rows, error) {
	r, err := c.execute(ctx, text, args)
	return r, c.checked(ctx, err)
}

// row runs a query that selects one row, and reads that. Only rows of the table meta can be missing:
// then row returns errNotMade.
func (c *conn) row(ctx context.Context, text string, args []any, dest ...any) error {
	r, err := c.query(ctx, text, args)
	if err != nil {
		return err
	}
	if !r.Next() {
		return errNotMade
	}
	return r.Scan(dest...)
}

func (c *conn) execute(ctx context.Context, text string, args []any) (*rows, error) {
	known, err := c.prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	values, formats, err := encodeAll(args, known.ParamOIDs)
	if err != nil {
		return nil, err
	}
	c.trips++
	if c.unnamed {
		return readRows(c.pg.ExecParams(ctx, text, values, known.ParamOIDs, formats, formatsOf(known)))
	}
	return readRows(c.pg.ExecStatement(ctx, known, values, formats, formatsOf(known)))
}

// A statement is SQL text of the server with its arguments.
type statement struct {
	text string
	args []any
	read func(rows engine.Rows) error // reads the rows of a statement of QueryLater; otherwise nil
}

// commitText ends a transaction. It is not prepared.
const commitText = `COMMIT`

func (st statement) commits() bool { return st.text == commitText }

func (st statement) isRead() bool { return st.read != nil }

// parameters are the encoded arguments of a statement.
type parameters struct {
	values  [][]byte
	formats []int16
}

// together runs the texts of opening, which have no parameters, and then statements, in one round
// trip. It returns the rows of each. With an error, it returns the rows of those before the failed one.
// Each statement that the connection has not prepared costs another round trip.
func (c *conn) together(ctx context.Context, opening []string, statements []statement) ([]*rows, error) {
	if len(opening) == 0 && len(statements) == 1 && !statements[0].commits() {
		r, err := c.query(ctx, statements[0].text, statements[0].args)
		if err != nil {
			return nil, err
		}
		return []*rows{r}, nil
	}
	// Encode first, so that nothing is sent if an argument is invalid.
	encoded := make([]parameters, len(statements))
	for i, st := range statements {
		if st.commits() {
			continue
		}
		known, err := c.prepare(ctx, st.text)
		if err != nil {
			return nil, c.checked(ctx, err)
		}
		if encoded[i].values, encoded[i].formats, err = encodeAll(st.args, known.ParamOIDs); err != nil {
			return nil, err
		}
	}
	p := c.pg.StartPipeline(ctx)
	for _, text := range opening {
		c.send(p, text, c.prepared[text], nil, nil)
	}
	for i, st := range statements {
		c.send(p, st.text, c.prepared[st.text], encoded[i].values, encoded[i].formats)
	}
	c.trips++
	results, err := c.results(p)
	return results, c.checked(ctx, err)
}

// send adds a statement to p. known is nil if the statement has no parameters and is not prepared.
func (c *conn) send(p *pgconn.Pipeline, text string, known *pgconn.StatementDescription, values [][]byte,
	formats []int16) {
	switch {
	case known == nil:
		p.SendQueryParams(text, nil, nil, nil, nil)
	case c.unnamed:
		p.SendQueryParams(text, values, known.ParamOIDs, formats, formatsOf(known))
	default:
		p.SendQueryStatement(known, values, formats, formatsOf(known))
	}
}

// results sends the statements in p and reads their results.
func (c *conn) results(p *pgconn.Pipeline) (list []*rows, err error) {
	if err = p.Sync(); err == nil {
		list, err = readAll(p)
	}
	if end := p.Close(); err == nil {
		err = end
	}
	return list, err
}

func readAll(p *pgconn.Pipeline) (list []*rows, err error) {
	for {
		result, err := p.GetResults()
		if err != nil {
			return list, err
		}
		reader, ok := result.(*pgconn.ResultReader)
		if !ok { // the response to Sync, or nothing because the connection ended
			return list, nil
		}
		r, err := readRows(reader)
		if err != nil {
			return list, err
		}
		list = append(list, r)
	}
}

// prepare returns the prepared statement for text, and prepares it if necessary.
func (c *conn) prepare(ctx context.Context, text string) (*pgconn.StatementDescription, error) {
	if known := c.prepared[text]; known != nil {
		return known, nil
	}
	c.trips++
	known, err := c.pg.Prepare(ctx, c.newName(), text, nil)
	if err != nil {
		return nil, err
	}
	c.keep(text, known)
	return known, nil
}

// newName returns the name of the next prepared statement.
func (c *conn) newName() string {
	c.serial++
	return c.name()
}

// name returns the name of the last prepared statement, or "" if no statement stays prepared.
func (c *conn) name() string {
	if c.unnamed {
		return ""
	}
	return "s" + strconv.Itoa(c.serial)
}

// keep stores a statement that was prepared with the last new name.
func (c *conn) keep(text string, known *pgconn.StatementDescription) {
	known.Name, known.SQL = c.name(), text
	c.prepared[text] = known
	c.stale = c.stale || len(c.prepared) > maxPrepared // rare: most texts are constants
}

// checked returns the error of a query. After an error about the connection's own state, it marks
// the connection as unusable.
func (c *conn) checked(ctx context.Context, err error) error {
	if codeOf(err) == codeNoStatement || isPlanChanged(err) {
		c.stale = true
	}
	return failed(ctx, c, err)
}

// formatsOf returns the requested formats of a statement's columns.
func formatsOf(known *pgconn.StatementDescription) []int16 {
	if len(known.Fields) == 0 {
		return nil
	}
	formats := make([]int16, len(known.Fields))
	for i := range known.Fields {
		formats[i] = formatOf(known.Fields[i].DataTypeOID)
	}
	return formats
}
