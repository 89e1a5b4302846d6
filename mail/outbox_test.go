package mail

import (
	"fmt"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
)

// queueReplies ends n turns that mails have started, so that n replies are due. Call it before the
// server of the store starts.
func queueReplies(t testing.TB, st *store.Store, n int) (turns []store.Turn) {
	t.Helper()
	is := is.New(t)
	ctx := t.Context()
	owner, _ := storetest.Caller(t, st, "Rival", "rik@rival.test", store.RoleOwner)
	w, _, err := st.CreateWorker(ctx, owner.Caller, store.NewWorker{Title: "Scribe"}, store.IdempotencyKey{})
	is.NoErr(err)
	is.NoErr(st.StartRunner(ctx, "run", time.Minute))
	for i := range n {
		turn := &store.NewTurn{Caller: store.Caller{OrganizationID: owner.OrganizationID, Trigger: store.TriggerEmail},
			WorkerID: w.ID, Input: "Hello", Budget: store.BudgetLow}
		_, _, err = st.ReceiveEmails(ctx, []store.NewEmail{{Worker: w, Turn: turn, MessageID: fmt.Sprintf("%d@x", i),
			From: "bob@example.net", ReplyTo: "bob@example.net", Verdicts: []byte(`{}`)}}, []byte("mail"), store.MailLimits{})
		is.NoErr(err)
		claims, err := st.ClaimTurns(ctx, "run", 1)
		is.NoErr(err)
		_, err = st.FinishTurn(ctx, claims[0], nil, store.Outcome{Status: store.Completed, OutputText: "Hi"})
		is.NoErr(err)
		turns = append(turns, claims[0].Turn)
	}
	return turns
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
		queueReplies(t, cfg.Store, 1)
		var err error
		claimed, err = cfg.Store.ClaimReplies(t.Context(), 10, replyLease)
		is.NoErr(err)
		cfg.Relay = h.relay
	})
	is.Equal(len(claimed), 1)
	storetest.Eventually(t, "the reply", func() bool { return h.count() == 1 })
}
