package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"
)

// A Holding is the measured content of a workspace.
type Holding struct {
	Files int   // files and folders
	Bytes int64 // sum of room over all files
	Deep  bool  // there are folders deeper than tooDeep, which are not counted
}

// Exceeds reports whether h exceeds most in any field.
func (h Holding) Exceeds(most Holding) bool {
	return h.Files > most.Files || h.Bytes > most.Bytes || h.Deep && !most.Deep
}

// tooDeep is the maximum depth of folders in a survey. The time for a chain of folders grows
// with the square of its depth.
const tooDeep = 256

// Survey measures the content of the workspace, each folder before its files. It first calls
// every function of do for each entry, and returns their first error. It stops counting when
// most is exceeded. Unreadable folders count as empty.
func (w *Workspace) Survey(most Holding, do ...func(p string, info fs.FileInfo) error) (Holding, error) {
	var h Holding
	err := fs.WalkDir(w.root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // deleted meanwhile, or unreadable
		}
		info, err := e.Info()
		if err != nil {
			return nil // deleted meanwhile
		}
		for _, f := range do {
			if err := f(p, info); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		h.Files++
		if info.Mode().IsRegular() {
			h.Bytes += room(info)
		}
		if h.Exceeds(most) {
			return fs.SkipAll
		}
		if strings.Count(p, "/") >= tooDeep && info.IsDir() {
			h.Deep = true
			return fs.SkipDir
		}
		return nil
	})
	return h, err
}

// Everything is the limit of a survey that should reach the whole workspace. It is finite
// because a runaway command may have left millions of files.
func (w *Workspace) Everything() Holding {
	return Holding{Files: 10 * w.limits.Files, Bytes: math.MaxInt64, Deep: true}
}

// RestorePermissions adds the permissions that this service needs to those of a file's or folder's owner. It also
// clears the setuid and setgid bits, because a command could leave a dangerous program with
// them. It does not change links. It cannot change files of another user, which stay as usable
// as they are.
func (w *Workspace) RestorePermissions(p string, info fs.FileInfo) error {
	mode := info.Mode()
	mended := mode
	switch {
	case mode.IsDir():
		mended |= neededOfFolder
	case mode.IsRegular():
		mended = mode&^(fs.ModeSetuid|fs.ModeSetgid) | neededOfFile
	}
	if mended == mode {
		return nil
	}
	if err := w.root.Chmod(p, mended); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// MendFolder adds the permissions that this service needs to those of an open folder's owner. Without
// them, the folder cannot be reached by its path.
func MendFolder(folder *os.File) error {
	info, err := folder.Stat()
	if err != nil {
		return err
	}
	if info.Mode()&neededOfFolder == neededOfFolder {
		return nil
	}
	return folder.Chmod(info.Mode() | neededOfFolder)
}

// Fullness returns a note if a workspace with the content held is full or nearly full. It
// returns "" if a quarter of it is free, or a file may grow to fileSize.
func (w *Workspace) Fullness(held Holding, fileSize int64) string {
	left := w.limits.Left(held.Bytes)
	switch {
	case held.Deep:
		return fmt.Sprintf("the workspace has folders more than %d deep: "+
			"commands can make no new files until those are deleted", tooDeep)
	case held.Files >= w.limits.Files:
		return fmt.Sprintf("the workspace holds %d files and folders, and may hold %d: "+
			"commands can make no new ones until some are deleted", held.Files, w.limits.Files)
	case left <= 0 && held.Bytes < w.limits.TotalSize:
		return "the organization stores as much as it may: commands can write no files until some are deleted"
	case left <= 0:
		return fmt.Sprintf("the workspace holds %s, and may hold %s: "+
			"commands can write no files until some are deleted", Mebibytes(held.Bytes), Mebibytes(w.limits.TotalSize))
	case left < min(fileSize, w.limits.TotalSize/4):
		return fmt.Sprintf("the workspace holds %s, and may hold %s: "+
			"commands can write no file beyond its first %s until some are deleted",
			Mebibytes(held.Bytes), Mebibytes(w.limits.TotalSize), Mebibytes(left))
	}
	return ""
}

// Mebibytes returns a number of bytes as text, in MiB.
func Mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
