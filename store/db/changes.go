package db

// A Change is a kind of records that a write has changed, so that their lists must be read again.
type Change string

// The kinds of records that OnChange reports.
const (
	ChangedTasks     Change = "tasks"     // a task, its status, its figures or what it waits for
	ChangedApprovals Change = "approvals" // a tool call or a question that waits for a person
	ChangedOutbox    Change = "outbox"    // a mail, received or sent
	ChangedWorkers   Change = "workers"   // a worker, who may see it, or who has pinned it
)

// Changes returns all kinds.
func Changes() []Change {
	return []Change{ChangedTasks, ChangedApprovals, ChangedOutbox, ChangedWorkers}
}
