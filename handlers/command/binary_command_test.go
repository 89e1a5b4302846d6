package command_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/storetest"
)

func TestFirstStart(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := filepath.Join(t.TempDir(), "data") // the program creates it
	s := invocation{}.serve(t, dir, "", "--data", dir, "--addr", "127.0.0.1:0")
	is.Equal(strings.Count(s.awaitWelcome(t), s.key), 2) // the key, and the command line to copy
	is.True(!strings.Contains(s.stderr.String(), s.key)) // the log does not hold the key
	is.Equal(s.mustGet(t, "/api/me").ID, "")             // the key works
	v := runPasted(t, s)                                 // as a user would
	is.Equal(v.Status, "completed")                      // the first task
	is.True(strings.HasPrefix(v.ID, "wrk_"))
	info, err := os.Stat(dir)
	is.NoErr(err)
	is.Equal(info.Mode().Perm(), os.FileMode(0o700)) // the folder is private
	entries, err := os.ReadDir(dir)
	is.NoErr(err)
	for _, e := range entries {
		info, err := e.Info()
		is.NoErr(err)
		is.Equal(info.Mode().Perm()&0o077, os.FileMode(0)) // its files are private, too
	}
	s.stop(t)

	again := invocation{env: []string{"JOURNEYMAN_API_KEY="}}.serve(t, dir, s.key, "--data", dir, "--addr", "127.0.0.1:0")
	is.True(!strings.Contains(again.stdout.String(), "jm_live_")) // the key is shown only once
	is.Equal(runPasted(t, again).Status, "completed")             // the command line takes the key from the environment
}

// awaitWelcome returns everything that the program prints at its start.
func (s *instance) awaitWelcome(t *testing.T) string {
	t.Helper()
	return s.await(t, s.stdout, regexp.MustCompile(`(?s).*Try it:\n.*\n$`))[0]
}

// runPasted runs the suggested command line in a shell.
func runPasted(t *testing.T, s *instance) seenRun {
	t.Helper()
	_, line, _ := strings.Cut(s.awaitWelcome(t), "Try it:\n")
	sh := exec.Command("sh", "-c", line)
	sh.Env = programEnv("JOURNEYMAN_API_KEY=" + s.key)
	out, err := sh.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	var v seenRun
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return v
}

func TestOneProcessAFolder(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	s := serve(t, dir)
	invocation{}.run(t, "--data", dir, "--addr", "127.0.0.1:0").exitedWith(t, 1, `in use by another process`)
	invocation{}.run(t, "--data", dir, "run", "hello").exitedWith(t, 1, `curl `+regexp.QuoteMeta(s.url)+`/api/tasks`)
	is.Equal(s.mustPost(t, "/api/tasks", map[string]any{"input": "still there"}).Status, "completed")
}

func TestTakenPort(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	is := is.New(t)
	s := serve(t, t.TempDir())
	dir := filepath.Join(t.TempDir(), "data") // for a folder that is open to others, the program would print a second line
	address := strings.TrimPrefix(s.url, "http://")
	p := invocation{}.run(t, "--data", dir, "--addr", address)
	p.exitedWith(t, 1, `listen tcp `+regexp.QuoteMeta(address)+`: .*address already in use`)
	is.Equal(p.stdout.String(), "") // no key is lost: a successful start shows it
	s.stop(t)
	there := invocation{}.serve(t, dir, "", "--data", dir, "--addr", address) // the port is free at once
	is.Equal(there.url, s.url)
	is.True(there.key != "")
}

func TestRefusedCommandLines(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	is.New(t).NoErr(os.WriteFile(file, nil, 0o600))
	type line struct {
		args []string
		env  string
		says string
	}
	lines := map[string]line{
		"unknown flag":           {args: []string{"--bogus"}, says: `unknown flag --bogus`},
		"unknown command":        {args: []string{"dance"}, says: `unexpected argument dance`},
		"number":                 {args: []string{"--concurrency", "many"}, says: `--concurrency.*"?many`},
		"number in environment":  {env: "JOURNEYMAN_CONCURRENCY=many", says: `many`},
		"no concurrency":         {args: []string{"--concurrency", "0"}, says: `--concurrency.*at least 1`},
		"negative concurrency":   {args: []string{"--concurrency=-1"}, says: `--concurrency.*at least 1`},
		"no queue":               {args: []string{"--queue-limit=0"}, says: `--queue-limit.*at least 1`},
		"negative rate":          {args: []string{"--rate-limit=-1"}, says: `--rate-limit.*at least 0`},
		"negative grace":         {args: []string{"--grace=-1s"}, says: `--grace.*at least 0`},
		"negative mail keep":     {args: []string{"--mail-keep=-1"}, says: `--mail-keep.*at least 0`},
		"negative file size":     {args: []string{"--max-file-size=-1"}, says: `--max-file-size.*at least 1`},
		"negative budget":        {args: []string{"--budget-low-credits=-0.5"}, says: `--budget-low-credits.*at least 0`},
		"log level":              {args: []string{"--log-level", "loud"}, says: `--log-level must be one of`},
		"short key":              {args: []string{"--api-key", "short"}, says: `--api-key: .*16 to 1000 characters`},
		"key with a space":       {args: []string{"--api-key", "a key with some spaces"}, says: `--api-key: .*space`},
		"base url":               {args: []string{"--base-url", "not a url"}, says: `--base-url`},
		"base url with a query":  {args: []string{"--base-url", "https://h/jm?a=b"}, says: `--base-url: must have no query and no fragment`},
		"base url, empty query":  {args: []string{"--base-url", "https://h/jm?"}, says: `--base-url: must have no query and no fragment`},
		"base url, fragment":     {args: []string{"--base-url", "https://h/jm#"}, says: `--base-url: must have no query and no fragment`},
		"base url, password":     {args: []string{"--base-url", "https://u:p@h"}, says: `--base-url: must have no user and no password`},
		"base url, path":         {args: []string{"--base-url", "https://h/a;b"}, says: `--base-url: the path "/a;b" must have only`},
		"base url, dots":         {args: []string{"--base-url", "https://h/a/../b"}, says: `--base-url: the path`},
		"base url of a link":     {args: []string{"user", "reset", "ann@example.com", "--base-url", "https://h?x"}, says: `--base-url: must have no query`},
		"address":                {args: []string{"--addr", "nonsense"}, says: `listen tcp.*missing port`},
		"port":                   {args: []string{"--addr", "127.0.0.1:99999"}, says: `invalid port`},
		"mail domain":            {args: []string{"--mail-domain", "two words"}, says: `--mail-domain: .*"two words" is not a domain`},
		"model":                  {args: []string{"--model", "crystal:ball"}, says: `crystal`},
		"prices":                 {args: []string{"--prices", file + "-not"}, says: `no such file`},
		"prices not JSON":        {args: []string{"--prices", file}, says: `file`},
		"folder is a file":       {args: []string{"--data", file}, says: `data folder: .*not a directory`},
		"revoke without a key":   {args: []string{"key", "revoke"}, says: `expected "<key>"`},
		"create without a name":  {args: []string{"key", "create"}, says: `--name`},
		"create with a bad role": {args: []string{"key", "create", "--name", "n", "--role", "king"}, says: `--role must be one of "owner","admin","member" but`},
		"keys of no server":      {args: []string{"key", "list"}, says: `there is no data in \./data: name the folder`},
		"run without words":      {args: []string{"run"}, says: `expected "<instruction>"`},
		"run with empty words":   {args: []string{"run", ""}, says: `input.*required`},
		"run with no such file":  {args: []string{"run", "read it", "--file", file + "-not"}, says: `no such file|does not exist`},
		"run with a folder":      {args: []string{"run", "read it", "--file", filepath.Dir(file)}, says: `is a directory`},
		"run with a bad budget":  {args: []string{"run", "hello", "--budget", "huge"}, says: `--budget must be one of`},
		"run with no such model": {args: []string{"--model", "crystal:ball", "run", "hello"}, says: `crystal`},
		"run with no worker":     {args: []string{"run", "hello", "--worker", "wrk_none"}, says: `no worker`},
	}
	for i, name := range slices.Sorted(maps.Keys(lines)) {
		if i%3 != 0 && storetest.Rounds(1, 0) == 0 {
			continue // each is a start of the program
		}
		tt := lines[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := invocation{dir: t.TempDir(), env: []string{"JOURNEYMAN_ADDR=127.0.0.1:0"}}
			if tt.env != "" {
				c.env = append(c.env, tt.env)
			}
			c.run(t, tt.args...).exitedWith(t, 1, `^journeyman: .*(?:`+tt.says+`)`)
		})
	}
}

func TestKeyCommands(t *testing.T) {
	t.Parallel()
	for name, beside := range map[string]bool{"beside a server": true, "on a stopped folder": false} {
		t.Run(name, func(t *testing.T) {
			if !beside {
				storetest.Slow(t) // three servers; TestFirstSignIn has commands on a stopped folder, too
			}
			t.Parallel()
			is := is.New(t)
			dir := t.TempDir()
			s := serve(t, dir)
			if !beside {
				s.stop(t)
			}
			key := func(args ...string) string {
				t.Helper()
				p := invocation{}.run(t, append([]string{"--data", dir, "key"}, args...)...)
				if p.wait(t) != 0 || p.stderr.String() != "" {
					t.Fatalf("key %v: %s", args, p.stderr)
				}
				return p.stdout.String()
			}
			secret := strings.TrimSuffix(key("create", "--name", "robot", "--user", "robot@example.org", "--role", "member"), "\n")
			is.True(regexp.MustCompile(`^jm_live_[A-Za-z0-9_-]{43}$`).MatchString(secret)) // the only line on stdout
			list := key("list")
			is.True(regexp.MustCompile(`(?m)^key_\S+ +robot .*robot@example\.org +member`).MatchString(list))
			is.True(!strings.Contains(list, secret)) // the list does not show the key
			if !beside {
				s = serve(t, dir)
			}
			is.Equal(statusAs(t, s, secret), http.StatusOK)
			if !beside {
				s.stop(t)
			}
			successor := strings.TrimSuffix(key("roll", secret), "\n")
			is.True(regexp.MustCompile(`(?m)^key_\S+ +robot .*expires `).MatchString(key("list")))
			is.True(strings.HasPrefix(key("revoke", secret), "revoked key_"))
			for says, args := range map[string][]string{`no API key`: {"roll", "jm_live_unknown_to_all"}, `no API key has`: {"revoke", "jm_live_unknown_to_all"},
				`no organization is named "Nobody"`: {"list", "--org", "Nobody"}} {
				invocation{}.start(t, append([]string{"--data", dir, "key"}, args...)...).exitedWith(t, 1, says)
			}
			if !beside {
				s = serve(t, dir)
			}
			is.Equal(statusAs(t, s, secret), http.StatusUnauthorized) // at once
			is.Equal(statusAs(t, s, testKey), http.StatusOK)
			is.Equal(statusAs(t, s, successor), http.StatusOK)
			is.True(regexp.MustCompile(`(?m)^key_\S+ +robot .*revoked`).MatchString(key("list")))
		})
	}
}

func statusAs(t *testing.T, s *instance, key string) int {
	t.Helper()
	as := *s
	as.key = key
	a, err := as.send(t.Context(), http.MethodGet, "/api/me", nil)
	is.New(t).NoErr(err)
	return a.status
}

// isOrdered checks that the parts occur in a text in this order.
func isOrdered(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		_, after, found := strings.Cut(text, part)
		if !found {
			t.Errorf("the text lacks %q, or has it too early", part)
			return
		}
		text = after
	}
}

func TestPrintingCommands(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := invocation{dir: t.TempDir()}
	print := func(args ...string) string {
		t.Helper()
		p := c.run(t, args...)
		if p.wait(t) != 0 || p.stderr.String() != "" {
			t.Fatalf("%v: %s", args, p.stderr)
		}
		return p.stdout.String()
	}
	version := print("version")
	is.True(regexp.MustCompile(`^journeyman \d+\.\d+\.\d+\n  commit +`).MatchString(version)) // the first line is the version
	var build struct{ Version string }
	is.NoErr(json.Unmarshal([]byte(print("version", "--json")), &build))
	var doc struct {
		OpenAPI string                   `json:"openapi"`
		Info    struct{ Version string } `json:"info"`
		Paths   map[string]any           `json:"paths"`
	}
	is.NoErr(json.Unmarshal([]byte(print("openapi")), &doc))
	is.Equal(doc.OpenAPI, "3.1.0")
	is.Equal(doc.Info.Version, build.Version) // the description is that of this program
	is.True(doc.Paths["/api/tasks"] != nil)
	help := print("--help")
	for _, flag := range []string{"--addr", "--data", "--base-url", "--api-key", "--rate-limit", "--concurrency", "--model", "--grace",
		"JOURNEYMAN_ADDR", "JOURNEYMAN_DATA", "key create", "run", "openapi", "version"} {
		if !strings.Contains(help, flag) {
			t.Errorf("--help does not tell of %s", flag)
		}
	}
	isOrdered(t, help, "Commands:", "key create", "Flags:", "--addr", "--base-url", "Flags of all commands:", "--data", "--model",
		"--concurrency")
	isOrdered(t, print("run", "--help"), "<instruction>", "Flags:", "--file", "--ask", "Flags of all commands:", "Show this help.",
		"--data", "--model", "--config", "--timezone", "--log-level", "--database")
	entries, err := os.ReadDir(c.dir)
	is.NoErr(err)
	is.Equal(len(entries), 0) // the commands create no data folder
}

func TestEnvironmentEqualsFlags(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	c := invocation{env: []string{"JOURNEYMAN_DATA=" + dir, "JOURNEYMAN_ADDR=127.0.0.1:0", "JOURNEYMAN_API_KEY=a key without",
		"JOURNEYMAN_BASE_URL=https://jobs.example.org/", "JOURNEYMAN_RATE_LIMIT=0", "JOURNEYMAN_MAX_FILE_SIZE=3"}}
	c.env[2] = "JOURNEYMAN_API_KEY=jm_live_of_the_environment"
	p := c.start(t)
	p.await(t, p.stdout, regexp.MustCompile(`serves on https://jobs\.example\.org\n`))
	p.stop(t)
	p = c.start(t, "--base-url", "https://flag.example.org") // a flag overrides the environment
	p.await(t, p.stdout, regexp.MustCompile(`serves on https://flag\.example\.org\n`))
	p.stop(t)
	s := serve(t, dir)
	is.Equal(statusAs(t, s, "jm_live_of_the_environment"), http.StatusOK)
}

func TestUnusualFolders(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	storetest.Embedded(t)
	for name, dir := range map[string]string{
		"long":             strings.Repeat("a-folder-with-a-rather-long-name/", 12),
		"odd":              "a b/c%20d/e?f#g/'quoted'/ünïcode",
		"sqlite parameter": "x?mode=ro&_pragma=query_only(1)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			dir := filepath.Join(t.TempDir(), dir)
			s := serve(t, dir)
			is.Equal(s.mustPost(t, "/api/tasks", map[string]any{"input": offlineScript(`tool write_file {"path":"a.txt","content":"x"}`,
				`tool publish_file {"path":"a.txt"}`, "say done")}).OutputText, "done")
			p := invocation{}.run(t, "--data", dir, "key", "create", "--name", "beside") // through the socket
			is.Equal(p.wait(t), 0)
			is.Equal(statusAs(t, s, strings.TrimSpace(p.stdout.String())), http.StatusOK)
			s.stop(t)
			_, err := os.Stat(filepath.Join(dir, "journeyman.db"))
			is.NoErr(err) // the data is in this folder
		})
	}
}

func TestUnwritableFolder(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	is := is.New(t)
	// Root may write anywhere, so the program runs as another user, who may be unable to enter t.TempDir.
	top, err := os.MkdirTemp("/tmp", "journeyman-unwritable-") //nolint:usetesting
	is.NoErr(err)
	defer os.RemoveAll(top)
	is.NoErr(os.Chmod(top, 0o755))
	dir, program := filepath.Join(top, "closed"), filepath.Join(top, "journeyman")
	is.NoErr(os.Mkdir(dir, 0o500))
	// If this process wrote the copy, a process that starts meanwhile could keep it open and so busy.
	is.NoErr(exec.Command("cp", programPath(t), program).Run())
	cmd := exec.Command(program, "--data", dir, "--addr", "127.0.0.1:0")
	cmd.Dir = top
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	cmd.Env = programEnv()
	out, err := cmd.CombinedOutput()
	is.True(err != nil)
	is.True(regexp.MustCompile(`^journeyman: open lock file: .*permission denied\n$`).MatchString(string(out)))
	is.Equal(cmd.ProcessState.ExitCode(), 1)
}

func TestStartAgainOnTheSamePort(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	s := serve(t, dir)
	v := s.mustPost(t, "/api/tasks", map[string]any{"input": offlineScript("say first")})
	conn, err := s.open(context.WithoutCancel(t.Context()), http.MethodGet, "/api/workers/"+v.ID+"/stream", nil)
	is.NoErr(err)
	s.kill() // with an open connection, which the kernel keeps for a while
	is.NoErr(conn.Body.Close())
	again := serve(t, dir, "--addr", strings.TrimPrefix(s.url, "http://"))
	is.Equal(again.url, s.url)
	is.Equal(again.ended(t, v).OutputText, "first")
}
