package postgres_test

import (
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/engine"
	"journeyman/store/ordertest"
	"journeyman/store/postgres"
	"journeyman/store/postgres/pgtest"
)

// TestSecretsInErrors opens databases with unreachable or invalid URLs. No error may contain a part
// of the password.
func TestSecretsInErrors(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	is.New(t).NoErr(err)
	address := closed.Addr().String()
	_ = closed.Close()
	for name, url := range map[string]string{
		"no server":             "postgres://me:hush1hush@" + address + "/x?sslmode=disable",
		"no server, by option":  "postgres://me@" + address + "/x?sslmode=disable&password=hush1hush",
		"no name of the host":   "postgres://me:hush1hush@nobody.invalid/x",
		"bad port":              "postgres://me:hush1hush@localhost:port/x",
		"slash in the password": "postgres://me:hush1/hush@localhost/x",
		"at in the password":    "postgres://me:hush1@hush@localhost/x",
		"number and slash":      "postgres://me:123/hush@localhost/x",
		"question mark":         "postgres://me:hush1?hush@localhost/x",
		"colon":                 "postgres://me:hush1:hush@localhost:1/x",
		"two hosts":             "postgres://me:hush1hush@localhost:1,localhost:2/x",
		"hash in the password":  "postgres://me:hush1#hush@localhost/x",
		"percent":               "postgres://me:hush1%hush@localhost/x",
		"bad bracket":           "postgres://me:hush1hush@[::1/x",
		"bad sslmode":           "postgres://me:hush1hush@localhost/x?sslmode=hush1hush",
		"bad number":            "postgres://me:hush1hush@localhost/x?pool_max_conns=hush1",
		"bad lifetime":          "postgres://me:hush1hush@localhost/x?pool_max_conn_lifetime=hush1",
		"bad mode":              "postgres://me:hush1hush@localhost/x?default_query_exec_mode=hush1",
		"missing certificate":   "postgres://me:hush1hush@localhost/x?sslmode=verify-full&sslrootcert=/nowhere/ca.pem",
		"key and value":         "host=localhost user=me password=hush1hush",
		"other database":        "mysql://me:hush1hush@localhost/x",
		"line":                  "postgres://me:hush1hush@local\nhost/x",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			db, err := postgres.Open(t.Context(), url, schema, nil)
			if err == nil {
				_ = db.Close()
			}
			is.True(err != nil)
			is.True(!strings.Contains(err.Error(), "hush")) // no part of the password
			t.Log(err)
		})
	}
}

// TestURL opens databases with options in the URL.
func TestURL(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		options string
		says    string // of the error; "" for none
	}{
		"pool":                   {"&pool_max_conns=4&pool_max_conn_lifetime=1h&statement_cache_capacity=10", ""},
		"application":            {"&application_name=other", ""},
		"schema":                 {"&search_path=public", ""},
		"pool of one":            {"&pool_max_conns=1", "from 2 to 1000"},
		"no number":              {"&pool_max_conns=many", "from 2 to 1000"},
		"lifetime without unit":  {"&pool_max_conn_lifetime=60", "such as 30m"},
		"negative jitter":        {"&pool_max_conn_lifetime_jitter=-1s", "such as 30m"},
		"simple protocol":        {"&default_query_exec_mode=simple_protocol", "cache_statement"},
		"unknown option":         {"&no_such_option=1", "no_such_option"},
		"schema that is missing": {"&search_path=missing", "does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			db, err := postgres.Open(t.Context(), pgtest.URL(t)+tt.options, schema, nil)
			if err == nil {
				is.NoErr(db.Close())
			}
			is.Equal(err != nil, tt.says != "")
			is.True(err == nil || strings.Contains(err.Error(), tt.says))
		})
	}
}

// TestSchemaNames opens a database again whose tables are in a schema with a name that needs quotes.
func TestSchemaNames(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	for _, name := range []string{`"Jobs"`, `"a.b"`, `"12"`} {
		u := pgtest.URL(t)
		change(t, u, `CREATE SCHEMA `+name)
		for range 2 { // the second time, the tables are there
			db, err := postgres.Open(t.Context(), u+"&search_path="+url.QueryEscape(name), schema, nil)
			is.NoErr(err)
			sizes, err := db.TableSizes(t.Context())
			is.NoErr(err)
			ordertest.Above(is, len(sizes), 0)
			is.NoErr(db.Close())
		}
	}
}

// TestPlannerSettings reads the settings of a connection that affect plans. A URL may override
// them.
func TestPlannerSettings(t *testing.T) {
	t.Parallel()
	for options, want := range map[string]string{"": "off off", "&enable_seqscan=on&jit=on": "on on"} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			got, err := texts(t.Context(), openURL(t, pgtest.URL(t)+options),
				`SELECT current_setting('enable_seqscan') || ' ' || current_setting('jit')`)
			is.NoErr(err)
			is.Equal(got, []string{want})
		})
	}
}

// TestIdleTime reads the longest time for which a process may keep locks and do nothing. It is shorter if others
// share the database. A URL may override it.
func TestIdleTime(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	url := pgtest.URL(t)
	alone, err := postgres.Open(t.Context(), url, schema, nil)
	is.NoErr(err)
	is.Equal(idleTime(t, alone), "1min")
	is.NoErr(alone.Close())
	is.Equal(idleTime(t, openShared(t, url, first)), "10s")
	is.Equal(idleTime(t, openShared(t, url+"&idle_in_transaction_session_timeout=7000", first)), "7s")
}

func idleTime(t *testing.T, db *postgres.DB) string {
	t.Helper()
	is := is.New(t)
	list, err := texts(t.Context(), db, `SELECT current_setting('idle_in_transaction_session_timeout')`)
	is.NoErr(err)
	return list[0]
}

// TestLifetime uses a pool whose connections expire at once, and pools whose connections do not. In the
// first one, neither queries nor writes use a connection again, and idle connections are closed.
func TestLifetime(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		options string
		reused  bool
	}{
		"the default": {"", true},
		"at once":     {"&pool_max_conn_lifetime=1ns&pool_max_conn_lifetime_jitter=0s", false},
		"jitter":      {"&pool_max_conn_lifetime=1ns&pool_max_conn_lifetime_jitter=1000h", true},
		"long":        {"&pool_max_conn_lifetime=1000h&pool_max_conn_lifetime_jitter=0s", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			db := openURL(t, pgtest.URL(t)+tt.options)
			const own = `SELECT pg_backend_pid()`
			first, err := number(t.Context(), db, own)
			is.NoErr(err)
			var second int64
			is.NoErr(db.Write(t.Context(), engine.Serializable, func(tx engine.Tx) (err error) {
				second, err = number(t.Context(), tx, own)
				return err
			}))
			is.Equal(first == second, tt.reused)
			is.NoErr(idle(t.Context(), db, 5))
			eventually(t, "idle connections to end or to stay", func() bool {
				n, err := number(t.Context(), db, `SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database()`)
				return err == nil && (n >= 5) == tt.reused // the lock has a connection, too
			})
		})
	}
}

// TestUnreachable checks that the error for an unreachable database means "unavailable".
func TestUnreachable(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	u, err := url.Parse(pgtest.URL(t))
	is.NoErr(err)
	u.Host = "127.0.0.1:1"
	_, err = postgres.Open(t.Context(), u.String(), schema, nil)
	is.True(postgres.IsUnavailable(err))
}
