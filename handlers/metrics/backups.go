package metrics

import (
	"slices"
	"time"

	"journeyman/store"
)

func readBackups(out samples, st *store.Store, now time.Time) {
	// Left out without a backup: an alert on a missing metric is clearer than an age since 1970.
	if at, err := st.LastBackup(); err == nil && !at.IsZero() {
		out.value("journeyman_backup_age_seconds", max(0, now.Sub(at).Seconds()))
		out.value("journeyman_backup_success_timestamp_seconds", unixSeconds(at))
	}
	runs, err := st.BackupRuns()
	if err != nil {
		return // the page Settings, System shows why
	}
	ended := slices.DeleteFunc(runs, func(r store.BackupRun) bool { return r.EndedAt == nil || r.Waits })
	if n := len(ended); n > 0 {
		out.flag("journeyman_backup_succeeded", ended[n-1].Good())
	}
	slices.Reverse(ended) // the newest first
	if i := slices.IndexFunc(ended, store.BackupRun.Good); i >= 0 {
		out.value("journeyman_backup_size_bytes", float64(ended[i].Size))
		out.value("journeyman_backup_duration_seconds", ended[i].Took().Seconds())
	}
	if i := slices.IndexFunc(ended, func(r store.BackupRun) bool { return !r.Good() }); i >= 0 {
		out.value("journeyman_backup_failure_timestamp_seconds", unixSeconds(*ended[i].EndedAt))
	}
}

// unixSeconds returns a time as Prometheus writes it.
func unixSeconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
