package pdf

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"golang.org/x/sys/cpu"
)

// version names what is compiled, and by which compiler. TestVersion compares it with go.mod.
const version = "go-pdfium v1.21.4, wazero v1.12.0"

const (
	entryPrefix = "pdfium-" // of the name of a folder with the compiled form of one version, for one kind of processor
	draftPrefix = "draft-"  // of the name of such a folder that is not complete
	sumFile     = "SHA256"  // in such a folder: the sum of its other file

	// unusedTime is the time after which an entry that no process has loaded is removed: it belongs to an
	// earlier version of this program. Nodes of different versions may share the folder for some time.
	unusedTime = 48 * time.Hour
	draftTime  = time.Hour // much more than compiling takes
	touchTime  = time.Hour // a loaded entry is marked as used this often
)

// errCache is the error for an entry that is missing, is damaged or may be of somebody else.
var errCache = errors.New("no compiled PDFium")

// entryName returns the name of the entry for this program on this machine. Code for one processor may not run
// on another one.
func entryName() string {
	features := fmt.Sprint(cpu.X86, cpu.ARM64)
	built := "" // wazero looks for the compiled form under the version with which this program was built
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if strings.HasSuffix(m.Path, "/wazero") {
				built = m.Version
			}
		}
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{version, built, runtime.GOOS, runtime.GOARCH, features}, "\n")))
	return entryPrefix + hex.EncodeToString(sum[:8])
}

// openCache returns the folder of the compiled PDFium within folder, after it has checked its contents. The
// code in it is executed, so nobody else may have been able to write it.
func openCache(folder string) (string, error) {
	dir := filepath.Join(folder, entryName())
	for _, path := range []string{folder, dir} {
		if info, err := os.Lstat(path); err != nil || !info.IsDir() || !private(info) {
			return "", errCache
		}
	}
	sum, err := os.ReadFile(filepath.Join(dir, sumFile))
	if err != nil {
		return "", errCache
	}
	if now, err := sumOf(dir); err != nil || now != string(sum) {
		return "", errCache
	}
	touch(dir)
	sweep(folder)
	return dir, nil
}

// sumOf returns the SHA-256 sum of the code in an entry, with its path. It returns an error unless the entry has
// exactly one file of code and no link.
func sumOf(dir string) (sum string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == sumFile {
			return err
		}
		info, err := d.Info()
		if err != nil || sum != "" || !info.Mode().IsRegular() || !private(info) {
			return errors.Join(err, errCache)
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		sum = fmt.Sprintf("%x  %s\n", h.Sum(nil), filepath.ToSlash(name))
		return err
	})
	if err == nil && sum == "" {
		err = errCache
	}
	return sum, err
}

// touch marks an entry as used. If this fails, another process removes it after some time, and it is made again.
func touch(dir string) {
	info, err := os.Stat(dir)
	if now := time.Now(); err == nil && now.Sub(info.ModTime()) > touchTime {
		_ = os.Chtimes(dir, now, now)
	}
}

// sweep removes entries of other versions that no process uses, and drafts of processes that were killed. If
// this fails, the next process tries again.
func sweep(folder string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, e := range entries {
		limit := unusedTime
		if strings.HasPrefix(e.Name(), draftPrefix) {
			limit = draftTime
		} else if !strings.HasPrefix(e.Name(), entryPrefix) || e.Name() == entryName() {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > limit {
			_ = os.RemoveAll(filepath.Join(folder, e.Name()))
		}
	}
}

// Compile compiles PDFium into a folder, unless it is there. Several processes can do so at the same time, and
// each of them can be killed: an entry gets its name when it is complete.
func Compile(folder string) error {
	// Nobody else may have written what the folder has. The data folder itself has this mode.
	if err := os.Chmod(folder, 0o700); err != nil {
		return err
	}
	if _, err := openCache(folder); err == nil {
		return nil
	}
	dir, err := os.MkdirTemp(folder, draftPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := compileInto(dir); err != nil {
		return err
	}
	entry := filepath.Join(folder, entryName())
	if _, err := openCache(folder); err == nil {
		return nil // meanwhile another process has made it
	}
	// What is there is damaged.
	if err := os.RemoveAll(entry); err != nil {
		return err
	}
	if err := os.Rename(dir, entry); err != nil {
		if _, other := openCache(folder); other == nil {
			return nil
		}
		return err
	}
	_, err = openCache(folder)
	return err
}

// compileInto compiles PDFium into an empty folder.
func compileInto(dir string) error {
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return err
	}
	defer cache.Close(context.Background())
	// PDFium does not start here: its memory and that of the compiler would count together.
	if _, err := load(cache); err != nil {
		return err
	}
	sum, err := sumOf(dir)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, sumFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(sum)
	return errors.Join(err, f.Sync(), f.Close())
}
