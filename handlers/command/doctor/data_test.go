package doctor_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/command"
	"journeyman/handlers/command/doctor"
	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	"journeyman/store"
	"journeyman/store/storetest"
)

// TestMain makes this program work as a document reader, as the real program does.
func TestMain(m *testing.M) {
	sandbox.BeFilter(os.Args, tool.Filters())
	os.Exit(m.Run())
}

// programOn returns a program on a data folder.
func programOn(t testing.TB, dir string) *command.Program {
	t.Helper()
	return &command.Program{Settings: command.Settings{Data: dir, Timezone: "UTC",
		Database: storetest.DatabaseOf(dir)}, Context: t.Context(),
		Schema: storetest.Schema(t), Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}, Log: slog.New(slog.DiscardHandler)}
}

// TestDoctorOnData checks a sound folder and faulty ones.
func TestDoctorOnData(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spoil func(dir string) error
		says  string
		fails bool
	}{
		"sound":   {nil, "no damage found", false},
		"no file": {func(dir string) error { return os.Remove(filepath.Join(dir, "journeyman.db")) }, "none yet", false},
		"noise": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "journeyman.db"), bytes.Repeat([]byte("noise"), 5000), 0o600)
		}, "journeyman restore FILE", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			dir := t.TempDir()
			st, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
			is.NoErr(err)
			is.NoErr(st.Close())
			if tt.spoil != nil {
				is.NoErr(tt.spoil(dir))
			}
			p := programOn(t, dir)
			p.Model, p.Concurrency = "offline", 1
			p.Env = command.NewEnvironment(func(string) string { return "" })
			err = (&doctor.Examiner{Addr: "127.0.0.1:0"}).Run(p)
			is.Equal(err != nil, tt.fails)
			is.True(strings.Contains(p.Stdout.(*bytes.Buffer).String(), tt.says)) // the report lacks it
		})
	}
}
