package command

import (
	"runtime/debug"
	"testing"

	"github.com/matryer/is"
)

func TestNewBuild(t *testing.T) {
	t.Parallel()
	for main, want := range map[string]string{
		"":                                      "0.1.0",
		"(devel)":                               "0.1.0",
		"v1.2.3":                                "1.2.3",
		"v1.2.3+dirty":                          "1.2.3",
		"v1.2.3-rc.1":                           "1.2.3-rc.1",
		"v1.2.4-0.20260102030405-0123456789ab":  "0.1.0", // after v1.2.3: not the version 1.2.4
		"v0.0.0-20260102030405-0123456789ab":    "0.1.0",
		"v1.2.3-rc.1.0.20260102030405-01234567": "0.1.0",
	} {
		is := is.New(t)
		is.Equal(newBuild("0.1.0", &debug.BuildInfo{Main: debug.Module{Version: main}}).Version, want)
	}
}

func TestBuildIsPrinted(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	b := newBuild("0.1.0", &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123ab"},
		{Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"}}})
	b.Go, b.Platform, b.Database = "go1.26.0", "linux/amd64", 3
	is.Equal(b.String(), "journeyman 0.1.0\n  commit    0123ab, with changes\n  date      2026-01-02T03:04:05Z\n"+
		"  go        go1.26.0 linux/amd64\n  database  version 3\n")
}
