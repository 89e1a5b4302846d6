package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// defaultConns is the number of connections of a URL that does not name one.
	defaultConns = 16
	// maxConns bounds the number that a URL may name.
	maxConns = 1000
	// connectTimeout bounds the making of a connection, if the URL does not.
	connectTimeout = 10 * time.Second
	// silence is the time after which a connection ends whose other side says nothing, and
	// acknowledges nothing.
	silence = 30 * time.Second
)

// A config is what a URL says.
type config struct {
	*pgconn.Config
	conns int // connections of the pool
	// unnamed means that a proxy shares the server's connections between transactions, so that a
	// connection can keep neither prepared statements nor locks.
	unnamed bool
}

// parseConfig reads a URL such as postgres://user:password@host:5432/name. No error contains a
// password.
func parseConfig(text string) (*config, error) {
	if !strings.HasPrefix(text, "postgres://") && !strings.HasPrefix(text, "postgresql://") {
		return nil, errors.New("the URL of the database must begin with postgres://")
	}
	base, err := pgconn.ParseConfig(text)
	if err != nil {
		return nil, hidden(text, err)
	}
	// The password held an unencoded @ or /, and a part of it became a part of something else.
	if strings.Contains(base.Host+base.Database, "@") {
		return nil, errors.New(urlAdvice)
	}
	c := &config{Config: base, conns: defaultConns}
	if n := c.option("pool_max_conns"); n != "" {
		if c.conns, err = strconv.Atoi(n); err != nil || c.conns < 2 || c.conns > maxConns {
			return nil, fmt.Errorf("pool_max_conns in the URL of the database must be a number from 2 to %d", maxConns)
		}
	}
	switch mode := c.option("default_query_exec_mode"); mode {
	case "", "cache_statement":
		c.keepAlives()
		c.useIndexes()
	case "cache_describe", "describe_exec", "exec":
		c.unnamed = true
	default:
		return nil, errors.New("default_query_exec_mode in the URL of the database must be cache_statement or " +
			"cache_describe")
	}
	for name := range c.RuntimeParams { // of pgx's own pool, which this package does not use
		if strings.HasPrefix(name, "pool_") || strings.HasSuffix(name, "_cache_capacity") {
			delete(c.RuntimeParams, name)
		}
	}
	c.RuntimeParams["application_name"] = cmp.Or(c.RuntimeParams["application_name"], "journeyman")
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, connectTimeout)
	c.DialFunc = (&net.Dialer{
		Timeout: c.ConnectTimeout, Control: giveUp,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence / 2, Interval: silence / 6, Count: 3},
	}).DialContext
	return c, nil
}

// option removes a setting, which is not one of the server's, and returns its value.
func (c *config) option(name string) string {
	value := c.RuntimeParams[name]
	delete(c.RuntimeParams, name)
	return value
}

// keepAlives has the server end a connection whose client has vanished without a word, with its
// transaction and its locks. A proxy would refuse the settings.
func (c *config) keepAlives() {
	for name, value := range map[string]string{
		"tcp_keepalives_idle":                 "15",
		"tcp_keepalives_interval":             "5",
		"tcp_keepalives_count":                "3",
		"idle_in_transaction_session_timeout": "60000",
	} {
		c.RuntimeParams[name] = cmp.Or(c.RuntimeParams[name], value)
	}
}

// useIndexes has the server read a whole table only where no index can be used. To read a small
// table as a whole is a little faster. But a serializable transaction that has done so conflicts
// with every change of the table. With that setting, the estimated cost of the rest is so high that
// the server would compile the plan first.
func (c *config) useIndexes() {
	for _, name := range []string{"enable_seqscan", "jit"} {
		c.RuntimeParams[name] = cmp.Or(c.RuntimeParams[name], "off")
	}
}

// urlAdvice is the error of a URL that cannot be read.
const urlAdvice = "the URL of the database cannot be read: it must be like " +
	"postgres://user:password@host:5432/name, with the special characters of the password percent-encoded"

// hidden returns the error of a URL that cannot be read. It contains the reason, unless that could
// contain a part of a password: pgx's own error quotes the URL.
func hidden(text string, err error) error {
	reason := errors.Unwrap(err)
	u, invalid := url.Parse(text)
	if reason == nil || invalid != nil {
		return errors.New(urlAdvice)
	}
	secrets := []string{u.Query().Get("password"), u.Query().Get("sslpassword")}
	if password, ok := u.User.Password(); ok {
		secrets = append(secrets, password)
	}
	for _, secret := range secrets {
		if secret != "" && strings.Contains(reason.Error(), secret) {
			return errors.New(urlAdvice)
		}
	}
	return fmt.Errorf("the URL of the database cannot be used: %s", reason)
}
