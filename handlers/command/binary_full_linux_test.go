package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/storetest"
)

// TestUpgradeOnFullDisk upgrades while the disk of the data folder or of the binary is full. The
// old binary stays, no file of the attempt is left, and with room the upgrade succeeds.
func TestUpgradeOnFullDisk(t *testing.T) {
	storetest.Long(t)
	t.Parallel()
	for name, tt := range map[string]struct {
		disk string // of the data folder or of the binary
		left int64  // free bytes
		says string
	}{
		"no room at all":         {"data", 0, "is full: make room and try again"},
		"no room for the backup": {"data", 96 << 10, "nothing was changed: back up"},
		"no room for the binary": {"binary", 0, "no space left on device"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			in := install(t)
			from := in.newer(t, "")
			disk := storetest.SmallDisk(t, map[string]string{"data": "40m", "binary": "128m"}[tt.disk])
			if tt.disk == "data" {
				data := filepath.Join(disk, "data")
				is.NoErr(os.CopyFS(data, os.DirFS(in.data)))
				is.NoErr(os.Chmod(data, 0o700))
				in.data = data
			} else {
				in.path = filepath.Join(disk, "journeyman")
				copyProgram(t, in.path)
			}
			makeRoom := storetest.FillDisk(t, disk, tt.left)
			old := in.version(t)
			out, err := in.upgrade(t.Context(), "--from", from)
			is.True(err != nil)                     // the upgrade fails
			is.True(strings.Contains(out, tt.says)) // the error names the reason
			is.Equal(in.version(t), old)
			_, err = os.Stat(in.path + ".new")
			is.True(os.IsNotExist(err)) // no copy uses space
			makeRoom()
			storetest.Sound(t, in.data)
			if out, err = in.upgrade(t.Context(), "--from", from); err != nil {
				t.Fatal(out)
			}
			is.Equal(in.version(t), "9.9.9")
			storetest.Sound(t, in.data)
		})
	}
}
