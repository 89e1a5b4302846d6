package command

import (
	"strings"
	"testing"

	"github.com/matryer/is"
)

// TestNodeFlags checks the flags of servers that share a database.
func TestNodeFlags(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("s", leastSecret)
	const url, database = "http://10.0.0.2:8080", "postgres://db.test/jm"
	for name, tt := range map[string]struct {
		url, secret, database string
		says                  string // "" for flags that are right
	}{
		"alone":                 {"", "", "", ""},
		"alone on a server":     {"", "", database, ""},
		"a node":                {url, secret, database, ""},
		"a node by TLS":         {"https://node.test", secret, database, ""},
		"a secret alone":        {"", secret, database, "--cluster-secret: needs --node-url"},
		"no secret":             {url, "", database, "--cluster-secret: must have at least 32 characters"},
		"a short secret":        {url, secret[1:], database, "--cluster-secret: must have at least 32 characters"},
		"no database":           {url, secret, "", "--node-url: needs --database"},
		"no URL":                {"10.0.0.2:8080", secret, database, "--node-url: must be http://"},
		"another scheme":        {"ftp://10.0.0.2", secret, database, "--node-url: must be http://"},
		"no host":               {"http://", secret, database, "--node-url: must be http://"},
		"a path":                {url + "/", secret, database, "--node-url: must be http://"},
		"a query":               {url + "?a=b", secret, database, "--node-url: must be http://"},
		"a fragment":            {url + "#a", secret, database, "--node-url: must be http://"},
		"a short lease":         {url, secret, database, "--node-lease: must be at least 3s"},
		"a user":                {"http://ann@10.0.0.2", secret, database, "--node-url: must be http://"},
		"what cannot be parsed": {"http://[::1", secret, database, "--node-url: must be http://"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			s := Settings{NodeFlags: NodeFlags{NodeURL: tt.url, ClusterSecret: tt.secret, NodeLease: leastLease}}
			if name == "a short lease" {
				s.NodeLease--
			}
			s.Database = tt.database
			node, err := s.node("1.2.3")
			if tt.says != "" {
				is.True(err != nil && strings.HasPrefix(err.Error(), tt.says))
				is.True(!strings.Contains(err.Error(), "sss")) // no secret in a message
				return
			}
			is.NoErr(err)
			is.Equal(node != nil, tt.url != "")
			if node != nil {
				is.Equal(node.URL, tt.url)
				is.Equal(node.Version, "1.2.3")
			}
		})
	}
}

// TestNodeName checks the names of the files that belong to one node.
func TestNodeName(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := Settings{}
	is.Equal(s.nodeName(), "")
	s.NodeURL = "http://10.0.0.2:8080"
	is.Equal(s.nodeName(), "10.0.0.2_8080")
	s.NodeURL = "https://[fd00::1]:443"
	is.Equal(s.nodeName(), "_fd00__1__443")
}
