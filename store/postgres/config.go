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
	// defaultConns is the number of connections if the URL does not set it.
	defaultConns = 16
	// maxConns is the largest number of connections that a URL may set.
	maxConns = 1000
	// defaultLifetime is the age at which an idle connection is closed if the URL does not set it.
	defaultLifetime = time.Hour
	// connectTimeout limits the time to open a connection, unless the URL sets another limit.
	connectTimeout = 10 * time.Second
	// silence is the time without any data or acknowledgement from the other side after which a
	// connection ends.
	silence = 30 * time.Second
)

// A config contains the settings of a URL.
type config struct {
	*pgconn.Config
	conns int // connections of the pool
	// lifetime is the age at which a connection of the pool is closed, as soon as it is idle. A random
	// part of jitter is added, so that connections that were opened together do not end together.
	lifetime, jitter time.Duration
	// unnamed means that a proxy assigns a server connection only for each transaction. So prepared
	// statements and locks do not survive a transaction.
	unnamed bool
}

// parseConfig parses a URL such as postgres://user:password@host:5432/name. Its errors never
// contain a password.
func parseConfig(text string) (*config, error) {
	if !strings.HasPrefix(text, "postgres://") && !strings.HasPrefix(text, "postgresql://") {
		return nil, errors.New("the URL of the database must begin with postgres://")
	}
	base, err := pgconn.ParseConfig(text)
	if err != nil {
		return nil, hidden(text, err)
	}
	// The password contained an unencoded @ or /. A part of it was parsed as the host or database.
	if strings.Contains(base.Host+base.Database, "@") {
		return nil, errors.New(urlAdvice)
	}
	c := &config{Config: base, conns: defaultConns}
	if n := c.option("pool_max_conns"); n != "" {
		if c.conns, err = strconv.Atoi(n); err != nil || c.conns < 2 || c.conns > maxConns {
			return nil, fmt.Errorf("pool_max_conns in the URL of the database must be a number from 2 to %d", maxConns)
		}
	}
	if c.lifetime, err = c.duration("pool_max_conn_lifetime", defaultLifetime); err != nil {
		return nil, err
	}
	if c.jitter, err = c.duration("pool_max_conn_lifetime_jitter", c.lifetime/10); err != nil {
		return nil, err
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
	for name := range c.RuntimeParams { // settings of the unused pool of pgx
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

// duration is option for a setting that is a duration.
func (c *config) duration(name string, otherwise time.Duration) (time.Duration, error) {
	text := c.option(name)
	if text == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s in the URL of the database must be a duration such as 30m", name)
	}
	return d, nil
}

// option removes a setting that is not a server setting, and returns its value.
func (c *config) option(name string) string {
	value := c.RuntimeParams[name]
	delete(c.RuntimeParams, name)
	return value
}

// idleTime is the setting that limits how long a transaction may stay idle. An idle transaction
// keeps its locks, for example if the machine of its process is suspended. The values are in
// milliseconds. Processes that share a database wait for the lease of a dead one. An idle process
// must not block them for longer than that.
const (
	idleTime       = "idle_in_transaction_session_timeout"
	idleTimeAlone  = "60000"
	idleTimeShared = "10000"
)

// keepAlives makes the server end a connection, its transaction and its locks if the client
// disappears without closing it. A proxy would refuse the settings.
func (c *config) keepAlives() {
	for name, value := range map[string]string{
		"tcp_keepalives_idle":     "15",
		"tcp_keepalives_interval": "5",
		"tcp_keepalives_count":    "3",
		idleTime:                  idleTimeAlone,
	} {
		c.RuntimeParams[name] = cmp.Or(c.RuntimeParams[name], value)
	}
}

// useIndexes makes the server scan a whole table only if no index is usable. Scanning a small table
// is slightly faster. But then a serializable transaction conflicts with every change of that
// table. The setting makes the estimated cost of remaining scans very high, which would trigger JIT
// compilation. So useIndexes also disables JIT.
func (c *config) useIndexes() {
	for _, name := range []string{"enable_seqscan", "jit"} {
		c.RuntimeParams[name] = cmp.Or(c.RuntimeParams[name], "off")
	}
}

// urlAdvice is the error text for an invalid URL.
const urlAdvice = "the URL of the database cannot be read: it must be like " +
	"postgres://user:password@host:5432/name, with the special characters of the password percent-encoded"

// hidden returns the error for an invalid URL. It omits a reason that could contain a part of
// a password: pgx's own error quotes the URL.
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
