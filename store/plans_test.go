package store_test

import (
	"database/sql"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
)

// rare is in the statements that commands and the start run, over tables of people
// and keys; bounded is what may be read whole: it holds what runs at one time.
var (
	rare = []string{"SELECT id FROM organizations ORDER BY", "SELECT user_id FROM memberships",
		"SELECT EXISTS (SELECT 1 FROM api_keys)", "WHERE ?1 = '' OR o.name = ?1 ORDER BY k.organization_id", "OR prefix = ?1 OR hash =",
		"FROM users u LEFT JOIN memberships", "SELECT EXISTS (SELECT 1 FROM users WHERE password_hash IS NOT NULL)"}
	bounded = []string{"SCAN CONSTANT ROW", "SCAN runners", "SCAN turns USING INDEX turns_running"}
)

// withoutSQL are the methods that TestQueriesUseIndexes need not call.
var withoutSQL = []string{"Backup", "Close", "Counters", "Dir", "DiskUse", "LastBackup", "OpenBlob", "PutBlob", "Queued"}

// TestQueriesUseIndexes calls everything the store can do, and asks the database
// how it carries out each statement that was run: none reads a table from end to
// end, and none sorts.
func TestQueriesUseIndexes(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	callEverything(t, f)
	is.NoErr(f.Ping(t.Context()))
	texts := f.PreparedTexts()
	is.True(len(texts) > 60) // they are collected
	db := rawDatabase(t, store.DatabasePath(f.Dir()))
	for _, text := range texts {
		if isQuery.MatchString(text) && !slices.ContainsFunc(rare, func(r string) bool { return strings.Contains(text, r) }) {
			checkPlan(t, db, text)
		}
	}
}

var (
	isQuery  = regexp.MustCompile(`(?i)^\s*(SELECT|WITH|INSERT|UPDATE|DELETE)`)
	scanned  = regexp.MustCompile(`^SCAN (\S+)`)
	numbered = regexp.MustCompile(`\?(\d+)`)
)

func checkPlan(t *testing.T, db *sql.DB, text string) {
	t.Helper()
	parameters := strings.Count(text, "?")
	if explicit := numbered.FindAllStringSubmatch(text, -1); len(explicit) == parameters {
		parameters = 0
		for _, m := range explicit {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			parameters = max(parameters, n)
		}
	}
	rows, err := db.QueryContext(t.Context(), `EXPLAIN QUERY PLAN `+text, make([]any, parameters)...)
	if err != nil {
		t.Errorf("%v: %s", err, text)
		return
	}
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, detail)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, step := range plan {
		m := scanned.FindStringSubmatch(step)
		scans := m != nil && !slices.Contains(bounded, step) && !streamed(plan, m[1])
		if scans || strings.Contains(step, "TEMP B-TREE") {
			t.Errorf("%s\n%s", text, strings.Join(plan, "\n"))
			return
		}
	}
}

// streamed reports whether name is a subquery whose rows come one by one.
func streamed(plan []string, name string) bool { return slices.Contains(plan, "CO-ROUTINE "+name) }

// callEverything calls every method that has SQL, the lists with every filter.
func callEverything(t *testing.T, f *fixture) {
	t.Helper()
	is := is.New(t)
	ctx, owner := t.Context(), f.owner.Caller
	member := f.caller("Acme", "mo@acme.test", store.RoleMember)
	_, err := f.HasKeys(ctx)
	is.NoErr(err)
	_, err = f.HasPasswords(ctx)
	is.NoErr(err)
	secret, err := f.CreateKey(ctx, store.NewKey{Name: "first"})
	is.NoErr(err)
	_, err = f.Authenticate(ctx, secret)
	is.NoErr(err)
	_, err = f.Keys(ctx, "Acme")
	is.NoErr(err)
	_, secret, err = f.RollKey(ctx, secret, "")
	is.NoErr(err)
	_, err = f.RevokeKey(ctx, secret, "")
	is.NoErr(err)
	made, _, err := f.CreateKeyAs(ctx, owner, "second")
	is.NoErr(err)
	_, _, err = f.RollKeyAs(ctx, owner, made.ID)
	is.NoErr(err)
	_, err = f.RevokeKeyAs(ctx, owner, made.ID)
	is.NoErr(err)
	_, _, err = f.OrganizationKeys(ctx, owner, "", 5)
	is.NoErr(err)
	credits := 1e6
	is.NoErr(f.SetCreditCap(ctx, owner.OrganizationID, &credits))
	_, _, err = f.Allowance(ctx, owner.OrganizationID)
	is.NoErr(err)
	is.NoErr(f.MeterCaller(ctx, owner, store.Usage{ModelCost: 1}))
	_, err = f.UsageOn(ctx, owner, f.clock.now())
	is.NoErr(err)
	for _, by := range []store.UsageGroup{store.ByWorker, store.ByKey, store.ByTrigger} {
		_, err = f.Usage(ctx, owner, store.UsageQuery{Days: 7, By: by, Parts: 5})
		is.NoErr(err)
	}
	_, _, err = f.MonthSpending(ctx, owner)
	is.NoErr(err)
	_, err = f.Owner(ctx, "ann@acme.test")
	is.NoErr(err)
	callWorkers(t, f, member)
	callTurns(t, f)
	callApprovals(t, f, member)
	callTasks(t, f, member)
	callSchedules(t, f)
	callWebhooks(t, f)
	callMail(t, f, member)
	is.NoErr(f.SetPassword(ctx, "ann@acme.test", "a long enough password"))
	_, err = f.CheckPassword(ctx, "ann@acme.test", "a long enough password")
	is.NoErr(err)
	_, err = f.PruneIdempotency(ctx, 10)
	is.NoErr(err)
	f.put("of no use", 48*time.Hour)
	_, err = f.ReceivePostmasterEmail(ctx, store.NewEmail{To: "postmaster@localhost"}, nil)
	is.NoErr(err)
	_, err = f.PruneEmails(ctx, time.Hour, 10)
	is.NoErr(err)
	for range 64 { // every folder
		_, err = f.SweepBlobs(ctx)
		is.NoErr(err)
	}
	callSessions(t, f)
	callPeople(t, f)
}

// callPeople also ends the membership of somebody who has something of everything.
func callPeople(t *testing.T, f *fixture) {
	t.Helper()
	is := is.New(t)
	ctx, owner := t.Context(), f.owner
	_, token, err := f.CreateInvitation(ctx, owner.Caller, "new@acme.test", store.RoleAdmin)
	is.NoErr(err)
	joined, err := f.AcceptInvitation(ctx, token, store.NewUser{Name: "New", Password: "a long enough password"}, "")
	is.NoErr(err)
	l, _, err := f.CreateInvitation(ctx, owner.Caller, "next@acme.test", store.RoleMember)
	is.NoErr(err)
	_, err = f.Invitations(ctx, owner.Caller)
	is.NoErr(err)
	is.NoErr(f.RevokeInvitation(ctx, owner.Caller, l.ID))
	_, token, err = f.CreateInvitation(ctx, owner.Caller, "ann@globex.test", store.RoleMember)
	is.NoErr(err)
	_, err = f.Link(ctx, store.LinkInvitation, token)
	is.NoErr(err)
	_, err = f.AcceptInvitationAs(ctx, token, f.caller("Globex", "ann@globex.test", store.RoleOwner).UserID, "")
	is.NoErr(err)
	_, token, err = f.CreateResetAs(ctx, owner.Caller, joined.UserID)
	is.NoErr(err)
	_, err = f.ChoosePassword(ctx, store.LinkReset, token, store.NewUser{Password: "a long enough password"}, "")
	is.NoErr(err)
	_, token, err = f.CreateReset(ctx, store.LinkWelcome, "ann@acme.test")
	is.NoErr(err)
	_, err = f.ChoosePassword(ctx, store.LinkWelcome, token, store.NewUser{Email: "ann@new.test", Password: "a long enough password"}, "")
	is.NoErr(err)
	owner.Email = "ann@new.test"
	is.NoErr(f.ChangePassword(ctx, owner, "", "a long enough password", "another long password"))
	is.NoErr(f.RenameUser(ctx, owner.Caller, "Ann A."))
	_, _, err = f.Colleagues(ctx, owner.Caller, "", 5)
	is.NoErr(err)
	_, err = f.Colleague(ctx, owner.Caller, joined.UserID)
	is.NoErr(err)
	_, err = f.Users(ctx)
	is.NoErr(err)
	_, err = f.ChangeRole(ctx, owner.Caller, joined.UserID, store.RoleOwner)
	is.NoErr(err)
	_, err = f.RemoveMember(ctx, owner.Caller, joined.UserID)
	is.NoErr(err)
	o, _, err := f.OrganizationSettings(ctx, owner.Caller)
	is.NoErr(err)
	is.NoErr(f.UpdateOrganization(ctx, owner.Caller, o))
	for _, q := range []store.AuditQuery{{}, {Action: "key.create"}, {Action: "key.create", Email: "ann@new.test"}, {Email: "ann@new.test", After: f.clock.now(), Before: f.clock.now()}} {
		_, _, err = f.AuditLog(ctx, owner.Caller, q)
		is.NoErr(err)
	}
	_, err = f.PruneLinks(ctx, 10)
	is.NoErr(err)
}

func callSessions(t *testing.T, f *fixture) {
	t.Helper()
	is := is.New(t)
	ctx, owner := t.Context(), f.owner.Caller
	_, err := f.CreateSession(ctx, owner.UserID, "Browser/1", "127.0.0.1")
	is.NoErr(err)
	token, err := f.CreateSession(ctx, owner.UserID, "Browser/1", "127.0.0.1")
	is.NoErr(err)
	_, id, err := f.SessionIdentity(ctx, token)
	is.NoErr(err)
	_, err = f.Sessions(ctx, owner.UserID)
	is.NoErr(err)
	_, err = f.Organizations(ctx, owner.UserID)
	is.NoErr(err)
	is.NoErr(f.SwitchOrganization(ctx, owner, id, owner.OrganizationID))
	is.NoErr(f.EndOtherSessions(ctx, owner, id))
	is.NoErr(f.EndSession(ctx, owner, id))
	_, err = f.PruneSessions(ctx, 10)
	is.NoErr(err)
}

func callWorkers(t *testing.T, f *fixture, member store.Identity) {
	t.Helper()
	is := is.New(t)
	ctx, owner := t.Context(), f.owner.Caller
	w, _, err := f.CreateWorker(ctx, owner, store.NewWorker{}, store.Once{KeyID: owner.KeyID, Key: "a", Hash: hash("a")})
	is.NoErr(err)
	_, _, err = f.CreateWorker(ctx, owner, store.NewWorker{}, store.Once{KeyID: owner.KeyID, Key: "a", Hash: hash("a")})
	is.NoErr(err)
	_, err = f.Worker(ctx, owner, w.ID)
	is.NoErr(err)
	private, text := store.Private, "x"
	_, err = f.UpdateWorker(ctx, owner, w.ID, store.WorkerPatch{Visibility: &private, Instructions: &text})
	is.NoErr(err)
	_, err = f.AddWorkerMember(ctx, owner, w.ID, member.UserID)
	is.NoErr(err)
	_, err = f.WorkerMember(ctx, owner, w.ID, member.UserID)
	is.NoErr(err)
	_, err = f.WorkerMembers(ctx, owner, w.ID)
	is.NoErr(err)
	_, err = f.Worker(ctx, member.Caller, w.ID)
	is.NoErr(err)
	for _, text := range []string{"", "x"} {
		_, _, err = f.Workers(ctx, member.Caller, store.WorkerQuery{Text: text, Limit: 5})
		is.NoErr(err)
	}
	_, err = f.InviteWorkerMember(ctx, owner, w.ID, "mo@acme.test")
	is.NoErr(err)
	_, err = f.WorkerCreator(ctx, owner, w.ID)
	is.NoErr(err)
	_, _, err = f.FilesByWorker(ctx, owner, w.ID, "", 5)
	is.NoErr(err)
	_, err = f.RemoveWorkerMember(ctx, owner, w.ID, member.UserID)
	is.NoErr(err)
	is.NoErr(f.DeleteWorker(ctx, owner, w.ID))
}

func callTurns(t *testing.T, f *fixture) {
	t.Helper()
	is := is.New(t)
	ctx, owner := t.Context(), f.owner.Caller
	n := f.turn()
	n.Once = store.Once{KeyID: owner.KeyID, Hash: hash("b"), Retry: true}
	n.Attachments = []store.File{{Path: "a", SHA256: sha("a")}}
	first := f.accept(n)
	_, _, err := f.Lookup(ctx, n.Once)
	is.NoErr(err)
	_, err = f.Replay(ctx, n.Once)
	is.NoErr(err)
	is.NoErr(f.Remember(ctx, n.Once, first.ID))
	next := f.follow(first)
	again := f.turn()
	again.Continue = true
	f.accept(again)
	_, err = f.TargetWorker(ctx, again)
	is.NoErr(err)
	is.NoErr(f.StartRunner(ctx, "r", time.Minute))
	claims := f.claim("r", 2)
	is.NoErr(f.KeepOffer(ctx, claims[0], []byte(`{}`)))
	_, err = f.Offer(ctx, first.Num)
	is.NoErr(err)
	is.NoErr(f.JournalStep(ctx, claims[0], toolStep(f, 0)))
	call := store.Call{State: store.CallCompleted, Output: []byte("1"), Cost: 2}
	is.NoErr(f.JournalCompaction(ctx, claims[0], store.Compaction{Kind: store.CompactionOmission, BeforeStep: 1, Usage: store.Usage{ModelCost: 1}}))
	is.NoErr(f.JournalCall(ctx, claims[0], call, []store.File{{Path: "b", SHA256: sha("b")}}, []store.Source{{ID: "s", URL: "u"}}))
	last := toolStep(f, 1)
	_, err = f.FinishTurn(ctx, claims[0], &last, store.Outcome{Status: store.Completed})
	is.NoErr(err)
	is.NoErr(f.RenewLease(ctx, "r", time.Minute))
	is.NoErr(f.StopRunner(ctx, "r"))
	is.NoErr(f.StartRunner(ctx, "r2", time.Minute))
	is.Equal(len(f.claim("r2", 1)), 1)
	is.NoErr(f.StartRunner(ctx, "r3", time.Minute)) // takes it back
	f.follow(first)
	_, _, err = f.AbortTask(ctx, owner, first.TaskID)
	is.NoErr(err)
	_, err = f.Turn(ctx, next.ID)
	is.NoErr(err)
	_, err = f.TurnEnded(ctx, next.ID)
	is.NoErr(err)
	_, err = f.Turns(ctx, first.TaskNum)
	is.NoErr(err)
	_, err = f.TurnAfter(ctx, first.TaskNum, 0)
	is.NoErr(err)
	_, err = f.TurnsSince(ctx, first.WorkerID, 0, 5)
	is.NoErr(err)
	_, err = f.WorkerOfTurn(ctx, first)
	is.NoErr(err)
	_, err = f.Journal(ctx, first.Num)
	is.NoErr(err)
	_, err = f.Compactions(ctx, first.TaskNum)
	is.NoErr(err)
	_, err = f.TurnsBefore(ctx, first.TaskNum, 5, 5)
	is.NoErr(err)
	_, err = f.TurnAt(ctx, first.TaskNum, 0)
	is.NoErr(err)
	_, err = f.JournalPage(ctx, first.Num, 0, 5)
	is.NoErr(err)
	_, err = f.Spans(ctx, first.Num)
	is.NoErr(err)
	_, err = f.WorkerTitle(ctx, first.WorkerID)
	is.NoErr(err)
	_, err = f.UserName(ctx, owner.UserID)
	is.NoErr(err)
	_, err = f.FilesByTurn(ctx, first.Num)
	is.NoErr(err)
	_, err = f.SourcesByTurn(ctx, first.Num)
	is.NoErr(err)
	_, err = f.File(ctx, owner, first.WorkerID, "a", "")
	is.NoErr(err)
}

func callApprovals(t *testing.T, f *fixture, member store.Identity) {
	t.Helper()
	is := is.New(t)
	ctx := t.Context()
	turn := f.accept(f.turn())
	f.startRunner("approvals")
	var c store.Claim
	for _, claim := range f.claim("approvals", 10) {
		if claim.ID == turn.ID {
			c = claim
		}
	}
	st := asking(f, 0, 2, 0, 1)
	is.NoErr(f.JournalStep(ctx, c, st))
	_, _, err := f.RestTurn(ctx, c, 0, f.clock.now())
	is.NoErr(err)
	for _, q := range []store.ApprovalQuery{{Limit: 5}, {TaskID: c.TaskID, Limit: 5}} {
		_, _, err := f.Approvals(ctx, member.Caller, q)
		is.NoErr(err)
	}
	_, err = f.DecideApproval(ctx, f.owner.Caller, c.TaskID, st.Approvals[0].ID, store.Decision{Approved: true})
	is.NoErr(err)
	_, err = f.ExpireRests(ctx, 5)
	is.NoErr(err)
	is.Equal(f.BeginApproved(ctx, c, st.Approvals[0].ID), store.ErrClaimLost)
}

func callTasks(t *testing.T, f *fixture, member store.Identity) {
	t.Helper()
	is := is.New(t)
	ctx := t.Context()
	task, err := f.LatestTask(ctx, f.worker.ID)
	is.NoErr(err)
	_, _, err = f.Task(ctx, member.Caller, task.ID)
	is.NoErr(err)
	_, _, err = f.Task(ctx, member.Caller, "none")
	is.True(store.IsNotFound(err))
	_, err = f.Conversation(ctx, task.Num)
	is.NoErr(err)
	_, err = f.FilesByTask(ctx, task.Num)
	is.NoErr(err)
	for _, q := range []store.TaskQuery{{}, {WorkerID: f.worker.ID}, {Status: store.Pending}, {TriggeredBy: store.TriggerAPI}, {Archived: true},
		{Text: "x", CreatedAfter: f.clock.now(), CreatedBefore: f.clock.now()}, {WorkerID: f.worker.ID, Archived: true}} {
		_, _, err := f.Tasks(ctx, member.Caller, q)
		is.NoErr(err)
	}
	is.NoErr(f.ArchiveTask(ctx, f.owner.Caller, task.ID))
}

func callSchedules(t *testing.T, f *fixture) {
	t.Helper()
	is := is.New(t)
	ctx, owner := t.Context(), f.owner.Caller
	n := store.NewSchedule{WorkerID: f.worker.ID, Input: "x", Budget: store.BudgetLow, When: everySeconds(1)}
	sch, _, err := f.CreateSchedule(ctx, owner, n, store.Once{})
	is.NoErr(err)
	n.When = cronAt("* * * * *")
	cron, _, err := f.CreateSchedule(ctx, owner, n, store.Once{})
	is.NoErr(err)
	_, err = f.Schedule(ctx, owner, f.worker.ID, sch.ID)
	is.NoErr(err)
	f.clock.advance(time.Hour)
	_, _, err = f.NextScheduleAt(ctx)
	is.NoErr(err)
	f.caller("Other", "eve@other.test", store.RoleOwner)
	due, err := f.DueSchedules(ctx, 2, 0)
	is.NoErr(err)
	for _, d := range due {
		_, err = f.FireSchedule(ctx, d)
		is.NoErr(err)
		is.NoErr(f.DelaySchedule(ctx, d, time.Second))
	}
	setCap(t, f, 0)
	f.clock.advance(time.Hour)
	due, err = f.DueSchedules(ctx, 2, 1)
	is.NoErr(err)
	_, err = f.FireSchedule(ctx, due[0])
	is.NoErr(err)
	setCap(t, f, 1e6)
	f.exec(`UPDATE schedules SET timezone = 'Asia/Tokyo' WHERE id = ?`, cron.ID)
	_, err = f.RealignSchedules(ctx)
	is.NoErr(err)
	_, err = f.RunSchedule(ctx, owner, f.worker.ID, sch.ID, store.Once{})
	is.NoErr(err)
	_, err = f.UpdateSchedule(ctx, owner, f.worker.ID, sch.ID, store.SchedulePatch{})
	is.NoErr(err)
	_, err = f.Schedules(ctx, owner, f.worker.ID)
	is.NoErr(err)
	is.NoErr(f.CancelSchedule(ctx, owner, f.worker.ID, sch.ID))
	is.True(f.ScheduleRoom() > 0)
	is.Equal(f.Timezone(), "UTC")
	f.CheckWhen(new(store.Fields), n.When)
	_, err = f.NextRuns(sch, 1)
	is.NoErr(err)
}

func callMail(t *testing.T, f *fixture, member store.Identity) {
	t.Helper()
	is := is.New(t)
	ctx, owner := t.Context(), f.owner.Caller
	box, err := f.Mailbox(ctx, f.worker.ID)
	is.NoErr(err)
	writer, _, err := f.MailCaller(ctx, box.OrganizationID, "ann@acme.test")
	is.NoErr(err)
	writer.Trigger = store.TriggerEmail
	turn := store.NewTurn{Caller: writer, WorkerID: box.ID, Input: "Hello", Budget: store.BudgetLow}
	limits := store.MailLimits{PerThread: 5, PerSender: 5}
	mail := store.NewEmail{Worker: box, Turn: &turn, MessageID: "a@b.test", From: "ann@acme.test", To: "w@localhost", ReplyTo: "ann@acme.test"}
	held := mail
	held.Turn, held.Status, held.MessageID = nil, store.EmailHeld, "b@b.test"
	list, _, err := f.ReceiveEmails(ctx, []store.NewEmail{mail, held}, []byte("source"), limits)
	is.NoErr(err)
	task, _, err := f.MailTask(ctx, box, list[0].TaskID)
	is.NoErr(err)
	_, _, err = f.MailThread(ctx, box.ID, []string{"a@b.test", list[0].ID + "@localhost"})
	is.NoErr(err)
	_, err = f.InThread(ctx, task.Num, "ann@acme.test")
	is.NoErr(err)
	_, err = f.EmailKnown(ctx, box.ID, "a@b.test")
	is.NoErr(err)
	_, err = f.EmailSource(ctx, list[0])
	is.NoErr(err)
	_, err = f.Email(ctx, member.Caller, list[0].ID)
	is.NoErr(err)
	_, err = f.Releasable(ctx, owner, list[1].ID)
	is.NoErr(err)
	turn.TaskID = task.ID
	_, err = f.ReleaseEmail(ctx, owner, list[1].ID, turn)
	is.NoErr(err)
	callReplies(t, f)
	for _, q := range []store.EmailQuery{{}, {Direction: store.Outbound}, {Status: store.EmailHeld}, {WorkerID: box.ID, Status: store.EmailSent}} {
		_, _, err := f.Emails(ctx, member.Caller, q)
		is.NoErr(err)
	}
}

// callReplies ends the turns that wait, and answers the mails that made them.
func callReplies(t *testing.T, f *fixture) {
	t.Helper()
	is := is.New(t)
	ctx := t.Context()
	is.NoErr(f.StartRunner(ctx, "post", time.Minute))
	for claims := f.claim("post", 10); len(claims) > 0; claims = f.claim("post", 10) {
		for _, c := range claims {
			f.finish(c)
		}
	}
	_, waits, err := f.RepliesDue(ctx)
	is.NoErr(err)
	is.True(waits)
	replies, err := f.ClaimReplies(ctx, 5, time.Minute)
	is.NoErr(err)
	is.Equal(len(replies), 2)
	is.NoErr(f.ComposeReply(ctx, &replies[0], "Re", []byte("answer")))
	_, err = f.EmailSource(ctx, replies[0].Email)
	is.NoErr(err)
	is.NoErr(f.RetryReply(ctx, replies[1], f.clock.now(), "later"))
	is.NoErr(f.EndReply(ctx, replies[0], store.EmailSent, ""))
	is.NoErr(f.BounceReply(ctx, replies[0].WorkerID, []string{replies[0].ID + "@localhost"}, "unknown"))
	_, err = f.SendAgain(ctx, f.owner.Caller, replies[0].ID)
	is.NoErr(err)
}

func callWebhooks(t *testing.T, f *fixture) {
	t.Helper()
	is := is.New(t)
	ctx, owner := t.Context(), f.owner.Caller
	f.OnDelivery(func(string) {})
	_, err := f.SetWebhook(ctx, owner, f.worker.ID, "https://a.example/")
	is.NoErr(err)
	_, _, err = f.RenewWebhook(ctx, owner, f.worker.ID, store.Once{})
	is.NoErr(err)
	_, err = f.Webhook(ctx, owner, f.worker.ID)
	is.NoErr(err)
	f.accept(f.turn())
	f.startRunner("w")
	f.finish(f.claim("w", 1)[0])
	_, _, _, err = f.NextDelivery(ctx, "")
	is.NoErr(err)
	_, _, err = f.WorkerDelivery(ctx, f.worker.ID)
	is.NoErr(err)
	due, err := f.DueDeliveries(ctx, f.worker.ID, 10)
	is.NoErr(err)
	_, _, err = f.CurrentDelivery(ctx, due[0])
	is.NoErr(err)
	_, _, _, err = f.DeliverySubject(ctx, due[0])
	is.NoErr(err)
	e, err := f.RecordAttempt(ctx, due[0], store.Attempt{Retry: f.clock.now()})
	is.NoErr(err)
	_, err = f.RecordAttempts(ctx, nil, nil)
	is.NoErr(err)
	_, _, err = f.Executions(ctx, owner, f.worker.ID, 1)
	is.NoErr(err)
	_, err = f.Execution(ctx, owner, f.worker.ID, e.ID)
	is.NoErr(err)
	_, _, _, err = f.Exchange(ctx, owner, f.worker.ID, e.ID)
	is.NoErr(err)
	_, err = f.ExecutedDelivery(ctx, owner, f.worker.ID, e.ID)
	is.NoErr(err)
	_, err = f.CreateTestDelivery(ctx, owner, f.worker.ID)
	is.NoErr(err)
	_, err = f.PruneDeliveries(ctx, time.Hour, 10)
	is.NoErr(err)
	_, err = f.RemoveWebhook(ctx, owner, f.worker.ID)
	is.NoErr(err)
}

// TestEveryMethodIsCalledHere keeps callEverything complete.
func TestEveryMethodIsCalledHere(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	source, err := os.ReadFile("plans_test.go")
	is.NoErr(err)
	file, err := parser.ParseFile(token.NewFileSet(), "plans_test.go", source, 0)
	is.NoErr(err)
	called := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			called[s.Sel.Name] = true
		}
		return true
	})
	called["CreateTurn"], called["ClaimTurns"] = true, true // by f.accept and f.claim
	fromTests := []string{"Write", "Waiting", "Ints", "Strings", "PreparedTexts", "UnnamedBlobs", "BlobPath", "Recount", "SetMost", "FillHashing"}
	for _, m := range methods(reflect.TypeFor[*store.Store]()) {
		if !called[m] && !slices.Contains(withoutSQL, m) && !slices.Contains(fromTests, m) {
			t.Errorf("callEverything does not call %s, so nobody looks at its queries", m)
		}
	}
}

func methods(t reflect.Type) (names []string) {
	for i := range t.NumMethod() {
		names = append(names, t.Method(i).Name)
	}
	return names
}
