package backup_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner/backup"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
)

// A watch is a clock that the test sets.
type watch struct{ at time.Time }

func (w *watch) now() time.Time { return w.at }

// keeperOn returns a keeper that repeats backups of s into the folder dir.
func keeperOn(t testing.TB, s *store.Store, dir string, now func() time.Time, repeat backup.Repeat) *backup.Keeper {
	t.Helper()
	target, err := backup.NewTarget(backup.Storage{To: dir}, dir, noEnvironment)
	is.New(t).NoErr(err)
	k, err := backup.NewKeeper(backup.Config{Store: s, Log: slog.New(slog.DiscardHandler), Target: target, Repeat: repeat,
		Zone: time.UTC, Now: now})
	is.New(t).NoErr(err)
	return k
}

// TestKeeper checks that backups are made when due, also across restarts. A missed one is made
// once, and only the configured number is kept.
func TestKeeper(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		every string
		times []string // times of the ticks, in order; + marks those that make a backup
	}{
		"an interval": {"6h", []string{"+01 00:00", "01 05:59", "+01 06:00", "01 06:01", "+03 00:00", "03 00:01", "+03 06:00"}},
		"an expression": {"0 3 * * *", []string{"01 00:00", "01 02:59", "+01 03:00", "01 23:00", "+04 12:00", "04 12:01",
			"05 02:59", "+05 03:00"}},
		"a clock that was set back": {"6h", []string{"+09 00:00", "+01 00:00", "01 05:00", "+01 06:00"}},
		"none":                      {"", []string{"01 00:00", "09 00:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			s, dir, w, made := filled(t), filepath.Join(t.TempDir(), "to"), &watch{}, 0
			for _, at := range tt.times {
				at, due := strings.CutPrefix(at, "+")
				var err error
				w.at, err = time.Parse("2006-01-02 15:04", "2026-05-"+at)
				is.NoErr(err)
				k := keeperOn(t, s, dir, w.now, backup.Repeat{Every: tt.every, Keep: 2}) // as after a restart
				k.Tick(t.Context())
				k.Tick(t.Context())
				if due {
					made++
				}
				runs := k.State().Runs
				is.Equal(len(runs), made) // a backup too many, or one is missing
				if due {
					is.Equal(runs[0].StartedAt, w.at)
					is.True(runs[0].Good())
				}
				is.Equal(len(namesIn(t, dir)), min(made, 2))
			}
		})
	}
}

// TestKeeperOnARunningClock checks that the first backup is made, although each reading of the
// clock is later.
func TestKeeperOnARunningClock(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s, dir, at := filled(t), filepath.Join(t.TempDir(), "to"), time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	k := keeperOn(t, s, dir, func() time.Time { at = at.Add(time.Nanosecond); return at }, backup.Repeat{Every: "24h"})
	k.Tick(t.Context())
	is.Equal(len(k.State().Runs), 1) // a new server never begins
	k.Tick(t.Context())
	is.Equal(len(k.State().Runs), 1)
	at = at.Add(-time.Hour)
	k.Tick(t.Context())
	is.Equal(len(k.State().Runs), 2) // after the clock was set back, no backup is made
}

// TestKeeperAfterFailure checks that a failed backup is retried later, raises an alert, records its
// reason, and deletes no older backup.
func TestKeeperAfterFailure(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s, to, w := filled(t), filepath.Join(t.TempDir(), "to"), &watch{time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)}
	owner, _ := storetest.Caller(t, s, "Acme", "ann@example.com", people.RoleOwner)
	_, err := s.Effects.AddAlertChannel(t.Context(), owner.Caller, store.NewAlertChannel{Email: "ann@example.com",
		Topics: []store.AlertTopic{store.TopicBackup}, Frequency: store.AlertNow})
	is.NoErr(err)
	k := keeperOn(t, s, to, w.now, backup.Repeat{Every: "24h", Keep: 1})
	k.Tick(t.Context())
	good := namesIn(t, to)
	is.Equal(len(good), 1)
	is.NoErr(os.Rename(to, to+".away"))
	is.NoErr(os.WriteFile(to, nil, 0o600)) // the disk of the backups is gone
	w.at = w.at.Add(24 * time.Hour)
	k.Tick(t.Context())
	state := k.State()
	is.True(strings.Contains(state.Runs[0].Error, "not a directory")) // the reason is missing
	is.Equal(state.Good().Name, good[0])
	is.Equal(state.Next.Sub(w.at), 15*time.Minute)
	_, waits, err := s.Effects.AlertsDue(t.Context())
	is.NoErr(err)
	is.True(waits) // the alert is missing

	is.NoErr(os.Remove(to))
	is.NoErr(os.Rename(to+".away", to))
	w.at = w.at.Add(14 * time.Minute)
	k.Tick(t.Context())
	is.Equal(namesIn(t, to), good) // too early
	w.at = w.at.Add(time.Minute)
	k.Tick(t.Context())
	is.True(k.State().Runs[0].Good())
	is.Equal(len(namesIn(t, to)), 1) // the older one stays
}

// TestKeeperInterrupted checks that the keeper deletes the files of a killed backup and makes a new
// one.
func TestKeeperInterrupted(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s, to, w := filled(t), t.TempDir(), &watch{time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)}
	const name = "journeyman-20260501T000000Z-00000000.tgz"
	is.NoErr(os.WriteFile(filepath.Join(to, name+".part"), []byte("half"), 0o600))
	is.NoErr(s.SaveBackupRuns([]store.BackupRun{{Name: name, StartedAt: w.at}})) // the record that a killed server leaves
	k := keeperOn(t, s, to, w.now, backup.Repeat{Every: "24h"})
	is.True(strings.Contains(k.State().Runs[0].Error, "ended before"))
	k.Tick(t.Context())
	is.Equal(len(k.State().Runs), 1) // without a pause, a server that crashes in each backup would never stop crashing
	w.at = w.at.Add(15 * time.Minute)
	k.Tick(t.Context())
	is.True(k.State().Runs[0].Good())
	is.Equal(namesIn(t, to), []string{k.State().Runs[0].Name})

	w.at = w.at.Add(24 * time.Hour)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	k.Tick(stopped)
	is.True(strings.Contains(k.State().Runs[0].Error, "ended before"))
	is.Equal(len(namesIn(t, to)), 1)
}

// TestRequest makes one backup for two clicks.
func TestRequest(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s, to, w := filled(t), t.TempDir(), &watch{time.Now()}
	k := keeperOn(t, s, to, w.now, backup.Repeat{})
	is.NoErr(k.Request("ann@example.com"))
	is.True(k.State().Running)
	is.True(db.IsKind(k.Request("bob@example.com"), db.Conflict))
	k.Tick(t.Context())
	k.Tick(t.Context())
	is.Equal(len(k.State().Runs), 1)
	is.Equal(k.State().Runs[0].By, "ann@example.com")
	at, err := s.LastBackup()
	is.NoErr(err)
	is.True(!at.IsZero()) // doctor asks for a backup

	var none *backup.Keeper
	none.Tick(t.Context())
	is.True(db.IsKind(none.Request(""), db.Conflict))
	is.Equal(none.State().Place, "")
}

// TestEvery checks that invalid intervals are refused with a reason.
func TestEvery(t *testing.T) {
	t.Parallel()
	s := filled(t)
	target, _ := newTarget(t)
	for every, says := range map[string]string{"10s": "at least 1m", "daily": "neither", "0 3 * *": "five fields", "-5h": "at least", "24h": "", "@daily": ""} {
		is := is.New(t)
		_, err := backup.NewKeeper(backup.Config{Store: s, Target: target, Repeat: backup.Repeat{Every: every}, Zone: time.UTC})
		is.Equal(err == nil, says == "")
		is.True(err == nil || strings.Contains(err.Error(), says)) // the error does not say what is wrong
	}
}
