package handlers_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"journeyman/handlers/handlerstest"
	"journeyman/handlers/metrics"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

func TestMetrics(t *testing.T) {
	is, s := onServer(t, impatient)
	s.run(t, fields{"input": "hello"})
	s.run(t, fields{"input": scripted("fail 503 busy")})
	is.Equal(s.do(t, "GET", "/api/tasks/none", "").status, http.StatusNotFound)
	handlerstest.Scenario{Method: "GET", URL: "/metrics", Status: http.StatusOK, Contents: []string{
		`journeyman_turns_total{status="completed"} 1`,
		`journeyman_turns_running 0`,
		`journeyman_turns_started_total{resumed="false"} 2`,
		`journeyman_turns_started_total{resumed="true"} 0`,
		`journeyman_turns_taken_over_total 0`,
		`journeyman_connections_refused_total{listener="http"} 0`,
		`journeyman_connections_refused_total{listener="smtp"} 0`,
		`journeyman_turns_waiting{for="model"} 0`,
		`journeyman_model_failures_total{provider="offline",code="503"} 5`,
		`journeyman_http_requests_total{method="GET",route="/api/tasks/:taskId",status="404"} 1`,
		`journeyman_http_requests_total{method="POST",route="/api/tasks",status="ok"} 2`,
		`process_resident_memory_bytes `,
		"# TYPE journeyman_turns_total counter\n",
		`journeyman_turns_queue_age_seconds 0`,
		`journeyman_deliveries_pending 0`,
		`journeyman_model_retries_total 4`,
		`journeyman_model_call_duration_seconds_count{provider="offline",result="ok"} 1`,
		`journeyman_model_call_duration_seconds_bucket{provider="offline",result="error",le="+Inf"} 5`,
		`journeyman_step_duration_seconds_count{provider="offline"} 2`,
		`journeyman_emails_received_total{status="held"} 0`,
		`journeyman_store_batch_operations_bucket{le="256"} `,
		`journeyman_store_write_duration_seconds_sum `,
		`journeyman_database_size_bytes `,
		`journeyman_disk_free_bytes `,
		`journeyman_disk_reserve_bytes `,
		`journeyman_emails_held_age_seconds 0`,
		`journeyman_store_read_only_reason{reason="storage"} 0`,
	}, Absent: []string{s.key, s.owner.OrganizationID, "tsk_", "wrk_"}}.Run(t, s.as("").server) // metrics hold no names
}

// TestMetricsOfUnansweredQueries checks that one context bounds all queries of a scrape. The database
// does not answer before it ends. The answer has the metrics that need no query.
func TestMetricsOfUnansweredQueries(t *testing.T) {
	is, s := onServer(t, idle)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, s.url+"/metrics", nil)
	req.RemoteAddr = "127.0.0.1:1"
	w := httptest.NewRecorder()
	s.api.ServeHTTP(w, req)
	is.Equal(w.Code, http.StatusOK)
	text := w.Body.String()
	for _, line := range []string{
		`journeyman_turns_waiting{for="person"} NaN`,
		`journeyman_database_free_bytes NaN`,
		`journeyman_deliveries_pending NaN`, // a zero would hide waiting work
		`journeyman_database_up 0`,
		`journeyman_store_read_only 1`,
		`journeyman_turns_running 0`,
		`journeyman_build_info{`,
	} {
		is.True(strings.Contains(text, line)) // a metric that is unknown, or that needs no query
	}
}

// TestMetricsOfAHangingDatabase locks tables, so that several queries of a scrape wait. They share one time
// limit.
func TestMetricsOfAHangingDatabase(t *testing.T) {
	is, s := onServer(t, idle)
	storetest.LockTables(t, s.store, "turns", "deliveries")
	begun := time.Now()
	handlerstest.Scenario{Method: "GET", URL: "/metrics", Status: http.StatusOK,
		Contents: []string{`journeyman_turns_waiting{for="person"} NaN`}}.Run(t, s.as("").server)
	ordertest.Below(is, time.Since(begun), 2*metrics.ScrapeTime)
}

func TestMetricsToken(t *testing.T) {
	_, s := onServer(t, idle, func(set *settings) { set.API.MetricsToken = "secret-of-the-scraper" })
	scrape := func(status int, headers ...string) handlerstest.Scenario {
		return handlerstest.Scenario{Method: "GET", URL: "/metrics", Headers: headers, Status: status}
	}
	handlerstest.Run(t, s.as("").server, map[string]handlerstest.Scenario{
		"no token":   scrape(http.StatusUnauthorized),
		"an API key": scrape(http.StatusUnauthorized, "Authorization: Bearer "+s.key),
		"the token":  scrape(http.StatusOK, "Authorization: Bearer secret-of-the-scraper"),
	})
}

// TestMetricsAreDescribed checks that each family is in one block, with its type before it: scrapers
// refuse a family that occurs twice. The table of metrics has each family of this program, with its
// type.
func TestMetricsAreDescribed(t *testing.T) {
	is, s := onServer(t)
	s.run(t, fields{"input": scripted("tool list_files {}", "say done")})
	text := string(s.as("").do(t, "GET", "/metrics", "").body)
	described, seen, family := describedMetrics(t), map[string]bool{}, ""
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(strings.TrimSpace(rest), " ")
			is.True(!seen[name]) // the family occurs once
			seen[name], family = true, name
			if want := described[name]; want != kind && (want != "" || strings.HasPrefix(name, "journeyman_")) {
				t.Errorf("%s is a %s, and a %q in the table", name, kind, want)
			}
			continue
		}
		if !strings.HasPrefix(line, "# ") {
			is.True(strings.HasPrefix(line, family)) // a sample follows the type of its family
		}
	}
	is.True(seen["journeyman_tool_call_duration_seconds"])                                                          // the tool call was counted
	is.True(strings.Contains(text, `journeyman_tool_call_duration_seconds_count{tool="list_files",result="ok"} 1`)) // the label has the tool's name
	is.True(!strings.Contains(text, "journeyman_backup_age_seconds"))                                               // there was no backup
}

// TestMetricsOfBackups checks the metrics of past backups and of a read-only store.
func TestMetricsOfBackups(t *testing.T) {
	is, s := onServer(t, idle)
	begun := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	run := func(hour int, why string) store.BackupRun {
		at := begun.Add(time.Duration(hour) * time.Hour)
		return store.BackupRun{Name: "x", Path: mark, StartedAt: at, EndedAt: new(at.Add(2 * time.Second)), Size: int64(hour),
			Error: why}
	}
	read := func() map[string]string {
		lines := map[string]string{}
		for line := range strings.Lines(string(s.as("").do(t, "GET", "/metrics", "").body)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			lines[strings.TrimPrefix(name, "journeyman_backup_")] = value
		}
		return lines
	}
	is.Equal(read()["failure_timestamp_seconds"], "") // no backup failed
	is.NoErr(s.store.SaveBackupRuns([]store.BackupRun{run(1, ""), run(2, mark), run(3, "")}))
	got := read()
	is.Equal(got["succeeded"], "1")
	is.Equal(got["size_bytes"], "3")
	is.Equal(got["duration_seconds"], "2")
	is.Equal(got["failure_timestamp_seconds"], "1777600802") // two hours after begun
	is.Equal(got["success_timestamp_seconds"], "")           // the data folder itself had no backup
	is.NoErr(s.store.SaveBackupRuns([]store.BackupRun{run(1, ""), run(2, mark)}))
	is.NoErr(s.store.NoteBackup())
	got = read()
	is.Equal(got["succeeded"], "0")
	is.Equal(got["size_bytes"], "1")                // of the last complete one
	is.True(got["success_timestamp_seconds"] != "") // the folder was backed up

	defer s.store.Gate.ReadOnly(db.CodeStorage, mark)()
	release := s.store.Gate.ReadOnly("maintenance", mark)
	got = read()
	is.Equal(got[`journeyman_store_read_only_reason{reason="maintenance"}`], "1")
	is.Equal(got[`journeyman_store_read_only_reason{reason="storage"}`], "1") // the older reason is still there
	release()
	got = read()
	is.Equal(got[`journeyman_store_read_only_reason{reason="maintenance"}`], "0")
	is.Equal(got["journeyman_store_read_only"], "1")
	series(t, s) // no label holds an error text
}
