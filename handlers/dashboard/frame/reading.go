package frame

import (
	"journeyman/runner/sandbox"
	"journeyman/store/people"
)

// ApprovalsOfTask is how many approvals of a task pages read. The waiting ones are among the newest.
const ApprovalsOfTask = 50

// ClientOf returns the client for whom document readers show a file or a mail to a signed-in person.
func ClientOf(who people.Caller) sandbox.Client {
	return sandbox.Client{Organization: who.OrganizationID, Sender: who.UserID}
}

// Once returns the value of a key. It calls read the first time.
func Once(known map[string]string, key string, read func() (string, error)) (string, error) {
	value, ok := known[key]
	if ok {
		return value, nil
	}
	value, err := read()
	known[key] = value
	return value, err
}
