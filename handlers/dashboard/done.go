package dashboard

// doneMessages say at the top of a page what the last form did. The address holds
// only the word, so that nobody can make a link that puts text on a page.
var doneMessages = map[string]string{
	"signed-out": "You are signed out.",

	"task-cancelled": "The task is cancelled. What it had done until then is kept.",
	"task-archived":  "The task is archived. The filter \"Archived\" shows it.",
	"call-approved":  "The call is approved and runs.",
	"call-denied":    "The call is denied, and the worker is told.",
}
