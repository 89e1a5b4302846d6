package postgres

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

// maxPrepared bounds the statements that a connection keeps prepared.
const maxPrepared = 1000

// A conn is a connection of the pool. One goroutine at a time uses it.
type conn struct {
	pg      *pgconn.PgConn
	unnamed bool // no statement stays prepared; the types of its parameters and columns are kept
	reused  bool // it was idle since its last use, so the server may have ended it
	stale   bool // it must not be used again

	prepared map[string]*pgconn.StatementDescription // by text; without a name if no statement stays prepared
	serial   int                                     // of the name of the last prepared statement
	trips    int64                                   // round trips since the last use
}

// connect makes a connection.
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
func (c *conn) usable() bool { return !c.stale && !c.broken() && c.pg.TxStatus() == 'I' }

// close ends the connection. The server ends its transaction.
func (c *conn) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = c.pg.Close(ctx) // nothing can be done about a connection that does not end well
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

// A statement is a text of the server's SQL with its arguments.
type statement struct {
	text string
	args []any
}

// commitText ends a transaction. It is not prepared.
const commitText = `COMMIT`

func (st statement) commits() bool { return st.text == commitText }

// parameters are the arguments of a statement as they are sent.
type parameters struct {
	values  [][]byte
	formats []int16
}

// together runs the texts of opening, which have no parameters, and then statements, all in one round
// trip. It returns the rows of each. A statement that the connection has not prepared costs one more.
func (c *conn) together(ctx context.Context, opening []string, statements []statement) ([]*rows, error) {
	if len(opening) == 0 && len(statements) == 1 && !statements[0].commits() {
		r, err := c.query(ctx, statements[0].text, statements[0].args)
		return []*rows{r}, err
	}
	// First, so that nothing has been sent if an argument cannot be.
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

// send adds a statement to p. known is nil for one that has no parameters and is not prepared.
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

// results sends what p holds and reads its results.
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
			return nil, err
		}
		reader, ok := result.(*pgconn.ResultReader)
		if !ok { // the answer to Sync, or none because the connection ended
			return list, nil
		}
		r, err := readRows(reader)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
}

// prepare returns a prepared statement.
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

// name returns the name of the statement that was prepared last: "" if none stays prepared.
func (c *conn) name() string {
	if c.unnamed {
		return ""
	}
	return "s" + strconv.Itoa(c.serial)
}

// keep remembers a statement that was prepared under the last new name.
func (c *conn) keep(text string, known *pgconn.StatementDescription) {
	known.Name, known.SQL = c.name(), text
	c.prepared[text] = known
	c.stale = c.stale || len(c.prepared) > maxPrepared // few texts are put together while the program runs
}

// checked returns the error of a query. After an error of the connection's own state, the
// connection is not used again.
func (c *conn) checked(ctx context.Context, err error) error {
	switch codeOf(err) {
	case codeNoStatement, codePlanChanged:
		c.stale = true
	}
	return failed(ctx, c, err)
}

// formatsOf returns the formats in which the columns of a statement are asked for.
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
