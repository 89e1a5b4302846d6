package db

// An id takes 30 bytes. So the tables tasks, turns, deliveries, webhook_executions and idempotency
// refer to organizations, workers, users and keys by num. The constants below are SQL that translates
// between the two, where a query names the columns of one such table.
const (
	// These read the num of a table's row, and are ids.
	OrganizationID = `(SELECT id FROM organizations WHERE num = organization_num)`
	WorkerID       = `(SELECT id FROM workers WHERE num = worker_num)`
	CreatorID      = `coalesce((SELECT id FROM users WHERE num = created_by_user_num), '')`
	KeyID          = `coalesce((SELECT id FROM api_keys WHERE num = api_key_num), '')`

	// These take an id as their parameter. They are NULL for NULL.
	OrganizationNum = `(SELECT num FROM organizations WHERE id = ?)`
	WorkerNum       = `(SELECT num FROM workers WHERE id = ?)`
	UserNum         = `(SELECT num FROM users WHERE id = ?)`
	KeyNum          = `(SELECT num FROM api_keys WHERE id = ?)`
)
