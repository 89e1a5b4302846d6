//go:build linux

package command_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/storetest"
)

// The limits of a server for any input.
const (
	hostileLimit  = 512 << 20       // bytes that the server and its children may use
	hostileServer = 300 << 20       // bytes of the server alone, at its peak
	hostileCPU    = 5 * time.Second // for one input, children included
	hostileHealth = time.Second     // for an answer of /healthz, at any time
)

// An attack is a hostile input in one way.
type attack struct {
	name string
	send func(*victim)
}

// A victim is a server under attack.
type victim struct {
	*instance
	t       *testing.T
	session string // the cookie of the Owner
	worker  string
	smtp    string
	web     *httptest.Server
	page    atomic.Pointer[servedPage] // what web answers
	sent    int                        // mails so far

	accepted, kept, fetched int // mails that started work, held mails that were opened, pages that were downloaded
}

// A servedPage is an answer of the web.
type servedPage struct {
	contentType string
	body        []byte
}

// TestHostileCorpus sends inputs that could cost a naive server its memory, its time or its life.
// The server survives and keeps its limits.
func TestHostileCorpus(t *testing.T) {
	storetest.Long(t)
	t.Parallel()
	h := newVictim(t)
	attacks := slices.Concat(pageAttacks(), mailAttacks(), pdfAttacks(), bodyAttacks(), schemaAttacks(),
		answerAttacks())
	names := map[string]bool{}
	for _, a := range attacks {
		if names[a.name] {
			t.Errorf("two attacks are called %q", a.name)
		}
		names[a.name] = true
	}
	if len(attacks) < 150 {
		t.Errorf("%d attacks are too few", len(attacks))
	}
	h.fetch("application/pdf", []byte("%PDF-1.4\n")) // the first document waits until its reader is compiled
	health := watchHealth(t, h.url)
	var worst cost
	for _, a := range attacks {
		begun := time.Now()
		h.resetPeak()
		before := h.cpu()
		a.send(h)
		c := cost{a.name, h.cpu() - before, h.peak()}
		if testing.Verbose() {
			t.Logf("%-60s %5.2f s, CPU %5.2f s, %3d MiB", a.name, time.Since(begun).Seconds(), c.cpu.Seconds(),
				c.memory>>20)
		}
		if c.cpu > hostileCPU || c.memory > hostileServer {
			t.Errorf("%s costs %s of CPU and %d MiB", a.name, c.cpu, c.memory>>20)
		}
		worst = cost{"", max(worst.cpu, c.cpu), max(worst.memory, c.memory)}
		select {
		case <-h.exited:
			t.Fatalf("%s ended the server\nstderr: %s", a.name, lastLines(h.stderr.String()))
		default:
		}
	}
	slowest := health()
	if h.accepted < 50 || h.kept < 50 || h.fetched < 50 {
		t.Errorf("%d mails started work, %d were kept and %d pages read: the attacks did not get in", h.accepted,
			h.kept, h.fetched)
	}
	t.Logf("%d attacks: at most %s of CPU and %d MiB each; /healthz answered within %s", len(attacks), worst.cpu,
		worst.memory>>20, slowest)
	if slowest > hostileHealth {
		t.Errorf("/healthz took %s", slowest)
	}
	v := h.mustPost(t, "/api/tasks", map[string]any{"input": offlineScript("say still here")})
	if v.OutputText != "still here" {
		t.Errorf("the server answers %q", v.OutputText)
	}
	h.stop(t)
}

// A cost is the cost of an attack for the server.
type cost struct {
	name   string
	cpu    time.Duration
	memory uint64
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	h := &victim{t: t}
	h.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p := h.page.Load()
		w.Header().Set("Content-Type", p.contentType)
		_, _ = w.Write(p.body) // the server may have closed the connection
	}))
	t.Cleanup(h.web.Close)
	dir := t.TempDir()
	// The runtime knows the limit, as in a container.
	h.instance = invocation{env: []string{"GOMEMLIMIT=400MiB"}}.serve(t, dir, testKey, "--data", dir, "--addr",
		"127.0.0.1:0", "--api-key", testKey,
		"--rate-limit", "0", "--admin-password", "a long password", "--allow-private-network", "--mail-accept",
		"@friend.example",
		"--mail-hold", "--mail-sender-limit", "0", "--mail-thread-limit", "0")
	t.Log(limitMemory(t, h.cmd.Process.Pid))
	h.smtp = h.await(t, h.stdout, regexp.MustCompile(`(?i)mail.*(127\.0\.0\.1:\d+)`))[1]
	h.session = h.signIn(t, "owner@localhost", "a long password")
	is.New(t).True(h.session != "")
	h.worker = h.mustPost(t, "/api/workers", map[string]any{"title": "Victim", "instructions": "Help."}).ID
	return h
}

func lastLines(s string) string { return s[max(0, len(s)-3000):] }

// fetch makes a worker read a web page.
func (h *victim) fetch(contentType string, body []byte) {
	h.page.Store(&servedPage{contentType, body})
	a, err := h.post(h.t.Context(), "/api/tasks", map[string]any{"input": offlineScript(
		toolLine("web_fetch", map[string]any{"url": h.web.URL + "/page"}), "say done")})
	h.answered(a, err)
	var v seenRun
	if json.Unmarshal(a.body, &v) == nil && v.OutputText == "done" {
		h.fetched++
	}
}

// answered fails the test if an answer reports an internal failure.
func (h *victim) answered(a reply, err error) {
	h.t.Helper()
	if err != nil || a.status >= 500 && a.status != http.StatusServiceUnavailable {
		h.t.Errorf("answered %d, %v: %.300s\nstderr: %s", a.status, err, a.body, lastLines(h.stderr.String()))
	}
}

// mail sends a mail from a trusted sender, and waits for the end of its task and its reply.
func (h *victim) mail(raw string) {
	h.t.Helper()
	id, _ := h.submit("ann@friend.example", raw)
	if id == "" {
		return
	}
	if h.email(id).TaskID != nil {
		h.accepted++
	}
	storetest.Eventually(h.t, "the end of the task of "+id, func() bool {
		e := h.email(id)
		if e.TaskID == nil {
			return e.Status != "accepted" // the mail may be ignored
		}
		v := h.mustGet(h.t, "/api/tasks/"+*e.TaskID)
		return v.Task.Status != "pending" && v.Task.Status != "running"
	})
}

// held sends a mail from an unknown sender, which is held, and opens it as the Owner.
func (h *victim) held(raw string) {
	h.t.Helper()
	if id, _ := h.submit("eve@stranger.example", raw); id != "" {
		h.kept++
		h.look("/mail/messages/" + id)
	}
}

// look opens a page as the Owner.
func (h *victim) look(path string) {
	h.t.Helper()
	a, err := h.send(h.t.Context(), http.MethodGet, path, nil, "Cookie", h.session)
	if err != nil || a.status != http.StatusOK || len(a.body) > 4<<20 {
		h.t.Errorf("%s answered %d with %d bytes, %v", path, a.status, len(a.body), err)
	}
}

// submit sends a mail over SMTP and returns its id, or its refusal.
func (h *victim) submit(from, raw string) (id string, refused error) {
	h.t.Helper()
	h.sent++
	messageID := fmt.Sprintf("hostile%d@test", h.sent)
	raw = fmt.Sprintf("Message-ID: <%s>\nX-From: %s\n", messageID, from) + strings.ReplaceAll(raw, "SENDER", from)
	raw = strings.ReplaceAll(strings.ReplaceAll(raw, "\r\n", "\n"), "\n", "\r\n")
	if err := sendMail(h.smtp, from, h.worker+"@localhost", raw); err != nil {
		if !regexp.MustCompile(`(?m)^[45]\d\d `).MatchString(err.Error()) {
			h.t.Errorf("a mail was answered with %v\nstderr: %s", err, lastLines(h.stderr.String()))
		}
		return "", err
	}
	a, err := h.send(h.t.Context(), http.MethodGet, "/api/emails?limit=10", nil)
	h.answered(a, err)
	var list struct{ Items []seenEmail }
	if err := json.Unmarshal(a.body, &list); err != nil {
		h.t.Fatalf("%v: %s", err, a.body)
	}
	for _, e := range list.Items {
		if e.Direction == "inbound" {
			return e.ID, nil // the newest mail
		}
	}
	h.t.Errorf("no mail in %s", a.body)
	return "", nil
}

// A seenEmail holds the fields of a mail that the tests read.
type seenEmail struct {
	ID, Direction, Status string
	TaskID                *string
}

func (h *victim) email(id string) (e seenEmail) {
	h.t.Helper()
	a, err := h.send(h.t.Context(), http.MethodGet, "/api/emails/"+id, nil)
	h.answered(a, err)
	if err := json.Unmarshal(a.body, &e); err != nil || e.ID == "" {
		h.t.Fatalf("%v: no mail in %s", err, a.body)
	}
	return e
}

// upload posts a task as a form.
func (h *victim) upload(contentType string, body []byte) reply {
	h.t.Helper()
	a, err := h.send(h.t.Context(), http.MethodPost, "/api/tasks", bytes.NewReader(body), "Content-Type", contentType)
	if err != nil && (errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)) {
		return a // refused before it was sent
	}
	h.answered(a, err)
	return a
}

// asJSON posts bytes as the JSON of a task.
func (h *victim) asJSON(body []byte) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	a, err := h.send(ctx, http.MethodPost, "/api/tasks", bytes.NewReader(body), "Content-Type", "application/json")
	if err != nil && (errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)) {
		return
	}
	h.answered(a, err)
}

// inOrder returns the entries of m in the order of the keys, so that a corpus is the same in each
// run.
func inOrder[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}

// asMail returns the source of a mail whose only part has that type, with lines of any length.
func asMail(contentType string, body []byte) string {
	var b strings.Builder
	b.WriteString("From: SENDER\nTo: victim\nSubject: hostile\nContent-Type: " + contentType +
		"\nContent-Transfer-Encoding: base64\n\n")
	for line := range slices.Chunk([]byte(base64.StdEncoding.EncodeToString(body)), 76) {
		b.Write(append(line, '\n'))
	}
	return b.String()
}
