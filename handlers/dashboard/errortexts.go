package dashboard

import "journeyman/handlers/dashboard/text"

// errorTexts returns the messages of errors that pages show. The packages below know no language, so
// their messages are in English. A message that holds values is a pattern, as in Errorf.
func errorTexts() (list []text.Key) {
	for _, texts := range [][]text.Key{faultTexts(), accessTexts(), rightTexts(), missingTexts(), limitTexts(),
		failureTexts()} {
		list = append(list, texts...)
	}
	return list
}

// faultTexts returns the faults of fields, which a page shows beside the field.
func faultTexts() []text.Key {
	return []text.Key{
		"is required",
		"must not be empty",
		"must not be blank",
		"must not begin or end with white space",
		"must not have a NUL character",
		"must be text without NUL characters",
		"must have 1 to %d characters",
		"must have at most %d characters",
		"must have %d characters or more",
		"must have at most %d bytes",
		"must have %d to %d bytes",
		"must have at most %d items",
		"must have 1 to %d letters, digits and underscores, and not begin with a digit",
		"must have 1 to %d lower-case letters, digits, dots and hyphens, and begin with a letter or digit",
		"must have no spaces and only ASCII characters",
		"must have no user, password, query or fragment: the key has a field of its own",
		"must be a number",
		"must be 0 or more",
		"must be an integer from 0 to %d",
		"must be from 0 to %d",
		"must be from 1 to %d",
		"must be 1024 tokens or more, or 0 for the value of the provider",
		"must be an email address",
		"must be a member's email address, or a URL",
		"must be an http:// or https:// address",
		"must be an http:// or https:// address, such as https://openrouter.ai/api/v1",
		"must begin with https://, because the key would travel in the clear",
		"must be a date and time such as 2030-01-31 09:00",
		"must be a date and time such as 2026-01-31T12:00",
		"must be in the future",
		"must be before the year 10000 in UTC",
		"must be owner, admin or member",
		"must be public or private",
		"must be low, standard, high or unlimited",
		"must name at least one event",
		"must have five fields: minute, hour, day of month, month and day of week",
		"names a date that never comes",
		"must not be offline or replay, which mean other models",
		"must not be a password that many people choose: several words in a row are better",
		"must be entered again, because the base URL leads to another host now",
		`must hold names of tools, or "server" or "server.tool" for those of MCP servers`,
		"names %q twice",
		"is required: the call asks a question",
		"is wrong: %s",
		"is not a nextCursor of this list with these filters",
		"is not your password",
		"is the name of another organization",
		"is the name of another provider: choose another one",
		"belongs to a member already",
		"belongs to another user",
		"leads into the private network: on this server only its first organization may use such " +
			"addresses, unless it starts with --allow-private-network",
	}
}

// accessTexts returns the errors of people without access, and of sign-ins.
func accessTexts() []text.Key {
	return []text.Key{
		"the email address or the password is wrong",
		"too many people are signing in at this moment: try again",
		"There were too many wrong passwords. Try again in %d %s.",
		"minute",
		"minutes",
		"this user is in no organization",
		"you are not in this organization",
		"this link is not valid, or its time is over",
		"this link has been used, was withdrawn or has expired: ask for a new one",
		"the invitation is for another email address",
		"you have a password already: sign in with it to join",
		"you have no password yet, and are in another organization: ask there for a link to choose one",
		"%d invitations are open: revoke some",
		"the role %s may not %s",
		"this key has no access to the worker",
		"this key has no access to the task",
		"this key has no access to the email",
		"the worker is private and this key's user is not invited to it",
		"only the creator of the worker may do this",
		"only the creator of the worker may archive its tasks",
		"only the creator of the worker, Owners and Admins may decide on its tool calls",
		"only the author of the instruction, the person who began the task, the creator of the worker, " +
			"Owners and Admins may answer its questions. A question to a non-member needs an answer by mail",
		"the request of the program is not valid",
		"no program has registered under this client_id: it has to register again",
		"only a member can allow a tool for the rest of a task",
		"only an Owner or Admin may release mail",
		"only an Owner of the server's first organization may check the server",
		"the request was sent by another site: open the page here and try again",
		"you cannot remove yourself: ask another Admin or Owner",
		"an organization needs an owner, and this is the only one: make somebody else an owner first",
		"change your own password on your account's page",
		"the user is in another organization, too, and the link would also give access to it: ask the " +
			"operator of this server to run journeyman user reset",
		"the API key is revoked: make a new one",
		"the API key has been rolled already: roll its successor",
		"the key is the access token of a program, which renews it by itself",
		"a key acts for the user who creates it",
		"no API key has that id or prefix",
		"%d programs act for you already: revoke one on the page of your account",
		"you have switched to another organization: go back and decide again",
	}
}

// rightTexts returns the rights, which the error for a missing right names.
func rightTexts() []text.Key {
	return []text.Key{
		"see every worker",
		"manage keys",
		"manage members",
		"manage mail",
		"decide on tool calls",
		"see the audit log",
		"see usage",
		"manage owners",
		"manage organization",
		"manage secrets",
		"manage models",
		"see model providers",
		"manage alerts",
		"see the system state",
	}
}

// missingTexts returns the errors about things that do not exist.
func missingTexts() []text.Key {
	return []text.Key{
		"there is no page at this address",
		"there is nothing at this address",
		"the page at this address does not accept this method",
		"the form cannot be read",
		"the form is larger than %d bytes",
		"no worker has that id",
		"no task has that id",
		"no %s has that id",
		"no user of this organization has that id",
		"no member of this organization has that id",
		"no user has that email address",
		"no alert channel has that id, or it has sent no message",
		"no file has that content",
		"the worker does not exist",
		"the worker has no file with that %s",
		"the worker has no version %d",
		"the worker has no version %q",
		"the worker has no webhook",
		"the worker has no task of that id",
		"the turn has no such step",
		"the step has no such tool call",
		"there is no such text",
		"there is no secret %q",
		"there is no provider %q",
		"there is no organization %q",
		"there is no starter of that name",
		"there are no files to download",
		"no task has worked in this workspace yet",
		"%q is not in the workspace",
		"the mail is not written yet, or its source was deleted because of its age",
		"no sign-in to this server has begun here: begin it on the page System",
	}
}

// limitTexts returns the errors about limits, and about states that do not allow a change.
func limitTexts() []text.Key {
	return []text.Key{
		"the worker has changed since you read it: its version is %d now; read it again, and send your " +
			"change with the new ETag",
		"the worker has %d versions, and can have no more: export it and import it as a new worker",
		"the worker has %d schedules, the most a worker can have: cancel one that is no longer needed",
		"the schedule's last task %s has not ended: wait for it, or cancel it first",
		"a worker has at most %d members",
		"you have pinned %d workers, which is the limit: unpin one first",
		"there are %d secrets, which is the limit: delete one first",
		"there are %d providers, which is the limit: remove one first",
		"there are %d alert channels, which is the limit: remove one first",
		"the default models name %s: take its models out of the default first",
		"workers name models of %s: “%s”%s; choose another model for them first",
		"somebody has just changed the default models: look at them again",
		"the channel was removed",
		"the channel was tested a moment ago: wait some seconds",
		"the task is archived and takes no new turns",
		"the task has %d turns, the most a task can have",
		"the task's folder holds a member's files: only members may add turns",
		"the state of the task does not allow this",
		"at most %d tasks can be changed at once",
		"the turn came by mail or from somebody who is no member: each of its calls is decided on alone",
		"the instruction is from a non-member: edit it and run it again, if you want to ask for the same in your name",
		"the mail is not held: its status is %s",
		"the worker is private, and the mail's author is not invited to it: invite them, or let " +
			"everybody see the worker",
		"the turn of the delivery was deleted",
		"the secret was sealed with another %s than the one in the data folder: put the old file back, " +
			"or enter the secret again",
		"the mail is for the postmaster and starts no work",
		"a mail with the status %s cannot be sent again",
		"the organization has used its credits for this month",
		"the organization's queue is full: %d of its turns are waiting, which is the limit; try again " +
			"when some of them have run, or cancel tasks",
		"the server's queue is full: %d turns are waiting, which is the limit; try again later",
		"a file has at most %d bytes",
		"a request has at most %d files",
		"a request has at most %d bytes",
		"a backup is being made already",
		"backups have no place: the server was started without --backup-to",
		"an archive can hold %d files and %d MiB, and this would be more: download a folder of it, or single files",
		"too many archives are being sent; try again later",
		"too many manual deliveries are in progress: try again in a moment",
		"too many test messages are being sent: try again in a moment",
		"the model could not write the worker: %s",
		"the model gave no usable instructions for the prompt: try again, or write them yourself",
		"the data folder cannot be written now",
		"the server's database is damaged: its operator has to restore a backup",
		"the server has reached its limit of open files: try again later",
	}
}

// failureTexts returns the reasons why turns failed or wait. Those of a provider stay as they are.
func failureTexts() []text.Key {
	return []text.Key{
		"an internal error ended the turn",
		"nobody decided in time on a tool call that needs approval",
		"the service stopped three times while it worked on this turn",
		"the model made the same tool call %d times in a row, with the same result",
		"the model ended without an answer, and so did the retry",
		"the model failed in the middle of its answer",
		"the model server did not answer in time",
		"no connection to the model server: %s",
		"the answer of the model broke off",
		"the answer of the model broke off: %s",
	}
}
