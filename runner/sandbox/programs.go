package sandbox

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"journeyman/runner/workspace"
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

// pythonModules lists modules for work with documents and numbers.
const pythonModules = "openpyxl pandas numpy matplotlib docx pptx pypdf reportlab bs4 lxml PIL requests"

// probeTime limits the start of all programs together.
const probeTime = 30 * time.Second

// StartedPrograms starts each program of Programs once, in a workspace. It returns those that have
// started; python3 with the modules that it has imported. A file alone proves little: it may be a
// shim without a program, or lack a library.
func (s *Shell) StartedPrograms(ctx context.Context, w *workspace.Workspace) (started []string, err error) {
	r, err := s.Run(ctx, w, Command{Script: probeScript(s.Programs()), Timeout: probeTime})
	if err != nil {
		return nil, err
	}
	words := strings.Fields(r.Output)
	var modules []string
	for _, name := range strings.Fields(pythonModules) {
		if slices.Contains(words, "module:"+name) {
			modules = append(modules, name)
		}
	}
	for _, name := range strings.Fields(wellKnown) { // in a fixed order
		if !slices.Contains(words, "program:"+name) {
			continue
		}
		if name == "python3" && len(modules) > 0 {
			name += " (with " + strings.Join(modules, ", ") + ")"
		}
		started = append(started, name)
	}
	return started, nil
}

// probeScript returns a script that names each program and module that starts.
func probeScript(names []string) string {
	flags := map[string]string{"java": "-version", "go": "version", "pdftotext": "-v", "magick": "-version",
		"convert": "-version", "ffmpeg": "-version", "dot": "-V", "zip": "-v", "unzip": "-v", "python3": "-c pass"}
	var b strings.Builder
	// Few systems lack timeout. There the limit of the whole script ends a program that hangs.
	b.WriteString("command -v timeout >/dev/null || timeout() { shift 3; \"$@\"; }\n" +
		"try() { what=$1; shift; timeout -k 1 10 \"$@\" >/dev/null 2>&1 </dev/null && echo \"$what\"; }\n")
	if slices.Contains(names, "python3") { // beside the programs, because some modules load slowly
		b.WriteString("(for m in " + pythonModules + "; do try module:$m python3 -c \"import $m\"; done) &\n")
	}
	for _, name := range names {
		flag := flags[name]
		if flag == "" {
			flag = "--version"
		}
		b.WriteString("try program:" + name + " " + name + " " + flag + "\n")
	}
	b.WriteString("wait\n")
	return b.String()
}
