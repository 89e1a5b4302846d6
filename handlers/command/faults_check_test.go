//go:build linux

package command_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/matryer/is"
)

// A checkpoint stores how far a world was checked: the highest num of turns and mails.
type checkpoint struct{ turn, mail string }

// A held value holds the rows and files of the errands of a round.
type held struct {
	w     *world
	turns map[string][]heldTurn // by mark
	calls map[string][]string   // states of the calls of turns, or why they were stopped, by num, in their order
	files map[string][]string   // origin and path of the files of turns, by num
	runs  map[string]int        // how often the shell has counted, by mark
	mails map[string][]heldMail // by Message-ID
}

type heldTurn struct {
	num, id, task, worker, status, output, failure, trigger string
	claims, steps                                           int
}

type heldMail struct{ status, turn, reply, sent string }

var marked = regexp.MustCompile(`mark-[\w]+-\d+-\d+-end`)

// read returns the state of the turns and mails since the last check.
func (w *world) read() *held {
	w.t.Helper()
	if w.checked.turn == "" {
		w.checked = checkpoint{"0", "0"}
	}
	h := &held{w: w, turns: map[string][]heldTurn{}, calls: map[string][]string{}, files: map[string][]string{},
		runs: map[string]int{}, mails: map[string][]heldMail{}}
	since := w.checked.turn
	for _, r := range w.rows(`SELECT u.num, u.id, k.id,
		(SELECT id FROM workers WHERE num = u.worker_num), u.status, u.output_text,
		coalesce(u.error_code, ''), u.triggered_by, u.claims,
		(SELECT count(*) FROM steps WHERE turn_num = u.num), u.input
		FROM turns u JOIN tasks k ON k.num = u.task_num WHERE u.num > ? ORDER BY u.num`, since) {
		claims, _ := strconv.Atoi(r[8]) // SQLite returns integers
		steps, _ := strconv.Atoi(r[9])
		mark := marked.FindString(r[10])
		h.turns[mark] = append(h.turns[mark], heldTurn{r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], claims, steps})
		w.checked.turn = r[0]
		w.sum.turns, w.sum.claims = w.sum.turns+1, w.sum.claims+claims
	}
	// A stopped command has a result, for example after its time limit while the program slept. It
	// may not have begun.
	for _, r := range w.rows(`SELECT turn_num, state, output FROM tool_calls WHERE turn_num > ?
		ORDER BY turn_num, step_seq, seq`, since) {
		var output string
		_ = json.Unmarshal([]byte(r[2]), &output) // not all outputs are texts
		if _, why, ok := strings.Cut(output, "\nstopped: "); ok && strings.HasPrefix(output, "exit status: ") {
			why, _, _ = strings.Cut(why, "\n")
			r[1] = "stopped: " + why
		}
		h.calls[r[0]] = append(h.calls[r[0]], r[1])
	}
	for _, r := range w.rows(`SELECT turn_num, origin || ' ' || path FROM files
		WHERE turn_num > ? ORDER BY num`, since) {
		h.files[r[0]] = append(h.files[r[0]], r[1])
	}
	h.readMails()
	h.readRuns()
	return h
}

func (h *held) readMails() {
	for _, r := range h.w.rows(`SELECT i.num, i.message_id, i.status, i.turn_num,
		coalesce(o.id, ''), coalesce(o.status, '') FROM inbound_emails i
		LEFT JOIN outbound_emails o ON o.inbound_num = i.num AND o.kind = 'reply'
		WHERE i.num > ? ORDER BY i.num`, h.w.checked.mail) {
		h.mails[r[1]] = append(h.mails[r[1]], heldMail{r[2], r[3], r[4], r[5]})
		h.w.checked.mail = r[0]
	}
}

// readRuns reads the lines that the shell commands have written, one each.
func (h *held) readRuns() {
	paths, err := filepath.Glob(filepath.Join(h.w.dir, "workspaces", "*", "runs"))
	if err != nil {
		h.w.t.Fatal(err)
	}
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			h.w.t.Fatal(err)
		}
		for mark := range strings.Lines(string(data)) {
			h.runs[strings.TrimSpace(mark)]++
		}
	}
}

// once returns the turn of an errand. It fails the test unless there is exactly one. An errand that
// was neither promised nor completed may have none.
func (h *held) once(mark string, promised bool) (t heldTurn, ok bool) {
	list := h.turns[mark]
	delete(h.turns, mark)
	if len(list) == 0 && !promised {
		return t, false // the process died before it received the errand
	}
	if len(list) != 1 {
		h.w.t.Errorf("%s: %d turns, promised: %v", mark, len(list), promised)
		return t, false
	}
	if t = list[0]; t.worker == h.w.hooked {
		h.delivered(t)
	}
	return t, true
}

// ended calls once for errands whose turn runs. ok is false for a turn that failed after three
// kills, because the service promises no more.
func (h *held) ended(mark string, promised bool) (t heldTurn, ok bool) {
	if t, ok = h.once(mark, promised); !ok {
		return t, false
	}
	if t.failure == "interrupted" && t.claims >= 3 {
		h.w.sum.givenUp++
		return t, false
	}
	return t, true
}

// completed calls ended for errands that end well.
func (h *held) completed(mark string, promised bool) (t heldTurn, ok bool) {
	if t, ok = h.ended(mark, promised); !ok {
		return t, false
	}
	if t.status != "completed" || !strings.Contains(t.output, mark) {
		h.w.t.Errorf("%s: turn %s is %s, %s: %q", mark, t.id, t.status, t.failure, t.output)
		return t, false
	}
	return t, true
}

// delivered fails the test unless the webhook receiver got the turn, with one id.
func (h *held) delivered(t heldTurn) {
	told := h.w.hook.of(t.id)
	if len(told) != 1 {
		h.w.t.Errorf("turn %s, %s: its end was told under %d ids: %v", t.id, t.status, len(told), told)
	}
	for _, n := range told {
		h.w.sum.deliveries += n
	}
}

func (j *job) check(w *world, h *held) {
	if j.acknowledged {
		w.sum.acknowledged++
	}
	t, ok := h.completed(j.mark, j.acknowledged || j.again)
	if t.task != "" && j.task != "" && j.task != t.task {
		w.t.Errorf("%s: is task %s and was said to be %s", j.mark, t.task, j.task)
	}
	if n := h.runs[j.mark]; n > 1 || !j.counts && n > 0 {
		w.t.Errorf("%s: a command ran %d times", j.mark, n)
	}
	if !ok {
		return
	}
	if t.steps != j.steps {
		w.t.Errorf("%s: %d steps of %d", j.mark, t.steps, j.steps)
		return
	}
	calls := h.calls[t.num]
	if j.counts && h.runs[j.mark] == 0 && calls[0] != "interrupted" && !strings.HasPrefix(calls[0], "stopped: ") {
		w.t.Errorf("%s: the command is %s in the journal, and has not run", j.mark, calls[0])
	}
	if j.file != "" {
		if got := strings.Join(h.files[t.num], ", "); got != "attached "+j.mark+".txt" {
			w.t.Errorf("%s: has the files %q", j.mark, got)
		}
		if !strings.Contains(t.output, j.mark+" ") {
			w.t.Errorf("%s: the attachment was not read: %.200q", j.mark, t.output)
		}
	}
	if j.edits > 0 {
		j.checkEdits(w, t, calls, h.files[t.num])
	}
}

// checkEdits requires that each edit is in the file as often as the journal has it: once, or at
// most once for an interrupted one.
func (j *job) checkEdits(w *world, t heldTurn, calls, files []string) {
	log, err := os.ReadFile(filepath.Join(w.dir, "workspaces", t.worker, "log-"+j.mark))
	if err != nil || len(calls) != j.steps-1 {
		w.t.Errorf("%s: %d calls in the journal: %v", j.mark, len(calls), err)
		return
	}
	rest := string(log)
	for i := range j.edits {
		var done bool
		rest, done = strings.CutPrefix(rest, fmt.Sprintf("<%d>", i))
		if !done && calls[1+i] != "interrupted" {
			w.t.Errorf("%s: edit %d is %s in the journal and not in the file: %s", j.mark, i, calls[1+i], log)
		}
	}
	if rest != "END" || len(files) != 1 {
		w.t.Errorf("%s: an edit was made twice, or %d files published: %s", j.mark, len(files), log)
	}
}

func (e *scheduleErrand) check(w *world, h *held) {
	w.sum.firings++
	if t, ok := h.completed(e.mark, true); ok && t.trigger != "schedule" {
		w.t.Errorf("%s: was triggered by %s", e.mark, t.trigger)
	}
}

// check accepts a turn that had failed after three kills before the cancel arrived.
func (e *cancelErrand) check(w *world, h *held) {
	if t, ok := h.ended(e.mark, true); ok && t.status != "aborted" {
		w.t.Errorf("%s: turn %s was cancelled and is %s, %s", e.mark, t.id, t.status, t.failure)
	}
}

func (e *mailErrand) check(w *world, h *held) {
	t, _ := h.completed(e.mark, true)
	list := h.mails[e.messageID()]
	if len(list) == 0 { // the store keeps it without the brackets
		list = h.mails[strings.Trim(e.messageID(), "<>")]
	}
	// A mail that was sent again after a kill is listed as a copy.
	copies := len(list)
	list = slices.DeleteFunc(list, func(m heldMail) bool { return m.status == "ignored" && m.turn == "" })
	if copies -= len(list); copies >= e.tries {
		w.t.Errorf("%s: %d copies after %d tries", e.mark, copies, e.tries)
	}
	if len(list) != 1 || list[0].status != "accepted" || list[0].turn != t.num || list[0].sent != "sent" {
		w.t.Errorf("%s: turn %s, mails %+v", e.mark, t.num, list)
		return
	}
	n := w.relay.copies("<" + list[0].reply + "@localhost>")
	if n == 0 || n > e.tries+2 {
		w.t.Errorf("%s: the relay has got %d copies of the reply %s", e.mark, n, list[0].reply)
	}
	w.sum.mails, w.sum.copies = w.sum.mails+1, w.sum.copies+n-1
}

// check compares the errands of this round with the stored state after all work has ended.
func (w *world) check() {
	w.t.Helper()
	h := w.read()
	for _, e := range w.errands {
		w.sum.errands++
		e.check(w, h)
	}
	w.errands = nil
	for mark, turns := range h.turns {
		if mark != "" { // turns of the regular schedules have none
			w.t.Errorf("%s: turns that nobody asked for: %+v", mark, turns)
		}
	}
}

// A regular is a repeating schedule.
type regular struct {
	input string
	first time.Time
}

const regularSeconds = 1

// keepHours creates repeating schedules.
func (w *world) keepHours(n int) {
	w.t.Helper()
	for i := range n {
		input := offlineScript(fmt.Sprintf("say regular %d", i))
		a, err := w.now.post(w.t.Context(), "/api/workers/"+w.plain+"/schedules", map[string]any{"input": input,
			"when": map[string]any{"type": "interval", "intervalSeconds": regularSeconds}})
		var made struct{ NextRunAt time.Time }
		is.New(w.t).NoErr(err)
		decodeReply(w.t, a, &made)
		w.hours = append(w.hours, regular{input, made.NextRunAt})
	}
}

// checkHours requires that each repeating schedule has fired at most once for each due time, and in
// every period. A late firing may be in the next period, beside that period's own.
func (w *world) checkHours() {
	w.t.Helper()
	for _, r := range w.hours {
		due := map[int64]string{}
		for _, row := range w.rows(`SELECT id, created_at FROM turns WHERE triggered_by = 'schedule'
			AND input = ? ORDER BY created_at`, r.input) {
			ms, _ := strconv.ParseInt(row[1], 10, 64) // SQLite returns an integer
			n := (ms - r.first.UnixMilli()) / (regularSeconds * 1000)
			if due[n] != "" && due[n-1] == "" {
				due[n-1] = due[n] // it was late
				due[n] = ""
			}
			if due[n] != "" || ms < r.first.UnixMilli() {
				w.t.Errorf("%s: due time %d started the turns %s and %s", r.input, n, due[n], row[0])
			}
			due[n] = row[0]
			w.sum.firings++
		}
		if len(due) < w.sum.rounds {
			w.t.Errorf("%s: fired %d times in %d rounds", r.input, len(due), w.sum.rounds)
		}
	}
}

// leftovers matches names of files that only an unfinished write has.
var leftovers = regexp.MustCompile(`^[^.].*\.tmp$|^new-`)

// checkFolder requires that a stopped program leaves only the files that the database knows in the
// data folder.
func (w *world) checkFolder() {
	w.t.Helper()
	known := map[string]bool{}
	for _, r := range w.rows(`SELECT sha256 FROM files UNION SELECT sha256 FROM call_images
		UNION SELECT source_sha256 FROM inbound_emails UNION SELECT source_sha256 FROM outbound_emails`) {
		known[r[0]] = true
	}
	unknown, stored := 0, filepath.Join(w.dir, "files")
	err := filepath.WalkDir(w.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && leftovers.MatchString(d.Name()) {
			w.t.Errorf("%s is left", path)
		}
		if err == nil && strings.HasPrefix(path, stored) && len(d.Name()) == 64 && !known[d.Name()] {
			unknown++ // stored for an interrupted request; deleted after a day
		}
		return err
	})
	is.New(w.t).NoErr(err)
	if unknown > w.sum.rounds {
		w.t.Errorf("%d stored files belong to nothing after %d kills", unknown, w.sum.rounds)
	}
}
