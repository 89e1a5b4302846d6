package command_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
)

// TestRollback upgrades a database by hand, as a newer program would, and goes back.
func TestRollback(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	storetest.Embedded(t)
	dir := t.TempDir()
	path := filepath.Join(dir, databaseName)
	is.NoErr(os.Chmod(dir, 0o700)) // otherwise a start logs a warning
	is.NoErr(os.WriteFile(path, firstDatabase(t), 0o600))
	rollback := func(status int, says string) {
		t.Helper()
		p := invocation{}.run(t, "rollback", "--data", dir)
		is.Equal(p.cmd.ProcessState.ExitCode(), status)
		is.True(strings.Contains(p.stdout.String()+p.stderr.String(), says))
	}
	rollback(0, "nothing was changed")
	aside := fmt.Sprintf("%s.v%d", path, store.NewestVersion())
	is.NoErr(exec.Command("cp", path, aside).Run())
	setVersion(t, path, byte(store.NewestVersion()+1))
	invocation{}.start(t, serveArgs(dir)...).exitedWith(t, 1, "newer") // this program does not open it
	rollback(0, "the newer one is "+path+".v")
	storetest.Sound(t, dir)
	invocation{}.serve(t, "", testKey, serveArgs(dir)...).stop(t)
	rollback(0, "nothing was changed")
}

// setVersion writes the version into the header of a database without a log.
func setVersion(t *testing.T, path string, version byte) {
	t.Helper()
	is := is.New(t)
	raw, err := os.ReadFile(path)
	is.NoErr(err)
	raw[63] = version // the last byte of PRAGMA user_version
	is.NoErr(os.WriteFile(path, raw, 0o600))
}
