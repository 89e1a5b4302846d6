package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/matryer/is"
)

func TestProgramsAreFound(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir, hidden := t.TempDir(), t.TempDir()
	write := func(path string, mode os.FileMode) { is.NoErr(os.WriteFile(path, nil, mode)) }
	write(filepath.Join(dir, "git"), 0o755)
	write(filepath.Join(dir, "jq"), 0o644) // not executable
	is.NoErr(os.Mkdir(filepath.Join(dir, "go"), 0o755))
	write(filepath.Join(dir, "python3.13"), 0o755)
	is.NoErr(os.Symlink("python3.13", filepath.Join(dir, "python3")))
	write(filepath.Join(hidden, "node"), 0o755)
	is.NoErr(os.Symlink(filepath.Join(hidden, "node"), filepath.Join(dir, "node")))
	is.NoErr(os.Symlink("nowhere", filepath.Join(dir, "zip")))
	path := "/does/not/exist" + string(filepath.ListSeparator) + dir
	is.Equal(programs(path, dir+"/"), []string{"python3", "git"})
	is.Equal(programs(path, "/"), []string{"python3", "node", "git"})
}
