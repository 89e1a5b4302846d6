package command_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/matryer/is"
)

var (
	flagOfHelp = regexp.MustCompile(`(?m)^\s+(?:-\w, )?--([a-z-]+)=(\S+)`)
	secretFlag = regexp.MustCompile(`key|password|token|secret|relay$`)
)

// TestEverySecretMayComeFromAFile checks that each flag for a secret has a flag for a file.
func TestEverySecretMayComeFromAFile(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := invocation{}.run(t, "--help")
	flags := map[string]string{}
	for _, m := range flagOfHelp.FindAllStringSubmatch(p.stdout.String(), -1) {
		flags[m[1]] = m[2]
	}
	secrets := 0
	for name, holds := range flags {
		if !secretFlag.MatchString(name) || strings.Contains(holds,
			"FILE") || name == "mail-trusted-relay" { // this flag names networks
			continue
		}
		secrets++
		if !strings.Contains(flags[name+"-file"], "FILE") {
			t.Errorf("--%s has no --%s-file", name, name)
		}
	}
	is.Equal(secrets, 6)
	is.True(strings.Contains(strings.Join(strings.Fields(p.stdout.String()), " "), "see it in the list of processes"))
}

// TestSecretsFromFiles starts a server with all secrets in files and on the standard input. None is
// on its command line.
func TestSecretsFromFiles(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		is.NoErr(os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	key := "my-own-key-from-a-file"
	s := invocation{stdin: strings.NewReader("a-long-password\n"),
		env: []string{"JOURNEYMAN_METRICS_TOKEN_FILE=" + file("token", "metrics-token\r\n"),
			"JOURNEYMAN_SMTP_RELAY_FILE=" + file("relay",
				"smtp://me:relay-password@127.0.0.1:1\n")}}.serve(t, filepath.Join(dir, "data"), key,
		"--data", filepath.Join(dir, "data"), "--addr", "127.0.0.1:0", "--smtp-addr", "", "--api-key-file", file("key",
			key+"\n"), "--admin-password-file", "-",
		"--search-key-file", file("search", "x"))
	is.Equal(s.mustPost(t, "/api/tasks", map[string]any{"input": "hello"}).Status,
		"completed") // the key is that of the file
	stays := &http.Client{Transport: ownTransport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := stays.PostForm(s.url+"/sign-in", url.Values{"email": {"owner@localhost"},
		"password": {"a-long-password"}})
	is.NoErr(err)
	is.NoErr(resp.Body.Close())
	is.Equal(resp.StatusCode, http.StatusSeeOther) // the password is that of the standard input
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/metrics", nil)
	is.NoErr(err)
	req.Header.Set("Authorization", "Bearer metrics-token")
	resp, err = ownClient.Do(req)
	is.NoErr(err)
	is.NoErr(resp.Body.Close())
	is.Equal(resp.StatusCode, 200)
	for _, secret := range []string{key, "a-long-password", "relay-password"} {
		is.True(!strings.Contains(s.stdout.String()+s.stderr.String(), secret)) // no secret is printed
	}
}

// TestRefusedSecrets uses secrets that cannot be read. No error shows one.
func TestRefusedSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty, good := filepath.Join(dir, "empty"), filepath.Join(dir, "good")
	for path, content := range map[string]string{empty: "\n", good: "a-secret-of-a-file\n"} {
		is.New(t).NoErr(os.WriteFile(path, []byte(content), 0o600))
	}
	for name, tt := range map[string]struct {
		args []string
		env  string
		says string
	}{
		"missing": {args: []string{"--api-key-file", filepath.Join(dir, "none")},
			says: `--api-key-file: .*no such file`},
		"a folder": {args: []string{"--api-key-file", dir}, says: `--api-key-file: .*is a directory`},
		"empty": {args: []string{"--admin-password-file", empty},
			says: `--admin-password-file: .*empty is empty`},
		"nothing comes": {args: []string{"--metrics-token-file", "-"},
			says: `--metrics-token-file: standard input is empty`},
		"both": {args: []string{"--api-key", "another-key-of-mine", "--api-key-file", good},
			says: `--api-key and --api-key-file: give only one`},
		"both, environment": {args: []string{"--api-key-file", good}, env: "JOURNEYMAN_API_KEY=another-key-of-mine",
			says: `--api-key and --api-key-file: give only one`},
		"two of one input": {args: []string{"--api-key-file", "-", "--search-key-file", "-"},
			says: `only one of them can read standard input`},
		"provider's": {env: "OPENAI_API_KEY_FILE=" + empty, says: `OPENAI_API_KEY_FILE: .*empty is empty`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := invocation{dir: t.TempDir(), stdin: strings.NewReader(""), env: []string{"JOURNEYMAN_ADDR=127.0.0.1:0"}}
			if strings.Contains(tt.says, "only one of them can") {
				c.stdin = strings.NewReader("a-secret-of-a-file\n")
			}
			if tt.env != "" {
				c.env = append(c.env, tt.env)
			}
			p := c.run(t, tt.args...)
			p.exitedWith(t, 1, tt.says)
			for _, secret := range []string{"a-secret-of-a-file", "another-key-of-mine"} {
				if strings.Contains(p.stderr.String(), secret) {
					t.Errorf("the refusal shows a secret: %s", p.stderr.String())
				}
			}
		})
	}
}

// TestProviderKeyFromAFile reads the key of a provider from a file, as on container platforms.
func TestProviderKeyFromAFile(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	seen := make(chan string, 10)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("Authorization")
		http.Error(w, `{"error":{"message":"no","type":"invalid_request_error"}}`, http.StatusBadRequest)
	}))
	defer provider.Close()
	path := filepath.Join(t.TempDir(), "key")
	is.NoErr(os.WriteFile(path, []byte("sk-from-a-file\n"), 0o600))
	invocation{env: []string{"OPENAI_API_KEY_FILE=" + path, "OPENAI_BASE_URL=" + provider.URL}}.run(t, "--data",
		filepath.Join(t.TempDir(), "data"), "--model", "openai:x", "run", "hello")
	is.Equal(<-seen, "Bearer sk-from-a-file")
}
