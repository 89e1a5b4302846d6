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
	if c.unnamed {
		return readRows(c.pg.ExecParams(ctx, text, values, known.ParamOIDs, formats, formatsOf(known)))
	}
	return readRows(c.pg.ExecStatement(ctx, known, values, formats, formatsOf(known)))
}

// begin begins a transaction by the texts of opening, and runs its first statement, in one round
// trip if that is prepared. It returns the rows of the last opening text, too.
func (c *conn) begin(ctx context.Context, opening []string, text string, args []any) (last, r *rows, err error) {
	known := c.prepared[text]
	var values [][]byte
	var formats []int16
	if known != nil {
		if values, formats, err = encodeAll(args, known.ParamOIDs); err != nil {
			return nil, nil, err
		}
	}
	p := c.pg.StartPipeline(ctx)
	for _, o := range opening {
		c.send(p, o, c.prepared[o], nil, nil)
	}
	if known != nil {
		c.send(p, text, known, values, formats)
	} else {
		p.SendPrepare(c.newName(), text, nil)
	}
	results, err := c.results(p, text)
	if err != nil {
		return nil, nil, c.checked(ctx, err)
	}
	last = results[len(opening)-1]
	if len(results) > len(opening) {
		return last, results[len(opening)], nil
	}
	r, err = c.query(ctx, text, args)
	return last, r, err
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

// results sends what p holds and reads its results. It remembers text as prepared if p prepares it.
func (c *conn) results(p *pgconn.Pipeline, text string) (list []*rows, err error) {
	if err = p.Sync(); err == nil {
		list, err = c.read(p, text)
	}
	if end := p.Close(); err == nil {
		err = end
	}
	return list, err
}

func (c *conn) read(p *pgconn.Pipeline, text string) (list []*rows, err error) {
	for {
		result, err := p.GetResults()
		if err != nil {
			return nil, err
		}
		switch result := result.(type) {
		case *pgconn.ResultReader:
			r, err := readRows(result)
			if err != nil {
				return nil, err
			}
			list = append(list, r)
		case *pgconn.StatementDescription:
			c.keep(text, result)
		default: // the answer to Sync, or none because the connection ended
			return list, nil
		}
	}
}

// prepare returns a prepared statement.
func (c *conn) prepare(ctx context.Context, text string) (*pgconn.StatementDescription, error) {
	if known := c.prepared[text]; known != nil {
		return known, nil
	}
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
