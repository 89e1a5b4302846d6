package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"

	"journeyman/store"
)

// Version prints the version.
type Version struct {
	JSON bool `name:"json" help:"Print the version as JSON."`
}

// Run prints the version and the source of the binary.
func (c *Version) Run(p *Program) error {
	b := ReadBuild(p.Version)
	if c.JSON {
		return json.NewEncoder(p.Stdout).Encode(b)
	}
	_, err := fmt.Fprint(p.Stdout, b)
	return err
}

// A Build describes a binary.
type Build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`   // "" if the build knew no repository
	Date     string `json:"date,omitempty"`     // of the commit, so that every build of it is the same
	Modified bool   `json:"modified,omitempty"` // the files differed from the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Database int    `json:"database"` // version of the database that the binary creates, and the newest that it opens
}

// ReadBuild returns the Build of this process. The version is the tag of the commit. Without
// a tag it is the given one.
func ReadBuild(version string) Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{} // a binary without modules
	}
	return newBuild(version, info)
}

// released matches the versions that the go command takes from a tag. For commits without a tag it
// generates others, such as v0.0.0-20260102030405-0123456789ab.
var released = regexp.MustCompile(`^v(\d+\.\d+\.\d+(?:-(?:alpha|beta|rc)[.\d]*)?)(?:\+dirty)?$`)

func newBuild(version string, info *debug.BuildInfo) Build {
	b := Build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Database: store.NewestVersion()}
	if tag := released.FindStringSubmatch(info.Main.Version); tag != nil {
		b.Version = tag[1]
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String returns the Build for people, a line for each part.
func (b Build) String() string {
	commit := cmp.Or(b.Commit, "unknown: the binary was built without its repository")
	if b.Modified {
		commit += ", with changes"
	}
	var s strings.Builder
	fmt.Fprintf(&s, "journeyman %s\n", b.Version)
	for _, line := range [][2]string{{"commit", commit}, {"date", cmp.Or(b.Date, "unknown")},
		{"go", b.Go + " " + b.Platform}, {"database", fmt.Sprintf("version %d", b.Database)}} {
		fmt.Fprintf(&s, "  %-9s %s\n", line[0], line[1])
	}
	return s.String()
}
