package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
)

// TestUpgradeOfTasks upgrades tasks. In version 1, their status was that of their newest turn.
func TestUpgradeOfTasks(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	old, err := os.ReadFile("testdata/schema-v1.sql")
	is.NoErr(err)
	path := filepath.Join(t.TempDir(), "a.db")
	db := rawDatabase(t, path)
	must(t, db, string(old)+`;
		INSERT INTO organizations (id, name, created_at) VALUES ('org', 'Acme', 1);
		INSERT INTO users (id, email, name, created_at) VALUES ('usr', 'a@acme.test', 'Ann', 1);
		INSERT INTO workers (id, organization_id, user_id, title, summary, visibility, version, created_at, updated_at)
			VALUES ('wrk', 'org', 'usr', 'W', '', 'public', 1, 1, 1)`)
	// Each letter is a turn: Completed, Error, Aborted, Running, Pending.
	words := map[rune]string{'C': "completed", 'E': "error", 'A': "aborted", 'R': "running", 'P': "pending"}
	turn := 0
	for i, turns := range []string{"C", "CE", "P", "R", "RP", "CRPP", "RA", "CP"} {
		newest := words[rune(turns[len(turns)-1])]
		unfinished := strings.Count(turns, "R") + strings.Count(turns, "P")
		var completed any
		if newest != "running" && newest != "pending" {
			completed = 100
		}
		exec := func(query string, args ...any) {
			t.Helper()
			_, err := db.ExecContext(t.Context(), query, args...)
			is.NoErr(err)
		}
		exec(`INSERT INTO tasks (num, id, organization_id, worker_id, title, status, triggered_by, turn_count, unfinished, cost, duration_ms, created_at, completed_at)
			VALUES (?, ?, 'org', 'wrk', 'T', ?, 'api', ?, ?, 7, 9, 1, ?)`, i+1, turns, newest, len(turns), unfinished, completed)
		for seq, letter := range turns {
			turn++
			status := words[letter]
			var runner, completed any
			if status == "running" {
				runner = "run"
			}
			if status != "running" && status != "pending" {
				completed = 50 + seq
			}
			exec(`INSERT INTO turns (num, id, task_num, seq, organization_id, worker_id, worker_version, triggered_by, input, budget, status, ready, runner_id,
					claims, interruptions, abort_requested, output_text, model, steps, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
					reasoning_tokens, model_cost, tool_cost, duration_ms, created_at, completed_at)
				VALUES (?, 'trn' || ?, ?, ?, 'org', 'wrk', 1, 'api', 'x', 'low', ?, 1, ?, 0, 0, 0, '', '', 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, ?)`,
				turn, turn, i+1, seq, status, runner, completed)
		}
	}
	must(t, db, `INSERT INTO deliveries (num, id, worker_id, turn_num, type, attempts, created_at) VALUES (1, 'e1', 'wrk', 1, 'task.completed', 0, 1),
		(2, 'e2', 'wrk', 3, 'task.failed', 0, 1), (3, 'e3', 'wrk', NULL, 'task.completed', 0, 1); PRAGMA user_version = 1`)
	is.NoErr(db.Close())
	s, err := store.Open(t.Context(), moveToFolder(t, path), storetest.Schema(t), store.Options{})
	is.NoErr(err)
	got, err := s.Strings(t.Context(),
		`SELECT id || ' ' || status || ' ' || coalesce(completed_at, '-') FROM tasks ORDER BY num`)
	is.NoErr(err)
	is.Equal(got, []string{"C completed 50", "CE error 51", "P pending -", "R running -", "RP running -",
		"CRPP running -", "RA running -", "CP pending -"})
	got, err = s.Strings(t.Context(),
		`SELECT coalesce(task_status, iif(completed_at IS NULL, '-', status)) FROM turns WHERE task_num IN (2, 6, 8) ORDER BY num`)
	is.NoErr(err)
	is.Equal(got, []string{"pending", "error", "pending", "-", "-", "-", "pending", "-"})
	got, err = s.Strings(t.Context(),
		`SELECT coalesce(task_status || task_turns || task_cost || task_duration, '-') FROM deliveries ORDER BY num`)
	is.NoErr(err)
	is.Equal(got, []string{"completed179", "error279", "-"})
	is.NoErr(s.Close())
}

// TestUpgradeOfReplyTo checks the addresses of pending answers. For a private worker they go to the
// author of the mail. Otherwise they go only to the author's domain.
func TestUpgradeOfReplyTo(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	old, err := os.ReadFile("testdata/schema-v1.sql")
	is.NoErr(err)
	path := filepath.Join(t.TempDir(), "a.db")
	db := rawDatabase(t, path)
	must(t, db, string(old)+`;
		PRAGMA user_version = 1;
		INSERT INTO organizations (id, name, created_at) VALUES ('org', 'Acme', 1);
		INSERT INTO users (id, email, name, created_at) VALUES ('usr', 'a@acme.test', 'Ann', 1);
		INSERT INTO workers (id, organization_id, user_id, title, summary, visibility, version, created_at, updated_at)
			VALUES ('closed', 'org', 'usr', 'W', '', 'private', 1, 1, 1), ('open', 'org', 'usr', 'W', '', 'public', 1, 1, 1);
		INSERT INTO inbound_emails (id, organization_id, worker_id, message_id, status, reason, mail_from, from_address, recipient, reply_to, subject,
			verdicts, remote_addr, size, created_at)
		SELECT worker || reply_to, 'org', worker, reply_to, 'held', 'x', '', 'ann@acme.test', '', reply_to, '', '{}', '', 1, 1
		FROM (SELECT 'closed' AS worker UNION SELECT 'open'), (SELECT '' AS reply_to UNION SELECT 'ann@acme.test' UNION SELECT 'eve@evil.test')`)
	is.NoErr(db.Close())
	s, err := store.Open(t.Context(), moveToFolder(t, path), storetest.Schema(t), store.Options{})
	is.NoErr(err)
	defer s.Close()
	got, err := s.Strings(t.Context(), `SELECT worker_id || ' ' || reply_to FROM inbound_emails ORDER BY id`)
	is.NoErr(err)
	is.Equal(got, []string{"closed ", "closed ann@acme.test", "closed ann@acme.test", "open ", "open ann@acme.test",
		"open ann@acme.test"})
}
