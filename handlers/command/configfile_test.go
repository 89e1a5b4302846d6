package command_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers/command"
)

// settings has flags of each kind.
type settings struct {
	Config string
	Size   int           `default:"5" min:"3"`
	Ratio  float64       `min:"0"`
	Grace  time.Duration `default:"10s"`
	Level  string        `enum:"low,high" default:"low"`
	Quiet  bool
	Hosts  []string
	Parts  []string `sep:"none"`
	Mail   *string
	Token  string `secret:"the token"`

	Serve struct {
		Addr string `default:"here"`
	} `cmd:"" default:"withargs"`
	Other struct {
		Name string
	} `cmd:""`
}

// parse parses a command line with a configuration file.
func parse(t *testing.T, file string, mode os.FileMode, args ...string) (s settings, inv *command.Invocation, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journeyman.yaml")
	is.New(t).NoErr(os.WriteFile(path, []byte(file), mode))
	inv, err = command.Parse(&s, append([]string{"--config", path}, args...), strings.NewReader(""))
	return s, inv, err
}

func TestConfigFile(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s, inv, err := parse(t, `# what an operator writes
size: 7
ratio: 0.5
grace: 1m30s
level: high
quiet: true
hosts:
  - one
  - "two, with a comma"
parts: [a, "b,c"]
mail: ""
token: 0012   # as it stands here
addr: there
name: of another command
`, 0o600)
	is.NoErr(err)
	is.Equal(s.Size, 7)
	is.Equal(s.Ratio, 0.5)
	is.Equal(s.Grace, 90*time.Second)
	is.Equal(s.Level, "high")
	is.True(s.Quiet)
	is.Equal(s.Hosts, []string{"one", "two, with a comma"})
	is.Equal(s.Parts, []string{"a", "b,c"})
	is.True(s.Mail != nil && *s.Mail == "") // an empty text differs from an absent one
	is.Equal(s.Token, "0012")
	is.Equal(s.Serve.Addr, "there") // of the chosen command
	is.Equal(s.Other.Name, "")      // not of another command
	is.Equal(len(inv.Warnings), 0)

	s, inv, err = parse(t, "size: 7\ngrace: 1m\n", 0o644, "--size", "8", "other")
	is.NoErr(err)
	is.Equal(s.Size, 8) // the command line overrides the file
	is.Equal(s.Grace, time.Minute)
	is.Equal(len(inv.Warnings), 0) // the file holds no secret

	_, inv, err = parse(t, "token: abc\n", 0o644)
	is.NoErr(err)
	is.Equal(len(inv.Warnings), 1) // others can read the secret
	is.True(strings.HasSuffix(inv.Warnings[0], "which holds secrets (token): chmod o-r"))
	is.True(!strings.Contains(inv.Warnings[0], "abc"))

	for _, empty := range []string{"", "# nothing yet\n", "---\n"} {
		_, _, err = parse(t, empty, 0o600)
		is.NoErr(err)
	}
}

// TestConfigFileYields sets a flag in the file and in the environment, and a secret in the file and
// by a file name in the environment.
func TestConfigFileYields(t *testing.T) {
	is := is.New(t)
	secret := filepath.Join(t.TempDir(), "token")
	is.NoErr(os.WriteFile(secret, []byte("of the file\n"), 0o600))
	t.Setenv("JOURNEYMAN_SIZE", "9")
	t.Setenv("JOURNEYMAN_TOKEN_FILE", secret)
	s, _, err := parse(t, "size: 7\ntoken: of the configuration\n", 0o600)
	is.NoErr(err)
	is.Equal(s.Size, 9)
	is.Equal(s.Token, "of the file")

	// A credential of systemd is used if nothing else sets the secret.
	t.Setenv("JOURNEYMAN_TOKEN_FILE", "")
	t.Setenv("CREDENTIALS_DIRECTORY", filepath.Dir(secret))
	s, _, err = parse(t, "", 0o600)
	is.NoErr(err)
	is.Equal(s.Token, "of the file")
	s, _, err = parse(t, "", 0o600, "--token", "given")
	is.NoErr(err)
	is.Equal(s.Token, "given")
}

func TestRefusedConfigFile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ file, says string }{
		"unknown":          {"sise: 3\n", `line 1: sise: is no flag; did you mean size?`},
		"unlike any":       {"\nxylophone-colour: 3\n", `line 2: xylophone-colour: is no flag; journeyman --help lists them`},
		"itself":           {"config: a.yaml\n", `line 1: config: cannot be set in the file`},
		"whole number":     {"size: many\n", `line 1: size: must be a whole number`},
		"fraction":         {"size: 3.5\n", `line 1: size: must be a whole number`},
		"number":           {"ratio: much\n", `line 1: ratio: must be a number`},
		"too small":        {"size: 2\n", `line 1: size: must be at least 3`},
		"duration":         {"grace: 10\n", `line 1: grace: must be a duration such as 90s or 2h30m`},
		"truth":            {"quiet: perhaps\n", `line 1: quiet: must be true or false`},
		"enum":             {"level: middle\n", `line 1: level: must be one of low, high`},
		"list":             {"level: [low]\n", `line 1: level: must be one value, not a list`},
		"list in a list":   {"hosts: [[a]]\n", `line 1: hosts: must be a text, a number, true or false, or a list of them`},
		"section":          {"size:\n  low: 3\n", `line 1: size: must be a text, a number, true or false`},
		"nothing":          {"token:\n", `line 1: token: has no value: write "" for an empty text`},
		"twice":            {"size: 3\nquiet: true\nsize: 4\n", `line 3: size: is already set in line 1`},
		"all faults":       {"size: x\nlevel: y\n", `line 1: size: must be a whole number; line 2: level: must be one of`},
		"alias":            {"size: &a 3\ntoken: *a\n", `line 1: size: must be a text, a number`},
		"no mapping":       {"- size\n", `line 1: must be NAME: VALUE`},
		"no YAML":          {"size: [\n", `not valid YAML`},
		"two documents":    {"size: 3\n---\nsize: 4\n", `must hold one YAML document`},
		"secret not shown": {"token: [hunter2]\n", `line 1: token: must be one value, not a list`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			_, _, err := parse(t, tt.file, 0o600)
			is.True(err != nil) // the file is refused
			is.True(regexp.MustCompile(`^--config: \S+journeyman\.yaml: `+regexp.QuoteMeta(tt.says)).MatchString(err.Error()) ||
				strings.Contains(err.Error(), "journeyman.yaml: ") && strings.HasSuffix(err.Error(), tt.says)) // with file, line and rule
			is.True(!strings.Contains(err.Error(), "hunter2"))
			is.True(!strings.Contains(err.Error(), "\n"))
		})
	}
	_, err := command.Parse(new(settings), []string{"--config", filepath.Join(t.TempDir(), "none.yaml")}, nil)
	is.New(t).True(err != nil && strings.Contains(err.Error(), "no such file")) // a missing file is an error
}

// TestServeWithConfigFile starts a server with all flags in a file that the environment names, and
// refuses a file with a misspelt flag.
func TestServeWithConfigFile(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "journeyman.yaml")
	config := "data: " + filepath.Join(dir, "data") + "\naddr: 127.0.0.1:0\nsmtp-addr: \"\"\napi-key: " + testKey +
		"\nadmin-password: 0048271933\nmetrics-token: metrics-token\nmodel: offline\nbudget-low-steps: 3\n" +
		"trusted-proxy:\n  - 10.0.0.0/8\nlog-format: json\nlog-level: info\n"
	is.NoErr(os.WriteFile(path, []byte(config), 0o604))
	c := invocation{env: []string{"JOURNEYMAN_CONFIG=" + path}}
	s := c.serve(t, "", testKey)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/metrics", nil)
	is.NoErr(err)
	req.Header.Set("Authorization", "Bearer metrics-token")
	resp, err := s.http.Do(req)
	is.NoErr(err)
	is.NoErr(resp.Body.Close())
	is.Equal(resp.StatusCode, http.StatusOK)
	s.await(t, s.stderr, regexp.MustCompile(`other users of this machine can read \S+, which holds secrets \(admin-password, api-key, metrics-token\)`))
	is.True(!strings.Contains(s.stderr.String(), testKey))
	list := c.run(t, "user", "list") // other commands use the same data folder
	is.Equal(list.cmd.ProcessState.ExitCode(), 0)
	s.stop(t)

	is.NoErr(os.WriteFile(path, []byte(config+"max-conections: 3\n"), 0o600))
	c.start(t).exitedWith(t, 1, `line 13: max-conections: is no flag; did you mean max-connections\? \(see --help\)$`)
}

// TestEnvironmentNames sets flags by the variables that their names promise, also where a name has
// a digit.
func TestEnvironmentNames(t *testing.T) { // not parallel: it sets variables
	for variable, want := range map[string]string{
		"JOURNEYMAN_PLACE_S3_REGION": "a value,",
		"JOURNEYMAN_PLACE_S3_KEY":    ",a value",
		"JOURNEYMAN_OTHER":           ",",
	} {
		t.Run(variable, func(t *testing.T) {
			is := is.New(t)
			t.Setenv(variable, "a value")
			var s struct {
				PlaceS3Region string `name:"place-s3-region"`
				PlaceS3Key    string `name:"place-s3-key" secret:"the key"`
			}
			_, err := command.Parse(&s, nil, strings.NewReader(""))
			is.NoErr(err)
			is.Equal(s.PlaceS3Region+","+s.PlaceS3Key, want)
		})
	}
	is := is.New(t)
	t.Setenv("JOURNEYMAN_PLACE_S3_KEY_FILE", "-")
	var s struct {
		Key string `name:"place-s3-key" secret:"the key"`
	}
	_, err := command.Parse(&s, nil, strings.NewReader("from a file\n"))
	is.NoErr(err)
	is.Equal(s.Key, "from a file")
}
