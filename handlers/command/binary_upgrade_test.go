package command_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
)

// An installation is a binary for upgrades, with its data folder.
type installation struct {
	dir, path, data string
}

// install copies the program to a new folder. Its data folder has a database.
func install(t *testing.T) installation {
	t.Helper()
	dir := t.TempDir()
	in := installation{dir, filepath.Join(dir, "journeyman"), filepath.Join(dir, "data")}
	copyProgram(t, in.path)
	if err := os.Mkdir(in.data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(in.data, databaseName), firstDatabase(t), 0o600); err != nil {
		t.Fatal(err)
	}
	return in
}

func copyProgram(t *testing.T, to string) {
	t.Helper()
	if err := exec.Command("cp", programPath(t), to).Run(); err != nil { // cp shares blocks
		t.Fatal(err)
	}
}

// newer writes a script that reports a newer version. It runs the given lines of shell, and then
// the program.
func (in installation) newer(t *testing.T, lines string) string {
	t.Helper()
	path := filepath.Join(in.dir, "next")
	script := fmt.Sprintf("#!/bin/sh\nset -e\nif [ \"$1\" = version ]; then\n"+
		"  echo '{\"version\":\"9.9.9\",\"database\":%d}'; exit 0\nfi\n%s\nexec %q \"$@\"\n",
		store.NewestVersion()+1, lines, programPath(t))
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// upgrade runs the installed binary's command "upgrade".
func (in installation) upgrade(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, in.path, append([]string{"upgrade", "--data", in.data}, args...)...)
	cmd.Env, cmd.WaitDelay = programEnv("PATH="+in.dir+":"+os.Getenv("PATH")), time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// version runs the installed binary, which must always work.
func (in installation) version(t *testing.T) string {
	t.Helper()
	out, err := exec.Command(in.path, "version", "--json").Output()
	if err != nil {
		t.Fatalf("no binary that runs: %v", err)
	}
	return regexp.MustCompile(`"version":"([^"]*)"`).FindStringSubmatch(string(out))[1]
}

// upgradesDatabase is the first step of a newer program, in shell: it copies the database, and
// writes its version into the header.
var upgradesDatabase = fmt.Sprintf(`cp "$4/journeyman.db" "$4/journeyman.db.v%d"
printf '\%03o' | dd of="$4/journeyman.db" bs=1 seek=63 conv=notrunc 2>/dev/null
`, store.NewestVersion(), store.NewestVersion()+1)

func TestUpgradeOfAStoppedFolder(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	for name, tt := range map[string]struct {
		lines   string // of the new program
		version string // of the binary afterwards, "" for the old one
		prints  string
	}{
		"good":                {"", "9.9.9", "upgraded to 9.9.9"},
		"fails at the start":  {"echo it is broken >&2; exit 3", "", "it is broken"},
		"upgrades, then dies": {upgradesDatabase + "exit 4", "", "the newer one is"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "fails at the start" {
				storetest.Slow(t) // "upgrades, then dies" goes back to the old program, too
			}
			t.Parallel()
			is := is.New(t)
			in := install(t)
			old := in.version(t)
			out, err := in.upgrade(t.Context(), "--from", in.newer(t, tt.lines))
			is.True(strings.Contains(out, tt.prints)) // the output names the result
			want := tt.version
			if want == "" {
				want = old
			}
			is.Equal(err == nil, tt.version != "") // a rolled back upgrade is a failure
			is.Equal(in.version(t), want)
			_, err = os.Stat(in.path + ".new")
			is.True(os.IsNotExist(err)) // no file of the attempt is left
			_, err = os.Stat(in.data + ".before-upgrade.tgz")
			is.NoErr(err)
			storetest.Sound(t, in.data)
		})
	}
}

func TestUpgradeRefuses(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	is := is.New(t)
	in := install(t)
	old, err := os.ReadFile(in.path)
	is.NoErr(err)
	write := func(name, content string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(in.dir, name)
		is.NoErr(os.MkdirAll(filepath.Dir(path), 0o700))
		is.NoErr(os.WriteFile(path, []byte(content), mode))
		return path
	}
	tooOld := "#!/bin/sh\necho '{\"version\":\"0.0.1\",\"database\":1}'\n"
	wrong := strings.Repeat("0", 64) + "  next\n"
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"nothing named":      {nil, "--from"},
		"no file":            {[]string{"--from", filepath.Join(in.dir, "none")}, "no such file"},
		"no program":         {[]string{"--from", write("text", "hello", 0o644)}, "cannot run"},
		"another program":    {[]string{"--from", write("other", "#!/bin/sh\necho '{}'\n", 0o755)}, "prints no version"},
		"too old":            {[]string{"--from", write("aged", tooOld, 0o755)}, "too old"},
		"wrong sum":          {[]string{"--from", write("a/next", tooOld, 0o755), "--checksums", write("a/sums", wrong, 0o644)}, "must be 0000"},
		"wrong sum beside":   {[]string{"--from", write("b/next", tooOld+write("b/checksums.txt", wrong, 0o644), 0o755)}, "must be 0000"},
		"not in the sums":    {[]string{"--from", write("c/next", tooOld, 0o755), "--checksums", write("c/sums", "", 0o644)}, "no sum of next"},
		"no sums":            {[]string{"--from", write("d/next", tooOld, 0o755), "--checksums", filepath.Join(in.dir, "none")}, "checksums:"},
		"an unsafe address":  {[]string{"--from", "http://127.0.0.1:1/next"}, "only https://"},
		"empty archive":      {[]string{"--from", write("e.tgz", archive(t, nil), 0o644)}, "has no file journeyman"},
		"archive cut short":  {[]string{"--from", write("f.tgz", archive(t, []byte(tooOld))[:40], 0o644)}, "unexpected EOF"},
		"nothing to go back": {[]string{"--roll-back"}, "no binary from before"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			out, err := in.upgrade(t.Context(), tt.args...)
			is.True(err != nil)                     // the upgrade is refused
			is.True(strings.Contains(out, tt.says)) // the reason
			now, err := os.ReadFile(in.path)
			is.NoErr(err)
			is.True(bytes.Equal(now, old)) // the binary is unchanged
		})
	}
}

// archive returns an archive of a release with the given program, or without one.
func archive(t *testing.T, program []byte) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, content := range map[string][]byte{"README.md": []byte("read me"), "journeyman": program} {
		if content == nil {
			continue
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o755}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestUpgradeOfAManagedBinary checks that the upgrade refuses a binary of a package or an image,
// with advice.
func TestUpgradeOfAManagedBinary(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	is := is.New(t)
	in := install(t)
	is.NoErr(os.WriteFile(filepath.Join(in.dir, "dpkg-query"), []byte("#!/bin/sh\necho journeyman: $2\n"), 0o755))
	out, err := in.upgrade(t.Context(), "--from", in.newer(t, ""))
	is.True(err != nil)                                                         // the package owns it
	is.True(strings.Contains(out, "apt-get install --only-upgrade journeyman")) // the advice
	is.NoErr(os.WriteFile(in.path+".managed", []byte("replace the image\n"), 0o600))
	out, err = in.upgrade(t.Context(), "--from", in.newer(t, ""))
	is.True(err != nil)                                 // the image owns it
	is.True(strings.Contains(out, "replace the image")) // the text of the file
}

func TestUpgradeCheckChangesNothing(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	is := is.New(t)
	in := install(t)
	old := in.version(t)
	script, err := os.ReadFile(in.newer(t, "exit 9"))
	is.NoErr(err)
	packed := filepath.Join(in.dir, "journeyman_9.9.9.tar.gz")
	text := archive(t, script)
	is.NoErr(os.WriteFile(packed, []byte(text), 0o644))
	sums := fmt.Sprintf("%x  other\n%x *journeyman_9.9.9.tar.gz\n", sha256.Sum256(nil), sha256.Sum256([]byte(text)))
	is.NoErr(os.WriteFile(filepath.Join(in.dir, "checksums.txt"), []byte(sums), 0o644))
	out, err := in.upgrade(t.Context(), "--check", "--from", packed)
	is.NoErr(err)
	is.True(strings.Contains(out, "the checksum is right")) // of the archive, not of the program in it
	is.True(strings.Contains(out, "to    9.9.9"))           // the version that would be installed
	is.Equal(in.version(t), old)
	_, err = os.Stat(in.data + ".before-upgrade.tgz")
	is.True(os.IsNotExist(err)) // no backup was made
}

// systemctl replaces that of systemd: it starts and stops the installed binary.
const systemctl = `#!/bin/sh
set -e
cd "$(dirname "$0")"
stop() {
	[ -f pid ] || return 0
	kill "$(cat pid)" 2>/dev/null || true
	while kill -0 "$(cat pid)" 2>/dev/null; do sleep 0.05; done
	rm pid
}
start() {
	./journeyman --data data --addr 127.0.0.1:0 --smtp-addr "" --grace 0s >>server.log 2>&1 </dev/null &
	echo $! >pid
}
case "$1" in
stop) stop ;;
start) start ;;
restart) stop; start ;;
esac
`

// serveByUnit starts the server with the fake systemctl.
func (in installation) serveByUnit(t *testing.T) {
	t.Helper()
	is := is.New(t)
	is.NoErr(os.WriteFile(filepath.Join(in.dir, "systemctl"), []byte(systemctl), 0o755))
	is.NoErr(exec.Command(filepath.Join(in.dir, "systemctl"), "start", "j").Run())
	t.Cleanup(func() { _ = exec.Command(filepath.Join(in.dir, "systemctl"), "stop", "j").Run() })
	in.healthy(t)
}

func (in installation) healthy(t *testing.T) {
	t.Helper()
	out, err := exec.Command(programPath(t), "health", "--wait", "30s", "--data", in.data).CombinedOutput()
	if err != nil {
		t.Fatalf("not ready: %s", out)
	}
}

func TestUpgradeOfAService(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	for name, tt := range map[string]struct {
		lines string
		good  bool
	}{
		"good":           {"", true},
		"does not run":   {"exit 3", false},
		"never is ready": {"exec sleep 60", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			in := install(t)
			in.serveByUnit(t)
			old := in.version(t)
			within := "30s"
			if !tt.good {
				within = "2s"
			}
			out, err := in.upgrade(t.Context(), "--service", "j", "--ready-within", within, "--from", in.newer(t, tt.lines))
			is.Equal(err == nil, tt.good)           // the command's result
			is.Equal(in.version(t) != old, tt.good) // the binary
			is.True(tt.good || strings.Contains(out, "rolled back to "+old))
			in.healthy(t) // one of the two binaries serves
		})
	}
}

// TestRollBackOfTheDatabase upgrades a database by hand, as a newer program would.
func TestRollBackOfTheDatabase(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	is := is.New(t)
	storetest.Embedded(t)
	in := install(t)
	path := filepath.Join(in.data, databaseName)
	aside := fmt.Sprintf("%s.v%d", path, store.NewestVersion())
	is.NoErr(exec.Command("cp", path, aside).Run())
	setVersion(t, path, byte(store.NewestVersion()+1))
	copyProgram(t, in.path+".old")
	out, err := in.upgrade(t.Context(), "--roll-back")
	is.NoErr(err)
	is.True(strings.Contains(out, "the newer one is "+path+".v")) // the newer database is kept
	storetest.Sound(t, in.data)
	in.serveByUnit(t)
}

// setVersion writes the version into the header of a database without a log.
func setVersion(t *testing.T, path string, version byte) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw[63] = version // the last byte of PRAGMA user_version
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestUpgradeEnvironment checks the environment in which the upgrade runs the new binary: the
// settings that open the data folder, and no secret.
func TestUpgradeEnvironment(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	in := install(t)
	seen := filepath.Join(in.dir, "seen")
	script := in.newer(t, fmt.Sprintf("env >%q", seen))
	cmd := exec.CommandContext(t.Context(), in.path, "upgrade", "--data", in.data, "--from", script)
	cmd.Env = programEnv("JOURNEYMAN_TIMEZONE=Asia/Tokyo", "JOURNEYMAN_DISK_RESERVE=1%", "JOURNEYMAN_API_KEY=jm_live_of_the_owner_xyz",
		"JOURNEYMAN_ADMIN_PASSWORD=a good password", "ANTHROPIC_API_KEY=sk-1", "AWS_SECRET_ACCESS_KEY=aws",
		"GITHUB_TOKEN=gh", "SSH_AUTH_SOCK=/tmp/agent")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(seen)
	is.NoErr(err)
	names := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		names[name] = value
	}
	is.Equal(names["JOURNEYMAN_TIMEZONE"], "Asia/Tokyo") // the setting of the server
	is.Equal(names["JOURNEYMAN_DISK_RESERVE"], "1%")
	is.Equal(names["PATH"], os.Getenv("PATH"))
	for _, name := range []string{"JOURNEYMAN_API_KEY", "JOURNEYMAN_ADMIN_PASSWORD", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY",
		"GITHUB_TOKEN", "SSH_AUTH_SOCK"} {
		_, has := names[name]
		is.True(!has) // the upgrade does not need it
	}
}

// TestUpgradeKilled kills the upgrade at many moments. There is always a binary that runs and a
// database that it can read. A second attempt succeeds.
func TestUpgradeKilled(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	is := is.New(t)
	in := install(t)
	next := in.newer(t, "")
	for round := range storetest.Rounds(60, 3) {
		copyProgram(t, in.path+".copy")
		is.NoErr(os.Rename(in.path+".copy", in.path))
		cmd := exec.Command(in.path, "upgrade", "--data", in.data, "--from", next)
		cmd.Env = programEnv()
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		is.NoErr(cmd.Start())
		// The moment of the kill is random: the checks below hold for any.
		time.AfterFunc(time.Duration(round*round%97)*4*time.Millisecond, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		_ = cmd.Wait()
		in.version(t)
		out, err := exec.Command(in.path, "upgrade", "--try", "--data", in.data).CombinedOutput()
		if err != nil {
			t.Fatalf("round %d: the database cannot be opened: %s", round, out)
		}
	}
	copyProgram(t, in.path+".copy")
	is.NoErr(os.Rename(in.path+".copy", in.path))
	out, err := in.upgrade(t.Context(), "--from", next)
	if err != nil {
		t.Fatal(out)
	}
	is.Equal(in.version(t), "9.9.9")
}
