package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// commandPath is the PATH of commands. It is fixed, so that commands do not depend on the
// environment of the service.
const commandPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// wellKnown lists programs that scripts often use, and that many machines lack.
const wellKnown = "python3 node ruby perl php java go gcc make git jq sqlite3 pandoc libreoffice pdftotext " +
	"pdflatex typst magick convert ffmpeg tesseract dot gnuplot zip unzip rg"

// confinedFolders lists the folders with programs that confined commands can see.
const confinedFolders = "/usr/:/bin/:/sbin/:/nix/store/:/gnu/store/"

// Programs returns the well-known programs that commands of the shell can run, in a fixed
// order.
func (s *Shell) Programs() []string {
	if !s.confined {
		return programs(commandPath, "/")
	}
	return programs(commandPath, confinedFolders)
}

// programs returns the well-known programs in the folders of a PATH. It ignores a link whose
// target is outside of the visible folders: a command cannot follow such a link.
func programs(path, visible string) (found []string) {
	for _, name := range strings.Fields(wellKnown) {
		if slices.ContainsFunc(filepath.SplitList(path), func(dir string) bool {
			target, err := filepath.EvalSymlinks(filepath.Join(dir, name))
			within := func(folder string) bool { return strings.HasPrefix(target, folder) }
			if err != nil || !slices.ContainsFunc(filepath.SplitList(visible), within) {
				return false
			}
			info, err := os.Stat(target)
			return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
		}) {
			found = append(found, name)
		}
	}
	return found
}
