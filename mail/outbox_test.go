package mail

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// queueReplies ends n turns that mails have started with an answer, so that n replies are due. Call it before the
// server of the store starts.
func queueReplies(t testing.TB, st *store.Store, n int, answer string) (turns []store.Turn) {
	t.Helper()
	is := is.New(t)
	ctx := t.Context()
	owner, _ := storetest.Caller(t, st, "Rival", "rik@rival.test", people.RoleOwner)
	w, _, err := st.Workers.CreateWorker(ctx, owner.Caller, workers.NewWorker{Title: "Scribe"}, db.IdempotencyKey{})
	is.NoErr(err)
	is.NoErr(st.StartRunner(ctx, "run", time.Minute))
	for i := range n {
		turn := &store.NewTurn{Caller: people.Caller{OrganizationID: owner.OrganizationID, Trigger: people.TriggerEmail},
			WorkerID: w.ID, Input: "Hello", Budget: store.BudgetLow}
		_, _, err = st.ReceiveEmails(ctx, []store.NewEmail{{Worker: w, Turn: turn, MessageID: fmt.Sprintf("%d@x", i),
			From: "bob@example.net", ReplyTo: "bob@example.net", Verdicts: []byte(`{}`)}}, []byte("mail"), store.MailLimits{})
		is.NoErr(err)
		claims, err := st.ClaimTurns(ctx, "run", 1, 1)
		is.NoErr(err)
		_, err = st.FinishTurn(ctx, claims[0], nil, store.Outcome{Status: store.Completed, OutputText: answer})
		is.NoErr(err)
		turns = append(turns, claims[0].Turn)
	}
	return turns
}

// replyOf returns a turn's reply: its id, its status, the reason, the attempts, and 1 if it is claimed.
func (p *post) replyOf(turn store.Turn) []string {
	p.t.Helper()
	return storetest.Rows(p.t, p.store.Dir(), `SELECT id, status, error_message, attempts, claimed FROM outbound_emails
		WHERE turn_num = (SELECT num FROM turns WHERE id = ?)`, turn.ID)[0]
}

// TestReplyAfterKill has a process die after it has claimed a reply. The next one sends it at
// once, although the lease of the claim lasts for minutes.
func TestReplyAfterKill(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newHub(t, false)
	var claimed []store.Reply
	newPost(t, true, func(cfg *Config) {
		// Nothing has started yet: this is the dead process.
		queueReplies(t, cfg.Store, 1, "Hi")
		var err error
		claimed, err = cfg.Store.Effects.ClaimReplies(t.Context(), 10, replyLease)
		is.NoErr(err)
		cfg.Relay = h.relay
	})
	is.Equal(len(claimed), 1)
	storetest.Eventually(t, "the reply", func() bool { return h.count() == 1 })
}

// TestReplyWithDamagedRecord damages the turn of the first of three replies. The others are sent, and the
// first gets an attempt.
func TestReplyWithDamagedRecord(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t) // a database server cannot ignore the constraints of its schema
	last := len(retryDelays())
	for name, tt := range map[string]struct {
		attempts int // before
		status   store.EmailStatus
		reason   string
	}{
		"first attempt": {0, store.EmailQueued, "the records of the reply cannot be read"},
		"last attempt": {last, store.EmailFailed,
			fmt.Sprintf("given up after %d attempts: the records of the reply cannot be read", last+1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			h := newHub(t, false)
			var turns []store.Turn
			p := newPost(t, true, func(cfg *Config) {
				turns = queueReplies(t, cfg.Store, 3, "Hi")
				storetest.Exec(t, cfg.Store, `PRAGMA ignore_check_constraints = 1;
					UPDATE turns SET own_folder = 7 WHERE id = '`+turns[0].ID+`'`)
				storetest.Exec(t, cfg.Store, `UPDATE outbound_emails SET attempts = ?
					WHERE turn_num = (SELECT num FROM turns WHERE id = ?)`, tt.attempts, turns[0].ID)
				cfg.Relay = h.relay
			})
			storetest.Eventually(t, "the other replies", func() bool { return h.count() == 2 })
			storetest.Eventually(t, "the reason", func() bool { return p.replyOf(turns[0])[2] != "" })
			// The number of attempts shows that the reply is not claimed again soon.
			is.Equal(p.replyOf(turns[0])[1:4], []string{string(tt.status), tt.reason, strconv.Itoa(tt.attempts + 1)})
		})
	}
}

// TestShutdownWhileComposing stops a server while it renders a reply. The reply is not stored with
// incomplete HTML.
func TestShutdownWhileComposing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		hangs bool // the renderer ignores the end of its context
		want  []string
	}{
		"the renderer ends":  {false, []string{"queued", "the service stopped", "1", "0"}},
		"the renderer hangs": {true, []string{"queued", "", "1", "1"}}, // the next start releases the claim
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			begun, release := make(chan struct{}), make(chan struct{})
			var turns []store.Turn
			p := newPost(t, true, func(cfg *Config) {
				turns = queueReplies(t, cfg.Store, 1, strings.Repeat("> ", 1000)+"x")
				cfg.Markdown = func(ctx context.Context, _ []byte) ([]byte, error) {
					close(begun)
					if tt.hangs {
						<-release
					} else {
						<-ctx.Done()
					}
					return nil, errors.New("interrupted")
				}
			})
			<-begun
			id := p.replyOf(turns[0])[0]
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.hangs {
				cancel() // the grace period is over
			}
			err := p.Shutdown(ctx)
			is.Equal(errors.Is(err, context.Canceled), tt.hangs)
			is.Equal(err != nil && strings.Contains(err.Error(), id), tt.hangs) // the error names the reply
			is.Equal(p.Close() != nil, tt.hangs)
			close(release)
			p.loops.Wait()
			is.Equal(p.replyOf(turns[0])[1:], tt.want) // nothing is written after Shutdown has returned
		})
	}
}
