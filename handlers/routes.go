package handlers

import (
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"

	"journeyman/handlers/events"
	"journeyman/handlers/metrics"
	"journeyman/runner/view"
)

// New creates the API.
func New(cfg Config) *API {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.ScheduleChanged == nil {
		cfg.ScheduleChanged = func() {}
	}
	cfg.Uploads, cfg.Timing = cfg.Uploads.withDefaults(), cfg.Timing.withDefaults()
	a := &API{cfg: cfg, base: BasePath(cfg.BaseURL), store: cfg.Store, runner: cfg.Runner,
		views:         view.New(cfg.Store, cfg.BaseURL),
		auth:          auth{cfg.Store, newLimiter(cfg.RateLimit, cfg.Now, cfg.Peers)},
		oauthRequests: newLimiter(networkLimit, cfg.Now, cfg.Peers),
		registrations: newLimiter(registrationLimit, cfg.Now, cfg.Peers),
		shares:        cfg.Limits.shares()}
	a.streams = events.New(events.Timing{BeatEvery: cfg.Timing.BeatEvery, CheckEvery: cfg.Timing.CheckEvery,
		WriteIn: cfg.Timing.WriteIn}, a.shares.streams)
	a.meter = metrics.New(metrics.Config{Store: cfg.Store, Runner: cfg.Runner, Version: cfg.Version, Documents: cfg.Documents,
		Peers: cfg.Peers, Misfits: Misfits(), OpenStreams: a.OpenStreams, Now: cfg.Now})
	a.routes()
	return a
}

// routes creates the router.
func (a *API) routes() {
	a.router = httprouter.New()
	a.router.RedirectTrailingSlash = false // a redirect would turn a POST into a GET
	a.router.RedirectFixedPath = false
	a.router.NotFound = a.refuse(func(*http.Request) error {
		return errNothingHere
	})
	a.router.MethodNotAllowed = a.refuse(func(r *http.Request) error {
		return &Problem{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed",
			Message: refusedMethod(r.Method)}
	})

	a.workerRoutes()
	a.taskRoutes()
	a.oauthRoutes()
	a.nodeRoutes()
}

// sdkRoutes are the endpoints whose answers contain messages in the form for a version of the AI SDK.
// They take aiSdk, and refuse a version that no client has before they change anything.
var sdkRoutes = []string{
	"POST /api/workers",
	"GET /api/workers/:workerId",
	"POST /api/workers/:workerId",
	"POST /api/tasks",
	"GET " + turnsPath + ":turnId", // between the nodes
}

func (a *API) workerRoutes() {
	a.on("POST", "/api/workers", a.createWorker)
	a.on("GET", "/api/workers", a.listWorkers)
	a.onPage("/api/workers/:workerId", a.getWorker)
	a.on("POST", "/api/workers/:workerId", a.continueWorker) // also import, see there
	a.on("PATCH", "/api/workers/:workerId", a.updateWorker)
	a.on("DELETE", "/api/workers/:workerId", a.deleteWorker)
	a.on("GET", "/api/workers/:workerId/template", a.getTemplate)
	a.on("GET", "/api/workers/:workerId/export", a.exportWorker)
	a.on("GET", "/api/workers/:workerId/versions", a.listVersions)
	a.on("GET", "/api/workers/:workerId/versions/:version", a.getVersion)
	a.on("POST", "/api/workers/:workerId/versions/:version/restore", a.restoreVersion)
	a.onPage("/api/workers/:workerId/stream", a.streamWorker)
	a.on("GET", "/api/workers/:workerId/email", a.getEmail)
	a.onPage("/api/workers/:workerId/files/*filePath", a.getFile)
	a.on("GET", "/api/workers/:workerId/members", a.listMembers)
	a.on("GET", "/api/workers/:workerId/members/:userId", a.getMember)
	a.on("PUT", "/api/workers/:workerId/members/:userId", a.addMember)
	a.on("DELETE", "/api/workers/:workerId/members/:userId", a.removeMember)

	a.on("GET", "/api/workers/:workerId/secrets", a.listSecrets)
	a.on("PUT", "/api/workers/:workerId/secrets/:name", a.putSecret)
	a.on("DELETE", "/api/workers/:workerId/secrets/:name", a.deleteSecret)

	a.on("GET", "/api/workers/:workerId/schedules", a.listSchedules)
	a.on("POST", "/api/workers/:workerId/schedules", a.createSchedule)
	a.on("GET", "/api/workers/:workerId/schedules/:scheduleId", a.getSchedule)
	a.on("PATCH", "/api/workers/:workerId/schedules/:scheduleId", a.updateSchedule)
	a.on("DELETE", "/api/workers/:workerId/schedules/:scheduleId", a.cancelSchedule)
	a.on("POST", "/api/workers/:workerId/schedules/:scheduleId/run", a.runSchedule)

	a.on("GET", "/api/workers/:workerId/webhook", a.getWebhook)
	a.on("PUT", "/api/workers/:workerId/webhook", a.putWebhook)
	a.on("DELETE", "/api/workers/:workerId/webhook", a.deleteWebhook)
	a.on("POST", "/api/workers/:workerId/webhook/regenerate-token", a.regenerateToken)
	a.on("POST", "/api/workers/:workerId/webhook/test", a.testWebhook)
	a.on("GET", "/api/workers/:workerId/webhook/executions", a.listExecutions)
	a.on("POST", "/api/workers/:workerId/webhook/executions/:executionId/redeliver", a.redeliver)
}

func (a *API) taskRoutes() {
	a.on("POST", "/api/tasks", a.createTask)
	a.on("GET", "/api/tasks", a.listTasks)
	a.on("GET", "/api/tasks/:taskId", a.getTask)
	a.on("DELETE", "/api/tasks/:taskId", a.archiveTask)
	a.on("GET", "/api/tasks/:taskId/turns", a.listTurns)
	a.on("POST", "/api/tasks/:taskId/cancel", a.cancelTask)
	a.on("GET", "/api/tasks/:taskId/approvals", a.listTaskApprovals)
	a.on("POST", "/api/tasks/:taskId/approvals/:approvalId", a.decideApproval)
	a.on("GET", "/api/approvals", a.listApprovals)

	a.on("POST", "/api/inbound-email", a.receiveEmail)
	a.on("GET", "/api/emails", a.listEmails)
	a.on("GET", "/api/emails/:emailId", a.getEmailByID)
	a.on("POST", "/api/emails/:emailId/release", a.releaseEmail)

	a.on("GET", "/api/secrets", a.listSecrets)
	a.on("PUT", "/api/secrets/:name", a.putSecret)
	a.on("DELETE", "/api/secrets/:name", a.deleteSecret)

	a.onWith(a.mcpKey, "POST", "/mcp", a.serveMCP)
	a.on("GET", "/api/me", a.getMe)
	a.on("GET", "/api/models", a.listModels)
	a.open("GET", "/api/openapi.json", a.getOpenAPI)
	a.open("GET", "/healthz", a.getHealth)
	a.open("GET", "/readyz", a.getReadiness)
	a.open("GET", "/metrics", a.getMetrics)
}

// refusedMethod returns the message for a method that the address does not support.
func refusedMethod(method string) string {
	if method = methodLabel(method); method == "other" {
		method = "such method"
	}
	return "this address has no " + method + ": the Allow header lists those it has"
}

// refuse returns the handler of requests that the router itself refuses.
func (a *API) refuse(why func(*http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.serve(w, &request{Request: r, id: requestID(r)}, func(http.ResponseWriter, *request) error { return why(r) })
	})
}
