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

// A Check is one thing about the server and its machine that was examined. It holds no secret.
type Check struct {
	Name   string
	Status CheckStatus
	Detail string
	Advice string // the way out, in one sentence; '' if nothing is to be done
}

// BrokenCheck returns the failed check that stands for checks that have panicked. The panic is
// in the log alone, because its value may hold a secret.
func BrokenCheck() Check {
	return Check{"answer", CheckFailed, "a defect of the program has ended the checks",
		"look for the word panicked in the log, and report the defect"}
}

// Checks are the checks of one part of the server.
type Checks struct {
	Title string
	List  []Check
}
