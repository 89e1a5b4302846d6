package dashboard

// doneMessages say at the top of a page what the last form did. The address holds
// only the word, so that nobody can make a link that puts text on a page.
var doneMessages = map[string]string{
	"signed-out": "You are signed out.",

	"password-chosen":    "Your password is set, and you are signed in.",
	"joined":             "You have joined the organization.",
	"saved":              "Saved.",
	"password-changed":   "Your password is changed. Other browsers are signed out.",
	"sessions-ended":     "Every other browser is signed out.",
	"session-ended":      "The browser is signed out.",
	"key-revoked":        "The key is revoked.",
	"role-changed":       "The role is changed.",
	"member-removed":     "The member is removed. Their keys and sessions have ended.",
	"invitation-revoked": "The invitation is withdrawn.",

	"worker-made":           "The worker is ready.",
	"worker-written":        "The worker is ready. This is what the model wrote: change what you like.",
	"worker-changed":        "Saved. New tasks follow it.",
	"worker-deleted":        "The worker is deleted.",
	"worker-member-invited": "Invited: they see the worker now.",
	"worker-member-removed": "The invitation is taken back.",
	"schedule-made":         "The schedule is set.",
	"schedule-changed":      "The schedule is changed.",
	"schedule-paused":       "The schedule is paused.",
	"schedule-resumed":      "The schedule runs again.",
	"schedule-cancelled":    "The schedule is cancelled.",
	"webhook-set":           "The webhook is set.",
	"webhook-removed":       "The webhook is removed.",
	"webhook-renewed":       "Token and signing secret are new. The old ones are void.",
	"delivery-sent":         "Sent. This is how it went.",

	"task-cancelled": "The task is cancelled. What it had done until then is kept.",
	"task-archived":  "The task is archived. The filter \"Archived\" shows it.",
	"call-approved":  "The call is approved and runs.",
	"call-denied":    "The call is denied, and the worker is told.",

	"mail-released": "The mail is released: the worker has it as a task.",
	"mail-retried":  "The reply will be sent as soon as possible.",
}
