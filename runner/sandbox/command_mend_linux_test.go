//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"journeyman/runner/workspace"

	"github.com/matryer/is"
)

// closings are commands that remove the owner's permissions of parts of the workspace. After
// each one the service must be able to read "a/kept" or, if it was moved, "kept".
var closings = map[string]string{
	"a file":                `chmod 000 a/kept`,
	"its folder":            `chmod 000 a`,
	"both":                  `chmod 000 a/kept a`,
	"the workspace":         `chmod 000 .`,
	"everything":            `chmod -R 000 . || chmod 000 a/kept a .`,
	"reading alone":         `chmod 300 a; chmod 200 a/kept`,
	"searching alone":       `chmod 600 a .`,
	"writing, which counts": `chmod 500 a .`,
	"deep down":             `mkdir -p b/c/d && echo x > b/c/d/f && chmod 000 b/c/d/f b/c/d b/c b a/kept a`,
	"by a link":             `ln -s a/kept link && chmod 000 link a`,
	"then stopped":          `chmod 000 a .; sleep 1000`,
}

func TestPermissionsAreMended(t *testing.T) {
	t.Parallel()
	s := shell(t, ShellConfig{})
	for name, script := range closings {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			dir := filepath.Join(t.TempDir(), "ws")
			w := open(t, dir, workspace.Limits{})
			is.NoErr(w.WriteFile("a/kept", []byte("kept")))
			c := Command{Script: script}
			if name == "then stopped" {
				c.Timeout = 300e6
			}
			ran(t, s, w, c)
			info, err := os.Stat(dir)
			is.NoErr(err)
			is.Equal(info.Mode()&0o700, fs.FileMode(0o700))
			data, err := w.ReadFile("a/kept", 0, 100)
			is.NoErr(err)
			is.Equal(string(data), "kept")
			is.NoErr(w.WriteFile("a/new", nil))
			is.NoErr(filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				if info, err := e.Info(); err == nil && !e.IsDir() && e.Type() == 0 {
					is.True(info.Mode()&0o400 != 0)
				}
				return nil
			}))
			r := ran(t, s, w, Command{Script: "cat a/kept"})
			is.Equal(r.Output, "kept")
		})
	}
}

// TestMendingFollowsNoLink creates links to a file outside the workspace, whose mode must not
// change.
func TestMendingFollowsNoLink(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside")
	is.NoErr(os.WriteFile(outside, []byte("x"), 0o200))
	is.NoErr(os.Mkdir(filepath.Join(dir, "folder"), 0o100))
	w := open(t, filepath.Join(dir, "ws"), workspace.Limits{})
	is.NoErr(os.Symlink(outside, filepath.Join(dir, "ws", "link")))
	is.NoErr(os.Symlink(filepath.Join(dir, "folder"), filepath.Join(dir, "ws", "up")))
	is.NoErr(w.WriteFile("bits", []byte("x")))
	is.NoErr(os.Chmod(filepath.Join(dir, "ws", "bits"), fs.ModeSetuid|fs.ModeSetgid|0o755))
	_, err := w.Survey(w.Everything(), w.RestorePermissions)
	is.NoErr(err)
	for name, want := range map[string]fs.FileMode{"outside": 0o200, "folder": fs.ModeDir | 0o100, "ws/bits": 0o755} {
		info, err := os.Lstat(filepath.Join(dir, name))
		is.NoErr(err)
		is.Equal(info.Mode(), want)
	}
	is.NoErr(os.Chmod(filepath.Join(dir, "folder"), 0o700)) // so that it can be removed
}

// TestOpenClosedWorkspace opens a folder without the owner's permissions, as a command leaves it whose
// server was killed.
func TestOpenClosedWorkspace(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := filepath.Join(t.TempDir(), "ws")
	is.NoErr(os.Mkdir(dir, 0o700))
	is.NoErr(os.Chmod(dir, 0))
	w := open(t, dir, workspace.Limits{})
	is.NoErr(w.WriteFile("f", []byte("x")))
}

// TestMendingAsOrdinaryUser runs the tests above as a user who is restricted by permissions.
func TestMendingAsOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // the tests above already ran as an ordinary user
	}
	asNobody(t, "^(TestPermissionsAreMended|TestMendingFollowsNoLink|TestOpenClosedWorkspace)$")
}

// asNobody runs tests of this program in a process of an ordinary user.
func asNobody(t *testing.T, tests string) []byte {
	t.Helper()
	is := is.New(t)
	dir, err := os.MkdirTemp("/tmp", "journeyman-nobody-") // the test's own folder belongs to root
	is.NoErr(err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	const nobody = 65534
	is.NoErr(os.Chown(dir, nobody, nobody))
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", tests, "-test.v")
	cmd.Dir = dir
	cmd.Env = []string{"TMPDIR=" + dir, "HOME=" + dir, "PATH=" + os.Getenv("PATH"), "SERVER_SECRET=" + theSecret,
		"PROGRAMS=" + os.Getenv("PROGRAMS"), "LONG=" + os.Getenv("LONG")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		t.Fatalf("as an ordinary user:\n%s", out)
	}
	is.NoErr(err)
	return out
}
