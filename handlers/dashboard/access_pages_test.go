package dashboard_test

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// pageRows has a row for each page. Pages of settings change other things than workers: the user's
// account, or the organization.
var pageRows = map[string]accessRow{
	"GET /sign-in":                           {rule: forAll},
	"POST /sign-in":                          {rule: forAll, form: "email=x&password=y"},
	"GET /decide/:token":                     {rule: forAll},
	"POST /decide/:token":                    {rule: forAll},
	"GET /invitation/:token":                 {rule: forAll},
	"POST /invitation/:token":                {rule: forAll},
	"GET /welcome/:token":                    {rule: forAll},
	"POST /welcome/:token":                   {rule: forAll},
	"GET /reset/:token":                      {rule: forAll},
	"POST /reset/:token":                     {rule: forAll},
	"POST /sign-out":                         {rule: forMembers, last: true},
	"POST /organization":                     {rule: forMembers, form: "organization=org_none", status: http.StatusForbidden},
	"GET /":                                  {rule: forMembers},
	"POST /first-steps":                      {rule: forMembers},
	"POST /workers/:workerId/pin":            {rule: seesWorker},
	"POST /workers/:workerId/unpin":          {rule: forMembers},
	"GET /events":                            {rule: forMembers},
	"GET /search":                            {rule: forMembers, lists: true},
	"GET /account":                           {rule: forMembers},
	"POST /account/name":                     {rule: forMembers, form: "name=N"},
	"POST /account/password":                 {rule: forMembers, form: "old=wrong&password=long+enough"},
	"POST /account/preferences":              {rule: forMembers, form: "theme=dark"},
	"POST /account/sessions":                 {rule: forMembers},
	"POST /account/sessions/:sessionId/end":  {rule: forMembers},
	"POST /account/programs/:grantId/revoke": {rule: forMembers, status: http.StatusNotFound},
	"GET /oauth/authorize":                   {rule: forMembers, status: http.StatusNotFound},
	"POST /oauth/authorize":                  {rule: forMembers, status: http.StatusNotFound},

	"GET /settings":                                  {rule: forMembers},
	"GET /settings/system":                           {rule: runsServer},
	"POST /settings/system/backup":                   {rule: runsServer, status: http.StatusConflict}, // no place for backups is configured
	"POST /settings/system/doctor":                   {rule: runsServer, status: http.StatusConflict}, // the server has no checks
	"POST /settings/system/servers/:server/sign-in":  {rule: runsServer, status: http.StatusConflict},
	"GET /settings/system/servers/:server/sign-in":   {rule: runsServer, status: http.StatusNotFound},
	"GET /settings/system/servers/:server/callback":  {rule: runsServer, status: http.StatusConflict},
	"POST /settings/system/servers/:server/sign-out": {rule: runsServer, status: http.StatusNotFound},
	"GET /settings/organization":                     {rule: rules},
	"POST /settings/organization":                    {rule: rules, form: "name=O{state}{caller}"},
	"GET /settings/models":                           {rule: manages},
	"POST /settings/models/default":                  {rule: rules, form: "was=&do=add&model=offline", either: http.StatusConflict, status: http.StatusSeeOther},
	"POST /settings/models/providers":                {rule: rules, form: "kind=x&name={name}", status: http.StatusUnprocessableEntity}, // connects no provider
	"POST /settings/models/providers/:name":          {rule: rules, status: http.StatusUnprocessableEntity},
	"POST /settings/models/providers/:name/test":     {rule: rules, status: http.StatusUnprocessableEntity},
	"POST /settings/models/providers/:name/remove":   {rule: rules, status: http.StatusUnprocessableEntity},
	"GET /settings/secrets":                          {rule: manages},
	"POST /settings/secrets":                         {rule: manages, form: "name={name}", status: http.StatusUnprocessableEntity}, // sets no secret
	"POST /settings/secrets/:name/delete":            {rule: manages, status: http.StatusNotFound},
	"GET /settings/alerts":                           {rule: manages},
	"POST /settings/alerts":                          {rule: manages, form: "to=nobody@example.com&topics=failed&frequency=now", status: http.StatusUnprocessableEntity}, // adds no channel
	"POST /settings/alerts/:channelId/test":          {rule: manages, status: http.StatusNotFound},
	"POST /settings/alerts/:channelId/pause":         {rule: manages, status: http.StatusNotFound},
	"POST /settings/alerts/:channelId/resume":        {rule: manages, status: http.StatusNotFound},
	"POST /settings/alerts/:channelId/remove":        {rule: manages, status: http.StatusNotFound},
	"GET /settings/audit":                            {rule: manages},
	"GET /settings/audit.csv":                        {rule: manages},
	"GET /settings/members":                          {rule: manages},
	"POST /settings/members":                         {rule: manages, form: "email=n{caller}@example.com&role=member"},
	"POST /settings/members/:userId/role":            {rule: managesPerson, form: "role=member"},
	"POST /settings/members/:userId/reset":           {rule: managesPerson},
	"POST /settings/members/:userId/remove":          {rule: managesPerson, once: true},
	"POST /settings/invitations/:linkId/revoke":      {rule: managesPerson, once: true},
	"GET /settings/keys":                             {rule: manages},
	"POST /settings/keys":                            {rule: manages, form: "name=K"},
	"POST /settings/keys/:keyId/roll":                {rule: managesPerson, once: true},
	"POST /settings/keys/:keyId/revoke":              {rule: managesPerson},
	"GET /usage":                                     {rule: manages},
	"GET /usage.csv":                                 {rule: manages},

	"GET /mail":                            {rule: forMembers, lists: true},
	"GET /mail/held":                       {rule: forMembers, lists: true},
	"GET /mail/outbox":                     {rule: forMembers, lists: true},
	"GET /mail/messages/:emailId":          {rule: seesTask},
	"GET /mail/messages/:emailId/source":   {rule: seesTask},
	"POST /mail/messages/:emailId/release": {rule: releasesMail, once: true, in: map[state]int{private: http.StatusConflict}},
	"POST /mail/messages/:emailId/retry":   {rule: managesMail, status: http.StatusConflict}, // it is no mail of this server

	"GET /tasks":                                 {rule: forMembers, lists: true},
	"POST /tasks":                                {rule: forMembers, form: "do=cancel&id={taskId}"},
	"GET /tasks/:taskId":                         {rule: seesTask},
	"POST /tasks/:taskId":                        {rule: continues, form: "input=x", files: true, either: http.StatusUnprocessableEntity},
	"POST /tasks/:taskId/cancel":                 {rule: seesTask},
	"POST /tasks/:taskId/archive":                {rule: ownsTask},
	"POST /tasks/:taskId/approvals/:approvalId":  {rule: decides, form: "decision=approve", status: http.StatusNotFound},
	"GET /tasks/:taskId/live":                    {rule: seesTask},
	"GET /tasks/:taskId/turns/:turn":             {rule: seesTask},
	"POST /tasks/:taskId/turns/:turn/again":      {rule: continues, form: "token=x", either: http.StatusUnprocessableEntity},
	"GET /tasks/:taskId/calls/:turn/:step/:call": {rule: seesTask},
	"GET /tasks/:taskId/raw/*what":               {rule: seesTask},
	"GET /tasks/:taskId/files.zip":               {rule: seesTask},

	"GET /workers":                                      {rule: forMembers, lists: true},
	"POST /workers":                                     {rule: forMembers, form: "title=T&visibility=public"},
	"POST /run":                                         {rule: forMembers, form: "input=x", files: true},
	"POST /check-schema":                                {rule: forMembers, form: "schema={}"},
	"GET /workers/:workerId":                            {rule: seesWorker},
	"POST /workers/:workerId/run":                       {rule: seesWorker, form: "input=x", files: true},
	"GET /workers/:workerId/settings":                   {rule: seesWorker},
	"POST /workers/:workerId/settings":                  {rule: ownsWorker, form: "title=T&visibility=private"},
	"POST /workers/:workerId/delete":                    {rule: ownsWorker, form: "confirm=yes"},
	"POST /workers/:workerId/keep":                      {rule: ownsWorker},
	"GET /workers/:workerId/export":                     {rule: seesWorker},
	"POST /import":                                      {rule: forMembers, form: "file=journeyman: 1", files: true},
	"POST /starters/:starter":                           {rule: forMembers, status: http.StatusNotFound},
	"POST /starters/:starter/try":                       {rule: forMembers, status: http.StatusNotFound},
	"GET /workers/:workerId/next-runs":                  {rule: seesWorker, status: http.StatusUnprocessableEntity},
	"GET /workers/:workerId/versions":                   {rule: seesWorker},
	"GET /workers/:workerId/versions/:version":          {rule: seesWorker},
	"POST /workers/:workerId/versions/:version/restore": {rule: ownsWorker},
	"GET /workers/:workerId/members":                    {rule: ownsWorker},
	"POST /workers/:workerId/members":                   {rule: ownsWorker, form: "email={invitedEmail}"},
	"POST /workers/:workerId/members/:userId/remove":    {rule: ownsWorker},
	"GET /workers/:workerId/secrets":                    {rule: ownsWorker},
	"POST /workers/:workerId/secrets":                   {rule: ownsWorker, form: "name={name}&value=12345678"},
	"POST /workers/:workerId/secrets/:name/delete":      {rule: ownsWorker, once: true},

	"GET /workers/:workerId/schedules": {rule: seesWorker},
	"POST /workers/:workerId/schedules": {rule: seesWorker,
		form: "input=x&budget=low&when.type=cron&when.cron=0+9+1+1+*"},
	"GET /workers/:workerId/schedules/:scheduleId": {rule: seesWorker},
	"POST /workers/:workerId/schedules/:scheduleId": {rule: seesWorker,
		form: "input=x&budget=low&when.type=cron&when.cron=0+9+1+1+*"},
	"POST /workers/:workerId/schedules/:scheduleId/pause":  {rule: seesWorker},
	"POST /workers/:workerId/schedules/:scheduleId/resume": {rule: seesWorker},
	"POST /workers/:workerId/schedules/:scheduleId/run":    {rule: seesWorker, once: true},
	"POST /workers/:workerId/schedules/:scheduleId/cancel": {rule: seesWorker, once: true},

	"GET /workers/:workerId/webhook":                                    {rule: ownsWorker},
	"POST /workers/:workerId/webhook":                                   {rule: ownsWorker, form: "url={hook}"},
	"POST /workers/:workerId/webhook/remove":                            {rule: ownsWorker},
	"POST /workers/:workerId/webhook/regenerate":                        {rule: ownsWorker},
	"POST /workers/:workerId/webhook/test":                              {rule: ownsWorker},
	"GET /workers/:workerId/webhook/executions/:executionId":            {rule: ownsWorker},
	"POST /workers/:workerId/webhook/executions/:executionId/redeliver": {rule: ownsWorker},

	"GET /workers/:workerId/files":                {rule: seesWorker},
	"GET /workers/:workerId/preview/*filePath":    {rule: seesWorker},
	"GET /workers/:workerId/files.zip":            {rule: seesWorker},
	"GET /workers/:workerId/workspace/*path":      {rule: ownsWorker, status: http.StatusNotFound},
	"GET /workers/:workerId/workspace-file/*path": {rule: ownsWorker, status: http.StatusNotFound},
	"GET /workers/:workerId/workspace-zip/*path":  {rule: ownsWorker, status: http.StatusNotFound},
}

// aboutThing reports whether the answer to a request depends on a worker's state, because the
// request names the worker or a part of it.
func aboutThing(request string) bool {
	return slices.ContainsFunc([]string{"workerId", "taskId", "emailId", "{mail}"}, func(name string) bool {
		return strings.Contains(request, name)
	})
}

// TestAccessToPages opens every page as every caller, in every state.
func TestAccessToPages(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPeople(t)
	things := map[state]thing{}
	for _, in := range states {
		things[in] = p.make(in)
	}
	known, asked := map[string]bool{}, 0
	for _, r := range routes(t) {
		if r.pattern == "/" && r.kind == "Open" {
			continue // half of a pattern that routes lists by itself
		}
		route := r.method + " " + r.pattern
		known[route] = true
		row, ok := pageRows[route]
		if !ok {
			t.Errorf("%s has no row: say in pageRows who may use it", route)
			continue
		}
		for _, in := range states {
			th := things[in]
			about := row.lists || aboutThing(r.pattern)
			if !about && in != public || about && skipsState(route, in) {
				continue
			}
			if r.method == http.MethodPost && about {
				th = p.make(in)
			}
			asked += p.askAll(route, row, in, th, func(c caller, th thing) string {
				status, location, body := p.answered(p.pageRequest(r, row, c, th))
				p.checkPage(r, row, c, in, status, location, body)
				if strings.HasSuffix(r.pattern, "/pin") {
					p.OK(p.Store.Workers.UnpinWorker(t.Context(), p.who[c].Caller, th.worker.ID)) // each page would show it
				}
				return body
			})
		}
	}
	for route := range pageRows {
		if !known[route] {
			t.Errorf("the row %q is of no page", route)
		}
	}
	ordertest.Above(is, asked, leastAsked(storetest.Rounds(1500, 700)))
}

func (p *visitors) pageRequest(r route, row accessRow, c caller, th thing) *http.Request {
	p.T.Helper()
	form, err := url.ParseQuery(strings.NewReplacer("{caller}", string(c)).Replace(th.fill(row.form)))
	p.OK(err)
	body, kind := form.Encode(), "application/x-www-form-urlencoded"
	if row.files {
		body, kind = "", "multipart/form-data; boundary=b"
		for name := range form {
			body += "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + form.Get(name) + "\r\n"
		}
		body += "--b--\r\n"
	}
	if r.method == http.MethodGet {
		body = ""
	}
	req := p.Request(r.method, th.fill(r.pattern), body, "Accept", "text/html")
	if r.method == http.MethodPost {
		req.Header.Set("Content-Type", kind)
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	p.withCookie(req, c)
	if row.last && expect(row.rule, c, public) == allowed { // the next page needs another session
		p.sessions[c], err = p.Store.People.CreateSession(p.T.Context(), p.who[c].Caller, "")
		p.OK(err)
	}
	return req
}

func (p *visitors) checkPage(r route, row accessRow, c caller, in state, status int, location, body string) {
	p.T.Helper()
	want := expect(row.rule, c, in)
	toSignIn := status == http.StatusSeeOther && strings.HasPrefix(location, "/sign-in")
	right := status == want || status == row.either && status != 0
	switch {
	case row.rule == forAll:
		right = status < 500
	case c == elsewhere && r.method == http.MethodGet && aboutThing(r.pattern): // the page offers to switch
		right = status == http.StatusOK && strings.Contains(body, `action="/organization" class="row wrap"`) // not the frame's
	case want == noSession, row.last && want == allowed:
		right = toSignIn
	case want == allowed && cmp.Or(row.in[in], row.status) != 0:
		right = status == cmp.Or(row.in[in], row.status)
	case want == allowed:
		right = !toSignIn && slices.Contains([]int{http.StatusOK, http.StatusSeeOther, http.StatusUnprocessableEntity}, status)
	}
	if !right {
		p.T.Errorf("%s %s, %s, %s: answers %d to %q, want %d", r.method, r.pattern, c, in, status, location, want)
	}
	if status >= 400 && status != http.StatusUnprocessableEntity && strings.Contains(body, "Asked for") {
		p.T.Errorf("%s %s, %s, %s: the refusal tells of the worker", r.method, r.pattern, c, in)
	}
}
