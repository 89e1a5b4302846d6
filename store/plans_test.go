package store_test

import (
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/gate"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// rare contains parts of statements that only commands and the start run, over tables of users and
// keys. bounded contains permitted scans of small tables, whose size depends on the current load.
var (
	rare = []string{"SELECT id FROM organizations ORDER BY", "SELECT user_id FROM memberships",
		"SELECT EXISTS (SELECT 1 FROM api_keys)", "WHERE ?1 = '' OR o.name = ?1 ORDER BY k.organization_id", "OR prefix = ?1 OR hash =",
		"FROM users u LEFT JOIN memberships", "SELECT EXISTS (SELECT 1 FROM users WHERE password_hash IS NOT NULL)"}
	bounded = []string{"SCAN CONSTANT ROW", "SCAN runners", "SCAN turns USING INDEX turns_running", "SCAN below", "SCAN counted",
		"SCAN j VIRTUAL TABLE INDEX 1:", "SCAN json_each VIRTUAL TABLE INDEX 1:", // a batch
		"SCAN oauth_clients USING COVERING INDEX oauth_clients_by_use"}
)

// withoutSQL lists methods that TestQueriesUseIndexes need not call.
var withoutSQL = []string{"Announce", "Disk", "Forget", "KnownCap", "SweepWorkspaces", "AwaitWritable", "AwaitWrites",
	"BeginMaintenance", "Leads", "NewTurnID", "NodeURL", "Resign", "Shared", "EndMaintenance", "InMaintenance",
	"Maintenance", "ReadOnly", "ReadOnlyCodes", "Room", "RoomIn", "QueueRoom", "DiskOf", "Writable", "WritableIn", "OnServer", "Storable",
	"Archive", "BackupRuns", "NoteBackup", "SaveBackupRuns", "VerifyArchive",
	"AlertURL", "Backup", "CheckDatabase", "CheckDueTables", "Close", "Counters", "Damage", "Dir", "EndPruning", "LastBackup", "LastPruning", "MeasureStorage", "OpenBlob", "PreviewRuns", "PutBlob", "Queued", "QueueCounts", "ReturnSpace", "Sizes", "Space", "Storage", "WriteStats"}

// TestQueriesUseIndexes calls every method of the store, and checks the query plan of each
// statement. No statement may scan a whole table or sort.
func TestQueriesUseIndexes(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	f := newFixtureWith(t, store.Options{OrgDisk: gate.DiskLimit{Bytes: 1 << 40}})
	callEverything(t, f)
	pruneEverything(t, f)
	is.NoErr(f.Ping(t.Context()))
	texts := f.PreparedTexts()
	ordertest.Above(is, len(texts), 60) // the statements are collected
	db := storetest.OpenFile(t, store.DatabasePath(f.Dir()))
	for _, text := range texts {
		line := strings.Join(strings.Fields(text), " ") // without line breaks
		checkSubset(t, line)
		if isQuery.MatchString(text) && !slices.ContainsFunc(rare, func(r string) bool { return strings.Contains(line, r) }) {
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
	is := is.New(t)
	parameters := strings.Count(text, "?")
	if explicit := numbered.FindAllStringSubmatch(text, -1); len(explicit) == parameters {
		parameters = 0
		for _, m := range explicit {
			n, err := strconv.Atoi(m[1])
			is.NoErr(err)
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
		is.NoErr(rows.Scan(&id, &parent, &unused, &detail))
		plan = append(plan, detail)
	}
	is.NoErr(rows.Err())
	for _, step := range plan {
		m := scanned.FindStringSubmatch(step)
		scans := m != nil && !slices.Contains(bounded, step) && !streamed(plan, m[1])
		if scans || strings.Contains(step, "TEMP B-TREE") {
			t.Errorf("%s\n%s", text, strings.Join(plan, "\n"))
			return
		}
	}
}

// streamed reports whether name is a subquery whose rows are not materialized.
func streamed(plan []string, name string) bool { return slices.Contains(plan, "CO-ROUTINE "+name) }

// callEverything calls every method that runs SQL, and the lists with every filter.
func callEverything(t *testing.T, f *fixture) {
	t.Helper()
	is := is.New(t)
	ctx, owner := t.Context(), f.owner.Caller
	member := f.caller("Acme", "mo@acme.test", people.RoleMember)
	callNodes(t, f)
	is.NoErr(errOf(f.DiskOfWorker(ctx, f.worker.ID)))
	is.NoErr(f.MeasureOrganizations(ctx))
	is.NoErr(errOf(f.People.HasKeys(ctx)))
	is.NoErr(errOf(f.Backlog(ctx)))
	is.NoErr(errOf(f.People.HasPasswords(ctx)))
	is.NoErr(errOf(f.People.CreateFirstKey(ctx, people.NewKey{Name: "First"}))) // there is one
	set, err := f.People.SetFirstPassword(ctx, f.owner.Email, "a new password 4711")
	is.NoErr(err)
	is.True(set)
	_, secret, err := f.People.CreateKey(ctx, people.Operator(), people.NewKey{Name: "first"})
	is.NoErr(err)
	is.NoErr(errOf(f.People.Authenticate(ctx, secret)))
	is.NoErr(errOf(f.People.Keys(ctx, "Acme")))
	_, secret, err = f.People.RollKey(ctx, people.Operator(), secret)
	is.NoErr(err)
	is.NoErr(errOf(f.People.RevokeKey(ctx, people.Operator(), secret)))
	made, _, err := f.People.CreateKey(ctx, owner, people.NewKey{Name: "second"})
	is.NoErr(err)
	is.NoErr(errOf(f.People.RollKey(ctx, owner, made.ID)))
	is.NoErr(errOf(f.People.RevokeKey(ctx, owner, made.ID)))
	is.NoErr(errOf(f.People.OrganizationKeys(ctx, owner, "", 5)))
	f.setCap(1e6)
	is.NoErr(errOf(f.People.Allowance(ctx, owner.OrganizationID)))
	is.NoErr(errOf(f.TaskCounts(ctx, member.Caller)))
	is.NoErr(errOf(f.LastTurn(ctx, f.accept(f.turn()))))
	is.NoErr(errOf(f.Approvals(ctx, member.Caller, store.ApprovalQuery{Mine: true, Limit: 5})))
	is.NoErr(errOf(f.SearchFiles(ctx, owner, "a", 5)))
	is.NoErr(errOf(f.People.FirstSteps(ctx, owner)))
	is.NoErr(f.People.HideFirstSteps(ctx, owner))
	is.NoErr(errOf(f.Effects.WorkerActivity(ctx, f.worker)))
	pinned := f.newWorker(f.owner, workers.NewWorker{Title: "Pinned"})
	is.NoErr(f.Workers.PinWorker(ctx, owner, pinned.ID))
	is.NoErr(errOf(f.Workers.Pins(ctx, owner)))
	is.NoErr(f.Workers.UnpinWorker(ctx, owner, pinned.ID))
	is.NoErr(f.Effects.MeterCaller(ctx, owner, store.Usage{ModelCost: 1}))
	is.NoErr(errOf(f.Effects.UsageOn(ctx, owner, f.clock.now())))
	for _, by := range []store.UsageGroup{store.ByWorker, store.ByKey, store.ByTrigger} {
		is.NoErr(errOf(f.Effects.Usage(ctx, owner, store.UsageQuery{Days: 7, By: by, Parts: 5})))
	}
	is.NoErr(errOf(f.People.MonthSpending(ctx, owner)))
	is.NoErr(errOf(f.People.Owner(ctx, "ann@acme.test")))
	callSecrets(t, f)
	callProviders(t, f)
	callOAuth(t, f)
	callWorkers(t, f, member)
	callTurns(t, f)
	callApprovals(t, f, member)
	callOutages(t, f)
	callTeam(t, f)
	callTasks(t, f, member)
	callSchedules(t, f)
	callWebhooks(t, f)
	callAlerts(t, f)
	callMail(t, f, member)
	is.NoErr(f.People.SetPassword(ctx, "ann@acme.test", "a long enough password"))
	is.NoErr(errOf(f.People.CheckPassword(ctx, "ann@acme.test", "a long enough password")))
	is.NoErr(errOf(f.PruneIdempotency(ctx, 10)))
	f.put("of no use", 48*time.Hour)
	_, err = f.ReceivePostmasterEmail(ctx, store.NewEmail{To: "postmaster@localhost", Verdicts: []byte(`{}`)}, nil)
	is.NoErr(err)
	is.NoErr(errOf(f.Effects.PruneEmails(ctx, time.Hour, 10)))
	for range 64 { // every folder
		is.NoErr(errOf(f.SweepBlobs(ctx)))
	}
	callSessions(t, f)
	callPeople(t, f)
}

func callProviders(t *testing.T, f *fixture) {
	t.Helper()
	is := is.New(t)
	ctx, owner := t.Context(), f.owner.Caller
	p, err := f.Workers.AddProvider(ctx, owner, workers.NewProvider{Name: "mine", Kind: workers.KindOpenAI,
		Key: "sk-12345678"})
	is.NoErr(err)
	is.NoErr(f.Workers.RecordProviderTest(ctx, owner, p, workers.ProviderTest{}, []workers.ListedModel{{Name: "m"}},
		"mine:m"))
	window := int64(4096)
	is.NoErr(errOf(f.Workers.UpdateProvider(ctx, owner, "mine", workers.ProviderPatch{ContextWindow: &window})))
	is.NoErr(errOf(f.Workers.Providers(ctx, owner)))
	is.NoErr(errOf(f.Workers.OrganizationModels(ctx, owner.OrganizationID)))
	ordertest.Above(is, f.Workers.ModelChanges(), 0) // the runner is notified of the changes
	is.NoErr(f.Workers.SetDefaultModels(ctx, owner, "mine:m", ""))
	is.NoErr(errOf(f.Workers.RemoveProvider(ctx, owner, "mine")))
	is.NoErr(errOf(f.People.OperatorOf(ctx, "Acme")))
	is.NoErr(errOf(f.People.OperatorOf(ctx, "")))
}

// callPeople also ends the membership of a user who has records of every kind.
func callPeople(t *testing.T, f *fixture) {
	t.Helper()
	is := is.New(t)
	ctx, owner := t.Context(), f.owner
	_, token, err := f.People.CreateInvitation(ctx, owner.Caller, "new@acme.test", people.RoleAdmin)
	is.NoErr(err)
	joined, err := f.People.AcceptInvitation(ctx, people.Caller{}, token, people.NewUser{Name: "New",
		Password: "a long enough password"})
	is.NoErr(err)
	l, _, err := f.People.CreateInvitation(ctx, owner.Caller, "next@acme.test", people.RoleMember)
	is.NoErr(err)
	is.NoErr(errOf(f.People.Invitations(ctx, owner.Caller)))
	is.NoErr(f.People.RevokeInvitation(ctx, owner.Caller, l.ID))
	_, token, err = f.People.CreateInvitation(ctx, owner.Caller, "ann@globex.test", people.RoleMember)
	is.NoErr(err)
	is.NoErr(errOf(f.People.Link(ctx, people.LinkInvitation, token)))
	_, err = f.People.AcceptInvitation(ctx, people.Caller{UserID: f.caller("Globex", "ann@globex.test",
		people.RoleOwner).UserID}, token, people.NewUser{})
	is.NoErr(err)
	_, token, err = f.People.CreatePasswordLink(ctx, owner.Caller, people.LinkReset, joined.UserID)
	is.NoErr(err)
	_, err = f.People.ChoosePassword(ctx, people.LinkReset, token, people.NewUser{Password: "a long enough password"}, "")
	is.NoErr(err)
	_, token, err = f.People.CreatePasswordLink(ctx, people.Operator(), people.LinkWelcome, "ann@acme.test")
	is.NoErr(err)
	_, err = f.People.ChoosePassword(ctx, people.LinkWelcome, token, people.NewUser{Name: "Ann", Email: "ann@new.test",
		Password: "a long enough password"}, "")
	is.NoErr(err)
	owner.Email = "ann@new.test"
	is.NoErr(f.People.ChangePassword(ctx, owner, "", "a long enough password", "another long password"))
	is.NoErr(f.People.RenameUser(ctx, owner.Caller, "Ann A."))
	is.NoErr(f.People.SetPreferences(ctx, owner.Caller, people.Preferences{Theme: "dark", Language: "de"}))
	is.NoErr(errOf(f.People.Members(ctx, owner.Caller, "", 5)))
	is.NoErr(errOf(f.People.Member(ctx, owner.Caller, joined.UserID)))
	is.NoErr(errOf(f.People.Users(ctx)))
	is.NoErr(errOf(f.People.ChangeRole(ctx, owner.Caller, joined.UserID, people.RoleOwner)))
	is.NoErr(errOf(f.People.RemoveMember(ctx, owner.Caller, joined.UserID)))
	o, _, err := f.People.OrganizationSettings(ctx, owner.Caller)
	is.NoErr(err)
	is.NoErr(f.People.UpdateOrganization(ctx, owner.Caller, o))
	for _, q := range []people.AuditQuery{{}, {Action: "key.create"}, {Action: "key.create", Email: "ann@new.test"},
		{Email: "ann@new.test", After: f.clock.now(), Before: f.clock.now()}} {
		entries, _, err := f.People.AuditLog(ctx, owner.Caller, q)
		is.NoErr(err)
		is.NoErr(errOf(f.People.AuditNames(ctx, owner.Caller, entries)))
	}
	for _, id := range []string{"wrk_x", "key_x", "msg_x", "usr_x", "tsk_x"} {
		is.NoErr(errOf(f.People.AuditNames(ctx, owner.Caller, []people.AuditEntry{{Subject: id}})))
	}
	is.NoErr(errOf(f.People.PruneLinks(ctx, 10)))
}

func callSessions(t *testing.T, f *fixture) {
	t.Helper()
	is := is.New(t)
	ctx, owner := t.Context(), f.owner.Caller
	is.NoErr(errOf(f.People.CreateSession(ctx, owner, "Browser/1")))
	token, err := f.People.CreateSession(ctx, owner, "Browser/1")
	is.NoErr(err)
	_, id, err := f.People.SessionIdentity(ctx, token)
	is.NoErr(err)
	is.NoErr(errOf(f.People.Sessions(ctx, owner)))
	is.NoErr(errOf(f.People.Organizations(ctx, owner)))
	is.NoErr(f.People.SwitchOrganization(ctx, owner, id, owner.OrganizationID))
	is.NoErr(f.People.EndOtherSessions(ctx, owner, id))
	is.NoErr(f.People.EndSession(ctx, owner, id))
	is.NoErr(errOf(f.People.PruneSessions(ctx, 10)))
}

func callWorkers(t *testing.T, f *fixture, member people.Identity) {
	t.Helper()
	is := is.New(t)
	ctx, owner := t.Context(), f.owner.Caller
	w, _, err := f.Workers.CreateWorker(ctx, owner, workers.NewWorker{}, db.IdempotencyKey{KeyID: owner.KeyID, Key: "a",
		Hash: hash("a")})
	is.NoErr(err)
	_, _, err = f.Workers.CreateWorker(ctx, owner, workers.NewWorker{}, db.IdempotencyKey{KeyID: owner.KeyID, Key: "a",
		Hash: hash("a")})
	is.NoErr(err)
	is.NoErr(errOf(f.Workers.Worker(ctx, owner, w.ID)))
	private, text := workers.Private, "x"
	is.NoErr(errOf(f.Workers.UpdateWorker(ctx, owner, w.ID, workers.Patch{Visibility: &private, Instructions: &text})))
	is.NoErr(errOf(f.Workers.AddWorkerMember(ctx, owner, w.ID, member.UserID)))
	is.NoErr(errOf(f.Workers.WorkerMember(ctx, owner, w.ID, member.UserID)))
	is.NoErr(errOf(f.Workers.WorkerMembers(ctx, owner, w.ID)))
	is.NoErr(errOf(f.Workers.Worker(ctx, member.Caller, w.ID)))
	for _, text := range []string{"", "x"} {
		for _, origin := range []workers.Origin{"", workers.CreatedOrigin, workers.TaskOrigin} {
			is.NoErr(errOf(f.Workers.List(ctx, member.Caller, workers.Query{Text: text, Origin: origin, Limit: 5})))
		}
	}
	is.NoErr(errOf(f.Workers.InviteWorkerMember(ctx, owner, w.ID, "mo@acme.test")))
	_, _, err = f.ImportWorker(ctx, owner, workers.NewWorker{}, []store.NewSchedule{{Input: "x", Budget: store.BudgetLow,
		When: everySeconds(60), Paused: true}},
		"https://example.com/hook", db.IdempotencyKey{})
	is.NoErr(err)
	is.NoErr(errOf(f.Workers.WorkerVersions(ctx, owner, w.ID, "", 5)))
	is.NoErr(errOf(f.Workers.WorkerVersion(ctx, owner, w.ID, 1)))
	is.NoErr(errOf(f.Workers.RestoreVersion(ctx, owner, w.ID, 1, nil, db.IdempotencyKey{})))
	is.NoErr(errOf(f.Workers.WorkerCreator(ctx, owner, w.ID)))
	is.NoErr(errOf(f.FilesByWorker(ctx, owner, w.ID, "", 5)))
	is.NoErr(errOf(f.Workers.RemoveWorkerMember(ctx, owner, w.ID, member.UserID)))
	is.NoErr(f.DeleteWorker(ctx, owner, w.ID))
	is.NoErr(errOf(f.AbortQueued(ctx, w.ID, 10)))
	is.NoErr(errOf(f.UnfinishedTasks(ctx, w.ID)))
}

func callTurns(t *testing.T, f *fixture) {
	t.Helper()
	is := is.New(t)
	ctx, owner := t.Context(), f.owner.Caller
	n := f.turn()
	n.IdempotencyKey = db.IdempotencyKey{KeyID: owner.KeyID, Hash: hash("b"), Retry: true}
	n.Attachments = []store.File{{Path: "a", SHA256: sha("a")}}
	first := f.accept(n)
	is.NoErr(errOf(f.Lookup(ctx, n.IdempotencyKey)))
	is.NoErr(errOf(f.Replay(ctx, n.IdempotencyKey)))
	is.NoErr(f.Remember(ctx, n.IdempotencyKey, first.ID))
	next := f.follow(first)
	again := f.turn()
	again.Continue = true
	f.accept(again)
	is.NoErr(errOf(f.TargetFolder(ctx, &again)))
	f.ownFolder(store.Folder{WorkerID: f.worker.ID, TaskID: "none"}, 48*time.Hour)
	is.NoErr(errOf(f.SweepFolders(ctx)))
	is.NoErr(f.StartRunner(ctx, "r", time.Minute))
	claims := f.claim("r", 2)
	is.NoErr(f.KeepToolset(ctx, claims[0], []byte(`{}`), []byte(`{}`)))
	_, _, err := f.Toolset(ctx, claims[0])
	is.NoErr(err)
	is.NoErr(f.BeginCall(ctx, claims[0], 1, 1))
	is.NoErr(f.ChargeCall(ctx, claims[0], store.Usage{InputTokens: 1}))
	is.NoErr(f.JournalStep(ctx, claims[0], toolStep(f, 0)))
	call := store.Call{State: store.CallCompleted, Output: []byte("1"), Cost: 2, Images: []store.Image{{MediaType: "image/png", Size: 1, SHA256: sha("i")}}}
	is.NoErr(f.JournalCompaction(ctx, claims[0], store.Compaction{Kind: store.CompactionOmission, BeforeStep: 1, Usage: store.Usage{ModelCost: 1}}))
	is.NoErr(f.JournalCall(ctx, claims[0], call, []store.File{{Path: "b", SHA256: sha("b")}}, []store.Source{{ID: "s", URL: "u"}}))
	last := toolStep(f, 1)
	is.NoErr(errOf(f.FinishTurn(ctx, claims[0], &last, store.Outcome{Status: store.Completed})))
	is.NoErr(f.RenewLease(ctx, "r", time.Minute))
	is.NoErr(f.EndLeases(ctx))
	is.NoErr(f.ReturnTurn(ctx, store.Claim{RunnerID: "r"}))
	is.NoErr(f.StopRunner(ctx, "r"))
	is.NoErr(f.StartRunner(ctx, "r2", time.Minute))
	is.Equal(len(f.claim("r2", 1)), 1)
	is.NoErr(f.StartRunner(ctx, "r3", time.Minute)) // it takes the turn back
	f.follow(first)
	is.NoErr(errOf(f.AbortTask(ctx, owner, first.TaskID)))
	is.NoErr(errOf(f.Turn(ctx, next.ID)))
	is.NoErr(errOf(f.TurnEnded(ctx, next.ID)))
	is.NoErr(errOf(f.Turns(ctx, first)))
	is.NoErr(errOf(f.TaskTurns(ctx, f.owner.Caller, first.TaskID)))
	is.NoErr(errOf(f.NextTurn(ctx, first)))
	is.NoErr(errOf(f.TurnsSince(ctx, first.WorkerID, 0, 5)))
	is.NoErr(errOf(f.WorkerOfTurn(ctx, first)))
	is.NoErr(errOf(f.Journal(ctx, first)))
	is.NoErr(errOf(f.Compactions(ctx, first)))
	is.NoErr(errOf(f.TurnsBefore(ctx, first, 5, 5)))
	is.NoErr(errOf(f.TurnAt(ctx, first, 0)))
	is.NoErr(errOf(f.JournalPage(ctx, first, 0, 5)))
	is.NoErr(errOf(f.Spans(ctx, first)))
	is.NoErr(errOf(f.WorkerTitle(ctx, store.Task{WorkerID: first.WorkerID})))
	is.NoErr(errOf(f.People.UserName(ctx, owner.UserID)))
	is.NoErr(errOf(f.FilesByTurn(ctx, first)))
	is.NoErr(errOf(f.SourcesByTurn(ctx, first)))
	is.NoErr(errOf(f.IsFileOf(ctx, first.WorkerID, "a", sha("a"))))
	is.NoErr(errOf(f.File(ctx, owner, first.WorkerID, "a", "")))
}

func callSecrets(t *testing.T, f *fixture) {
	t.Helper()
	is := is.New(t)
	ctx, owner := t.Context(), f.owner.Caller
	for _, worker := range []string{"", f.worker.ID} {
		for range 2 { // create, then change
			is.NoErr(errOf(f.Workers.SetSecret(ctx, owner, workers.NewSecret{WorkerID: worker, Name: "KEY", Value: "12345678"})))
		}
		is.NoErr(errOf(f.Workers.Secrets(ctx, owner, worker)))
	}
	turn := store.Turn{OrganizationID: owner.OrganizationID, WorkerID: f.worker.ID}
	is.NoErr(errOf(f.Workers.TurnSecrets(ctx, turn.OrganizationID, turn.WorkerID)))
	is.NoErr(errOf(f.Workers.DeleteSecret(ctx, owner, f.worker.ID, "KEY")))
	is.NoErr(f.People.SetMCPLogin(ctx, "docs", []byte("login")))
	is.NoErr(errOf(f.People.MCPLogin(ctx, "docs")))
	is.NoErr(f.People.AuditMCPLogin(ctx, owner, "docs", true))
	is.NoErr(f.AuditBackup(ctx, owner))
	is.NoErr(f.People.SetMCPLogin(ctx, "docs", nil))
}

func callOAuth(t *testing.T, f *fixture) {
	t.Helper()
	is := is.New(t)
	ctx, owner := t.Context(), f.owner.Caller
	const redirect, verifier = "https://client.example/back", "a-verifier-of-at-least-43-characters-as-PKCE-wants"
	client, err := f.People.RegisterOAuthClient(ctx, "Client", []string{redirect})
	is.NoErr(err)
	is.NoErr(errOf(f.People.OAuthClient(ctx, client.ID)))
	sum := sha256.Sum256([]byte(verifier))
	challenge := base64.RawURLEncoding.EncodeToString(sum[:])
	code, err := f.People.Consent(ctx, owner, people.Consent{ClientID: client.ID, RedirectURI: redirect,
		CodeChallenge: challenge})
	is.NoErr(err)
	tokens, err := f.People.ExchangeCode(ctx, people.OAuthExchange{ClientID: client.ID, Code: code, RedirectURI: redirect,
		Verifier: verifier}, "")
	is.NoErr(err)
	tokens, err = f.People.RefreshTokens(ctx, client.ID, tokens.Refresh, "")
	is.NoErr(err)
	is.NoErr(errOf(f.People.AuthenticateMCP(ctx, tokens.Access)))
	grants, err := f.People.OAuthGrants(ctx, owner)
	is.NoErr(err)
	is.NoErr(f.People.RevokeToken(ctx, client.ID, tokens.Refresh, ""))
	is.True(db.IsKind(f.People.RevokeOAuthGrant(ctx, owner, grants[0].ID), db.NotFound) ||
		f.People.RevokeOAuthGrant(ctx, owner, grants[0].ID) == nil) // already revoked
	is.NoErr(errOf(f.People.PruneOAuth(ctx, 5)))
}

// claimOf claims all queued turns, and returns the claim of one of them.
func (f *fixture) claimOf(runner string, turn store.Turn) store.Claim {
	f.t.Helper()
	claims := f.claim(runner, 100)
	return claims[slices.IndexFunc(claims, func(c store.Claim) bool { return c.ID == turn.ID })]
}

func callApprovals(t *testing.T, f *fixture, member people.Identity) {
	t.Helper()
	is := is.New(t)
	ctx := t.Context()
	turn := f.accept(f.turn())
	f.startRunner("approvals")
	c := f.claimOf("approvals", turn)
	is.NoErr(errOf(f.QueuePlace(ctx, turn)))
	f.AskByMail()
	st := asking(f, 0, 2, 0, 1)
	is.NoErr(f.JournalStep(ctx, c, st))
	is.NoErr(errOf(f.SuspendTurn(ctx, c, 0, f.clock.now())))
	for _, q := range []store.ApprovalQuery{{Limit: 5}, {TaskID: c.TaskID, Limit: 5}} {
		is.NoErr(errOf(f.Approvals(ctx, member.Caller, q)))
	}
	waiting, err := f.PendingDecisions(ctx, f.owner.Caller)
	is.NoErr(err)
	is.Equal(waiting, int64(2))
	_, err = f.DecideApproval(ctx, f.owner.Caller, c.TaskID, st.Approvals[0].ID, store.Decision{Approved: true, RestOfTask: true})
	is.NoErr(err)
	is.NoErr(errOf(f.Approval(ctx, f.owner.Caller, c.TaskID, st.Approvals[1].ID)))
	is.NoErr(errOf(f.Answerable(ctx, store.Turn{Num: 1})))
	is.NoErr(errOf(f.TaskOfTurn(ctx, c.Turn)))
	is.NoErr(errOf(f.MailedQuestion(ctx, []string{db.NewID("msg", f.clock.now()) + "@localhost"})))
	asking, _, err := f.Task(ctx, f.owner.Caller, c.TaskID)
	is.NoErr(err)
	is.NoErr(errOf(f.AnswersQuestion(ctx, asking, f.owner.Caller, f.owner.Email, nil)))
	token, err := f.DecisionToken(c.Turn, st.Approvals[1], f.owner.UserID)
	is.NoErr(err)
	is.True(db.IsKind(errOf(f.DecisionLink(ctx, token, "")), db.NotFound)) // the turn does not wait any more
	is.NoErr(errOf(f.ExpireSuspended(ctx, 5)))
	is.Equal(f.BeginApproved(ctx, c, st.Approvals[0].ID), store.ErrClaimLost)
}

// callOutages lets a turn wait for its model.
func callOutages(t *testing.T, f *fixture) {
	t.Helper()
	is := is.New(t)
	ctx := t.Context()
	turn := f.accept(f.turn())
	outage := store.Outage{Since: f.clock.now(), Calls: 1}
	is.NoErr(f.SuspendForModel(ctx, f.claimOf("approvals", turn), downUntil(f.clock.now()), outage))
	is.NoErr(errOf(f.Suspended(ctx)))
	is.NoErr(f.RetryNow(ctx, []string{turn.ID}))
	is.NoErr(errOf(f.ResumeDue(ctx, 5)))
}

func callTeam(t *testing.T, f *fixture) {
	t.Helper()
	is := is.New(t)
	ctx := t.Context()
	turn := f.accept(f.turn())
	c := f.claimOf("team", turn)
	is.NoErr(f.JournalStep(ctx, c, toolStep(f, 0)))
	place := store.CallPlace{Turn: c.Turn, RunnerID: c.RunnerID, Step: 0, Call: 0}
	caller, err := f.TurnCaller(ctx, c.Turn)
	is.NoErr(err)
	w, err := f.WorkerNamed(ctx, caller, f.worker.Title)
	is.NoErr(err)
	is.Equal(w.ID, f.worker.ID)
	n := f.turn()
	n.Caller = caller
	is.NoErr(errOf(f.StartChild(ctx, place, n)))
	again, err := f.StartChild(ctx, place, n)
	is.NoErr(err)
	is.True(again.Replayed) // one turn per call
	child, found, err := f.ChildOf(ctx, place)
	is.NoErr(err)
	is.True(found) // by its call
	_, found, err = f.ChildTask(ctx, c.Turn, child.TaskID)
	is.NoErr(err)
	is.True(found) // by its task
	is.NoErr(errOf(f.Parent(ctx, child.Turn)))
	is.NoErr(errOf(f.Children(ctx, c.Turn)))
	is.NoErr(errOf(f.TaskChildren(ctx, c.Turn)))
	is.NoErr(errOf(f.Unfinished(ctx, c.Turn)))
	below, err := f.UnfinishedBelow(ctx, c.Turn)
	is.NoErr(err)
	is.Equal(len(below), 1)
	is.NoErr(errOf(f.Team(ctx, child.Turn)))
	above, err := f.Ancestors(ctx, child.Turn)
	is.NoErr(err)
	is.Equal(len(above), 1)
	token, err := f.CallToken(place)
	is.NoErr(err)
	_, found, err = f.CallOfToken(ctx, token)
	is.NoErr(err)
	is.True(found) // it is a token of this server
	_, found, err = f.CallOfToken(ctx, token[:len(token)-1]+"x")
	is.NoErr(err)
	is.True(!found) // a forged token
	suspended, err := f.SuspendForChildren(ctx, c, []store.Child{child})
	is.NoErr(err)
	is.True(suspended) // until the child has ended
	f.finish(f.claimOne("team"))
	f.finish(f.claimOne("team")) // the parent is queued again
}

func callTasks(t *testing.T, f *fixture, member people.Identity) {
	t.Helper()
	is := is.New(t)
	ctx := t.Context()
	task, err := f.LatestTask(ctx, f.worker)
	is.NoErr(err)
	is.NoErr(errOf(f.Task(ctx, member.Caller, task.ID)))
	is.True(db.IsNotFound(errOf(f.Task(ctx, member.Caller, "none"))))
	is.NoErr(errOf(f.Conversation(ctx, task)))
	is.NoErr(errOf(f.FilesByTask(ctx, task)))
	for _, q := range []store.TaskQuery{{}, {WorkerID: f.worker.ID}, {Status: store.Pending},
		{TriggeredBy: people.TriggerAPI}, {Archived: true}, {WaitingFor: store.WaitForPerson}, {WaitingFor: store.WaitForModel, Archived: true},
		{Text: "x", CreatedAfter: f.clock.now(), CreatedBefore: f.clock.now()}, {WorkerID: f.worker.ID, Archived: true}} {
		is.NoErr(errOf(f.Tasks(ctx, member.Caller, q)))
	}
	is.NoErr(errOf(f.ArchiveTask(ctx, f.owner.Caller, task.ID, "")))
}

func callSchedules(t *testing.T, f *fixture) {
	t.Helper()
	is := is.New(t)
	ctx, owner := t.Context(), f.owner.Caller
	n := store.NewSchedule{WorkerID: f.worker.ID, Input: "x", Budget: store.BudgetLow, When: everySeconds(1)}
	sch, _, err := f.CreateSchedule(ctx, owner, n, db.IdempotencyKey{})
	is.NoErr(err)
	n.When = cronAt("* * * * *")
	cron, _, err := f.CreateSchedule(ctx, owner, n, db.IdempotencyKey{})
	is.NoErr(err)
	is.NoErr(errOf(f.Schedule(ctx, owner, f.worker.ID, sch.ID)))
	f.clock.advance(time.Hour)
	is.NoErr(errOf(f.NextScheduleAt(ctx)))
	f.caller("Other", "eve@other.test", people.RoleOwner)
	due, err := f.DueSchedules(ctx, 2, 0)
	is.NoErr(err)
	for _, d := range due {
		is.NoErr(errOf(f.FireSchedule(ctx, d)))
		is.NoErr(f.DelaySchedule(ctx, d, time.Second))
	}
	f.runAll()
	f.setCap(0)
	f.clock.advance(time.Hour)
	due, err = f.DueSchedules(ctx, 2, 1)
	is.NoErr(err)
	is.NoErr(errOf(f.FireSchedule(ctx, due[0])))
	f.setCap(1e6)
	f.exec(`UPDATE schedules SET timezone = 'Asia/Tokyo' WHERE id = ?`, cron.ID)
	is.NoErr(errOf(f.RealignSchedules(ctx)))
	is.NoErr(errOf(f.ClockSetBack(ctx, time.Minute)))
	is.NoErr(errOf(f.RunSchedule(ctx, owner, f.worker.ID, sch.ID, db.IdempotencyKey{})))
	is.NoErr(errOf(f.UpdateSchedule(ctx, owner, f.worker.ID, sch.ID, store.SchedulePatch{})))
	is.NoErr(errOf(f.Schedules(ctx, owner, f.worker.ID)))
	is.NoErr(f.CancelSchedule(ctx, owner, f.worker.ID, sch.ID))
	is.NoErr(errOf(f.RunningTurns(ctx)))
	ordertest.Above(is, f.ScheduleRoom(), 0) // there is no room for due schedules
	ordertest.Above(is, f.SharedWrites(), 1)
	is.Equal(f.Timezone(), "UTC")
	f.CheckWhen(new(db.Fields), n.When)
	is.NoErr(errOf(f.NextRuns(sch, 1)))
}

func callMail(t *testing.T, f *fixture, member people.Identity) {
	t.Helper()
	is := is.New(t)
	ctx, owner := t.Context(), f.owner.Caller
	box, err := f.Mailbox(ctx, f.worker.ID)
	is.NoErr(err)
	writer, _, err := f.MailCaller(ctx, box.OrganizationID, "ann@acme.test")
	is.NoErr(err)
	writer.Trigger = people.TriggerEmail
	turn := store.NewTurn{Caller: writer, WorkerID: box.ID, Input: "Hello", Budget: store.BudgetLow}
	limits := store.MailLimits{PerThread: 5, PerSender: 5}
	mail := store.NewEmail{Worker: box, Turn: &turn, MessageID: "a@b.test", Content: "a", From: "ann@acme.test", To: "w@localhost", ReplyTo: "ann@acme.test",
		Verdicts: []byte(`{}`)}
	held := mail
	held.Turn, held.Status, held.MessageID, held.Content = nil, store.EmailHeld, "b@b.test", "b"
	held.Network = "192.0.2.7"
	mail.NoticeTo = "ann@acme.test"
	early, author := mail, mail
	early.Turn, early.Status, author.Proven = nil, store.EmailHeld, store.MemberProven
	list, _, err := f.ReceiveEmails(ctx, []store.NewEmail{early, mail, held, mail}, []byte("source"), limits)
	is.NoErr(err)
	list = list[1:]
	task, _, err := f.MailTask(ctx, box, list[0].TaskID)
	is.NoErr(err)
	is.NoErr(errOf(f.MailThread(ctx, box, []string{"a@b.test", list[0].ID + "@localhost"}, store.Unproven,
		func(store.Task, bool) (bool, error) { return false, nil })))
	is.NoErr(errOf(f.InThread(ctx, task, "ann@acme.test")))
	is.NoErr(errOf(f.HasWritten(ctx, task, "ann@acme.test")))
	is.NoErr(errOf(f.EmailKnown(ctx, mail)))
	is.NoErr(errOf(f.Effects.TaskEmails(ctx, task, 10)))
	is.NoErr(errOf(f.Effects.EmailBeginning(ctx, list[0], 10)))
	mailed, err := f.Turn(ctx, list[0].TurnID)
	is.NoErr(err)
	is.NoErr(errOf(f.Sender(ctx, mailed)))
	is.NoErr(errOf(f.Effects.EmailSource(ctx, list[0])))
	is.NoErr(errOf(f.Effects.Email(ctx, member.Caller, list[0].ID)))
	is.NoErr(errOf(f.Releasable(ctx, owner, list[1].ID)))
	turn.TaskID = task.ID
	is.NoErr(errOf(f.ReleaseEmail(ctx, owner, list[1].ID, turn)))
	callReplies(t, f)
	is.NoErr(errOf(f.ReceiveEmails(ctx, []store.NewEmail{author}, []byte("source"), limits)))
	for _, q := range []store.EmailQuery{{}, {Direction: store.Outbound}, {Status: store.EmailHeld}, {WorkerID: box.ID, Status: store.EmailSent}} {
		is.NoErr(errOf(f.Effects.Emails(ctx, member.Caller, q)))
	}
}

// callQuestion lets the turn of a mail ask a question, which another mail answers. It reports false if the
// question was withdrawn, because another mail waits: then the turn has ended.
func callQuestion(t *testing.T, f *fixture, c store.Claim) bool {
	t.Helper()
	is := is.New(t)
	ctx := t.Context()
	st := asking(f, 0, 1, 0)
	st.Parts[1].Input, st.Approvals[0].Kind = []byte(`{"question":"Which?"}`), store.KindQuestion
	is.NoErr(f.JournalStep(ctx, c, st))
	_, suspended, err := f.SuspendTurn(ctx, c, 0, f.clock.now().Add(time.Hour))
	is.NoErr(err)
	if !suspended {
		f.finish(c)
		return false
	}
	who := f.owner.Caller
	who.UserID, who.Trigger = c.CreatedByUserID, people.TriggerEmail
	answer := store.NewEmail{Worker: workers.Worker{ID: c.WorkerID, OrganizationID: c.OrganizationID},
		MessageID: "answer@b.test", From: "ann@acme.test",
		Verdicts: []byte(`{}`),
		Turn:     &store.NewTurn{Caller: who, WorkerID: c.WorkerID, TaskID: c.TaskID, Input: "this"}, Answer: &store.MailAnswer{ApprovalID: st.Approvals[0].ID, Text: "this"}}
	list, _, err := f.ReceiveEmails(ctx, []store.NewEmail{answer}, []byte("this"), store.MailLimits{})
	is.NoErr(err)
	is.Equal(list[0].Answered.Answer, "this")
	return true
}

// callReplies ends the queued turns, and answers the mails that started them.
func callReplies(t *testing.T, f *fixture) {
	t.Helper()
	is := is.New(t)
	ctx := t.Context()
	is.NoErr(f.StartRunner(ctx, "post", time.Minute))
	asked := false
	for claims := f.claim("post", 10); len(claims) > 0; claims = f.claim("post", 10) {
		for _, c := range claims {
			if !asked && c.TriggeredBy == people.TriggerEmail {
				asked = callQuestion(t, f, c)
				continue
			}
			f.finish(c)
		}
	}
	is.True(asked)
	_, waits, err := f.Effects.RepliesDue(ctx)
	is.NoErr(err)
	is.True(waits)
	is.NoErr(errOf(f.Effects.ReleaseReplies(ctx)))
	replies, err := f.Effects.ClaimReplies(ctx, 5, time.Minute)
	is.NoErr(err)
	replies = slices.DeleteFunc(replies, func(r store.Reply) bool { return r.Kind != store.ReplyAnswer })
	is.Equal(len(replies), 2)
	is.NoErr(f.Effects.ComposeReply(ctx, &replies[0], "Re", []byte("answer")))
	is.NoErr(errOf(f.Effects.EmailSource(ctx, replies[0].Email)))
	is.NoErr(f.Effects.RetryReply(ctx, replies[1], f.clock.now(), "later"))
	is.NoErr(f.Effects.KeepReply(ctx, replies[0], "Re", []byte("answer")))
	is.NoErr(f.Effects.EndReply(ctx, replies[0], store.EmailSent, ""))
	is.NoErr(f.Effects.BounceReply(ctx, f.worker, []string{replies[0].ID + "@localhost"}, "unknown"))
	is.NoErr(errOf(f.Effects.SendAgain(ctx, f.owner.Caller, replies[0].ID)))
}

func callWebhooks(t *testing.T, f *fixture) {
	t.Helper()
	is := is.New(t)
	ctx, owner := t.Context(), f.owner.Caller
	f.Effects.OnDelivery(func(string) {})
	f.OnChange(func(string, db.Change) {})
	f.OnInterrupted(func(store.Turn) {})
	f.OnClaimed(func(store.Claim) {})
	f.UseEnvelopes(store.Envelopes{Look: func(store.Folder) store.Listing { return store.Listing{} }, Compose: func(store.EnvelopeFacts) string { return "" }})
	f.accept(f.turn()) // it reads its author
	is.NoErr(errOf(f.Effects.SetWebhook(ctx, owner, f.worker.ID, "https://a.example/")))
	is.NoErr(errOf(f.Effects.RenewWebhook(ctx, owner, f.worker.ID, db.IdempotencyKey{})))
	is.NoErr(errOf(f.Effects.Webhook(ctx, owner, f.worker.ID)))
	f.accept(f.turn())
	f.startRunner("w")
	f.UseSlots(slots("w", 1))
	f.accept(f.turn()) // it reads the queue, and the turn stays queued
	f.finish(f.claim("w", 3)[0])
	is.NoErr(errOf(f.Effects.WaitingWorkers(ctx, "", 10)))
	is.NoErr(errOf(f.Effects.WorkerDelivery(ctx, f.worker.ID)))
	due, err := f.Effects.DueDeliveries(ctx, f.worker.ID, 10)
	is.NoErr(err)
	f.webhook("https://b.example/") // so that the delivery is read again
	is.NoErr(errOf(f.Effects.CurrentDelivery(ctx, due[0])))
	is.NoErr(errOf(f.Effects.DeliverySubject(ctx, due[0])))
	is.NoErr(errOf(f.Effects.DeliveredConversation(ctx, due[0])))
	is.NoErr(f.Effects.RecordAttempts(ctx, []store.MadeAttempt{{Delivery: due[0],
		Attempt: store.Attempt{Retry: f.clock.now()}}}))
	e, err := f.Effects.RecordAttempt(ctx, due[0], store.Attempt{Retry: f.clock.now()})
	is.NoErr(err)
	is.NoErr(errOf(f.Effects.Executions(ctx, owner, f.worker.ID, 1)))
	is.NoErr(errOf(f.Effects.Execution(ctx, owner, f.worker.ID, e.ID)))
	is.NoErr(errOf(f.Effects.Exchange(ctx, owner, f.worker.ID, e.ID)))
	is.NoErr(errOf(f.Effects.ExecutedDelivery(ctx, owner, f.worker.ID, e.ID)))
	is.NoErr(errOf(f.Effects.CreateTestDelivery(ctx, owner, f.worker.ID)))
	is.NoErr(errOf(f.Effects.PruneDeliveries(ctx, time.Hour, 10)))
	is.NoErr(errOf(f.PruneAudit(ctx, time.Hour, 10)))
	is.NoErr(errOf(f.Effects.RemoveWebhook(ctx, owner, f.worker.ID)))
}

// callNodes calls the methods for servers that share a database. They run no statement on a file.
func callNodes(t *testing.T, f *fixture) {
	t.Helper()
	is := is.New(t)
	ctx := t.Context()
	is.NoErr(f.StartRunner(ctx, "run_node", time.Minute))
	is.NoErr(errOf(f.Nodes(ctx)))
	if f.Shared() {
		is.NoErr(errOf(f.Lead(ctx, "run_node")))
	}
	is.NoErr(f.ReleasePlacements(ctx, "run_node", time.Minute))
	is.NoErr(errOf(f.ClockAhead(ctx)))
	is.NoErr(f.Answers(ctx))
	is.NoErr(errOf(f.Peers(ctx)))
	is.NoErr(errOf(f.PlaceHere(ctx, f.worker.ID, "run_node")))
	f.clock.advance(time.Minute)
	is.NoErr(errOf(f.KeepPlaced(ctx, []string{f.worker.ID}, "run_node")))
	is.NoErr(f.GiveUp(ctx, "run_node"))
	is.NoErr(errOf(f.PlaceOf(ctx, f.worker.ID, "run_node")))
	is.NoErr(errOf(f.RequestedAborts(ctx, "run_node")))
	is.NoErr(f.CatchUp(ctx))
	is.NoErr(f.CountQueued(ctx))
	f.setCap(1e6)
	hold := store.Reservation{Account: "a", RunnerID: "run_node", Decide: func(int64, int64) int64 { return 5 }}
	limited, err := f.ReserveFromCap(ctx, f.owner.OrganizationID, hold)
	is.NoErr(err)
	is.True(limited)
	is.NoErr(f.ReserveFromTeam(ctx, f.accept(f.turn()), 100, hold))
	is.NoErr(f.SetReservation(ctx, "a", "run_node", 0))
	is.NoErr(f.StopRunner(ctx, "run_node"))
}

// pruneEverything deletes the tasks that callEverything has ended.
func pruneEverything(t *testing.T, f *fixture) {
	t.Helper()
	is := is.New(t)
	f.clock.advance(100 * 24 * time.Hour)
	n, err := f.PruneTasks(t.Context(), 24*time.Hour)
	is.NoErr(err)
	ordertest.Above(is, n, 0) // otherwise the pruning's statements are not checked
}

// TestEveryMethodIsCalled checks that callEverything is complete.
func TestEveryMethodIsCalled(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	file, err := parser.ParseFile(token.NewFileSet(), "plans_test.go", nil, 0)
	is.NoErr(err)
	called := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			called[s.Sel.Name] = true
		}
		return true
	})
	called["CreateTurn"], called["ClaimTurns"] = true, true // by f.accept and f.claim
	fromTests := []string{"Checkpoint", "EngineStats", "Write", "Waiting", "Ints", "Strings", "PreparedTexts", "UnnamedBlobs", "BlobPath", "Recount",
		"AwaitsWrites", "LoseAnswers"}
	for _, room := range roomsOfStore() {
		for m := range room.Methods() {
			if !called[m.Name] && !slices.Contains(withoutSQL, m.Name) && !slices.Contains(fromTests,
				m.Name) && !inTransaction(m) {
				t.Errorf("callEverything does not call %s, so nobody looks at its queries", m.Name)
			}
		}
	}
}

// roomsOfStore returns the type of the store and those of its rooms that have queries.
func roomsOfStore() []reflect.Type {
	types := []reflect.Type{reflect.TypeFor[*store.Store]()}
	for field := range types[0].Elem().Fields() {
		if field.IsExported() && field.Type != reflect.TypeFor[*gate.Gate]() {
			types = append(types, field.Type)
		}
	}
	return types
}

// inTransaction reports whether a method is part of the transactions of others.
func inTransaction(m reflect.Method) bool {
	for in := range m.Type.Ins() {
		if in == reflect.TypeFor[db.Tx]() || in == reflect.TypeFor[db.Querier]() {
			return true
		}
	}
	return false
}

// TestAcceptingATurnTakesFewStatements lists the statements that accept a turn. Every request takes
// this path, so limits are counted in memory, and the cost does not grow with the queue.
func TestAcceptingATurnTakesFewStatements(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	is.NoErr(f.Ping(t.Context()))
	before := f.PreparedTexts()
	f.accept(f.turn())
	is.NoErr(f.Ping(t.Context())) // the writer is idle
	var run []string
	for _, text := range f.PreparedTexts() {
		// The last use of the key is recorded in a later write, for which no request waits.
		if !slices.Contains(before, text) && !strings.HasPrefix(text, "UPDATE api_keys") {
			run = append(run, strings.Join(strings.Fields(text)[:3], " "))
		}
	}
	slices.Sort(run)
	is.Equal(run, []string{"INSERT INTO tasks", "INSERT INTO turns", "SELECT num, id,"})
}

// TestEndingATurnAsksNoSchedule ends a turn that was not started by a schedule. No statement about
// schedules may run.
func TestEndingATurnAsksNoSchedule(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.accept(f.turn())
	f.runAll()
	is.NoErr(f.Ping(t.Context()))
	for _, text := range f.PreparedTexts() {
		is.True(!strings.Contains(text, "running_task_num"))
	}
}

// callAlerts calls the methods of alerts.
func callAlerts(t *testing.T, f *fixture) {
	t.Helper()
	is := is.New(t)
	ctx, owner := t.Context(), f.owner.Caller
	topics := store.AlertTopics()
	hook, err := f.Effects.AddAlertChannel(ctx, owner, store.NewAlertChannel{URL: "https://hook.example/x",
		Topics: topics, Frequency: store.AlertNow})
	is.NoErr(err)
	mail, err := f.Effects.AddAlertChannel(ctx, owner, store.NewAlertChannel{Email: "ann@acme.test", Topics: topics,
		Frequency: store.AlertNow})
	is.NoErr(err)
	is.NoErr(f.Effects.AlertBackup(ctx))
	is.NoErr(f.WatchDisk(ctx))
	f.clock.advance(time.Minute)
	is.NoErr(errOf(f.Effects.AlertsDue(ctx)))
	is.NoErr(errOf(f.Effects.MakeAlertMessages(ctx, 5)))
	list, err := f.Effects.ClaimAlertMessages(ctx, 5, time.Second)
	is.NoErr(err)
	for _, m := range list {
		is.NoErr(f.Effects.EndAlertMessage(ctx, m, true, "200 OK", time.Time{}))
	}
	is.NoErr(errOf(f.Effects.TestAlertChannel(ctx, owner, mail.ID, time.Minute)))
	is.NoErr(errOf(f.Effects.AlertMessage(ctx, owner, mail.ID)))
	replies, err := f.Effects.ClaimReplies(ctx, 100, time.Minute)
	is.NoErr(err)
	for _, r := range replies {
		is.NoErr(f.Effects.GiveUpReply(ctx, r, "no"))
		is.NoErr(f.Effects.BounceAlert(ctx, []string{r.ID}, "no"))
	}
	is.NoErr(errOf(f.Workspace(ctx, owner, f.worker.ID, "")))
	is.NoErr(errOf(f.OwnFolders(ctx, owner, f.worker.ID, 5)))
	is.NoErr(errOf(f.Elsewhere(ctx, owner, store.Record{TaskID: "x"})))
	is.NoErr(errOf(f.Effects.AlertChannels(ctx, owner)))
	is.NoErr(f.Effects.PauseAlertChannel(ctx, owner, hook.ID, true))
	is.NoErr(f.Effects.RemoveAlertChannel(ctx, owner, hook.ID))
	is.NoErr(errOf(f.Effects.PruneAlerts(ctx, time.Hour, 100)))
	is.NoErr(f.Effects.RemoveAlertChannel(ctx, owner, mail.ID))
}
