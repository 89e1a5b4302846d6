package handlers

// A CheckStatus is the result of a check.
type CheckStatus string

// The results of checks.
const (
	CheckOK      CheckStatus = "ok"
	CheckWarning CheckStatus = "warning" // the server works, and something should be better
	CheckFailed  CheckStatus = "failed"  // the server does not work, or soon will not
	CheckSkipped CheckStatus = "skipped" // there is nothing to check, or this machine cannot reach it
)

// A Check is the result of one check of the server or its machine. It holds no secret.
type Check struct {
	Name   string      `json:"name"`
	Status CheckStatus `json:"status"`
	Detail string      `json:"detail"`
	Advice string      `json:"advice,omitempty"` // how to fix the problem, in one sentence; "" if there is none
}

// BrokenCheck returns a failed check in place of checks that panicked. Only the log has the panic,
// because its value may hold a secret.
func BrokenCheck() Check {
	return Check{"answer", CheckFailed, "a defect of the program has ended the checks",
		"look for the word panicked in the log, and report the defect"}
}

// Checks are the checks of one part of the server.
type Checks struct {
	Title string
	List  []Check
}
