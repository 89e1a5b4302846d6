package dashboard

import "journeyman/handlers/dashboard/text"

// doneMessage returns the message of a page after a form. Addresses hold only the key of a message,
// so that a link cannot put other text on a page.
func doneMessage(key string) text.Key {
	for _, messages := range []map[string]text.Key{accountMessages(), settingsMessages(), workerMessages(),
		taskMessages()} {
		if message, ok := messages[key]; ok {
			return message
		}
	}
	return ""
}

// accountMessages returns the messages of the sign-in and of a user's own account.
func accountMessages() map[string]text.Key {
	return map[string]text.Key{
		"signed-out":       "You are signed out.",
		"password-chosen":  "Your password is set, and you are signed in.",
		"joined":           "You have joined the organization.",
		"saved":            "Saved.",
		"password-changed": "Your password is changed. Other browsers are signed out.",
		"sessions-ended":   "Every other browser is signed out.",
		"session-ended":    "The browser is signed out.",
	}
}

// settingsMessages returns the messages of the settings of the organization and the server.
func settingsMessages() map[string]text.Key {
	return map[string]text.Key{
		"key-revoked":        "The key is revoked.",
		"secret-set":         "The secret is saved. Turns that start from now on use it.",
		"secret-deleted":     "The secret is deleted.",
		"alert-added":        "The channel is added. Test it to see that its messages arrive.",
		"alert-tested":       "A test message was sent. The channel shows its result.",
		"alert-paused":       "The channel is paused. Events during the pause are not sent later.",
		"alert-resumed":      "The channel sends alerts again.",
		"alert-removed":      "The channel is removed.",
		"checked":            "The checks have finished. This page shows the results.",
		"checking":           "The checks are running. Reload the page in a moment.",
		"backup-requested":   "A backup is running. This page shows its result.",
		"provider-connected": "Connected: the model has answered.",
		"provider-changed":   "Saved: the model has answered.",
		"provider-tested":    "The model has answered.",
		"provider-removed":   "The provider is removed, and its key with it.",
		"default-changed":    "The default models are changed. New tasks use them.",
		"server-in":          "This server is signed in to the MCP server.",
		"server-out":         "This server is signed out of the MCP server.",
		"program-ended":      "The program's access has ended.",
		"role-changed":       "The role is changed.",
		"member-removed":     "The member is removed. Their keys and sessions have ended.",
		"invitation-revoked": "The invitation is withdrawn.",
	}
}

// workerMessages returns the messages of workers, with their schedules and webhooks.
func workerMessages() map[string]text.Key {
	return map[string]text.Key{
		"worker-made":           "The worker is ready.",
		"worker-kept":           "The worker is in the lists now.",
		"worker-written":        "The worker is ready. This is what the model wrote: change what you like.",
		"worker-changed":        "Saved. New tasks use the new version.",
		"worker-deleted":        "The worker is deleted.",
		"version-restored":      "Restored as a new version. New tasks use it.",
		"worker-member-invited": "Invited. This member can now see the worker.",
		"worker-member-removed": "The invitation is withdrawn.",
		"schedule-made":         "The schedule is created.",
		"schedule-changed":      "The schedule is changed.",
		"schedule-paused":       "The schedule is paused.",
		"schedule-resumed":      "The schedule is resumed.",
		"schedule-cancelled":    "The schedule is cancelled.",
		"webhook-set":           "The webhook is saved.",
		"webhook-removed":       "The webhook is removed.",
		"webhook-renewed":       "The token and the signing secret are replaced. The old ones no longer work.",
		"delivery-sent":         "Sent. This page shows the result.",
	}
}

// taskMessages returns the messages of tasks, decisions and mail.
func taskMessages() map[string]text.Key {
	return map[string]text.Key{
		"task-cancelled":    "The task is cancelled. Its results so far are kept.",
		"task-archived":     "The task is archived. The filter \"Archived\" shows it.",
		"call-approved":     "The call is approved and runs.",
		"tool-allowed":      "The call is approved and runs. Later calls of this tool in the task need no approval.",
		"call-denied":       "The call is denied. The worker gets your decision.",
		"question-answered": "Answered. The worker continues.",
		"decided-already":   "The call was already decided, or the turn has ended. This page shows the current state.",
		"mail-released":     "The mail is released. The worker has a new task.",
		"mail-retried":      "The reply will be sent as soon as possible.",
	}
}
