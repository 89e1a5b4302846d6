package command_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/matryer/is"
)

// TestNodesFile requires that the example of several servers has three nodes with different addresses,
// which the load balancer knows, and that every variable belongs to a flag of the documentation.
func TestNodesFile(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	read := func(path string) string {
		b, err := os.ReadFile(path)
		is.NoErr(err)
		return string(b)
	}
	var file struct {
		Services map[string]struct {
			Environment map[string]string
			Secrets     []string
		}
		Secrets map[string]any
	}
	is.NoErr(yaml.Unmarshal([]byte(read("../../.package/nodes.yaml")), &file))
	flags, balancer := read("README.md"), read("../../.package/nodes-nginx.conf")
	addresses := map[string]bool{}
	for name, s := range file.Services {
		for _, secret := range s.Secrets {
			is.True(file.Secrets[secret] != nil) // a secret is not declared
		}
		address, ok := strings.CutPrefix(s.Environment["JOURNEYMAN_NODE_URL"], "http://")
		if !ok {
			continue
		}
		addresses[address] = true
		is.Equal(address, name+":8080")
		is.True(strings.Contains(balancer, "server "+address+" ")) // the balancer does not use the node
		for variable := range s.Environment {
			flag := strings.TrimSuffix(strings.TrimPrefix(variable, "JOURNEYMAN_"), "_FILE")
			flag = "`--" + strings.ToLower(strings.ReplaceAll(flag, "_", "-")) + "`"
			if !strings.Contains(flags, flag) {
				t.Errorf("%s: there is no flag %s", variable, flag)
			}
		}
	}
	is.Equal(len(addresses), 3)
	is.Equal(len(regexp.MustCompile(`(?m)^ *server .*:8080`).FindAllString(balancer, -1)), 3)
}
