package store

// An id takes 30 bytes. So the tables tasks, turns, deliveries, webhook_executions and idempotency
// refer to organizations, workers, users and keys by num. The constants below are SQL that translates
// between the two, where a query names the columns of one such table.
const (
	idOfOrganization = `(SELECT id FROM organizations WHERE num = organization_num)`
	idOfWorker       = `(SELECT id FROM workers WHERE num = worker_num)`
	idOfCreator      = `coalesce((SELECT id FROM users WHERE num = created_by_user_num), '')`
	idOfKey          = `coalesce((SELECT id FROM api_keys WHERE num = api_key_num), '')`

	// These take an id as their parameter. They are NULL for NULL.
	numOfOrganization = `(SELECT num FROM organizations WHERE id = ?)`
	numOfWorker       = `(SELECT num FROM workers WHERE id = ?)`
	numOfUser         = `(SELECT num FROM users WHERE id = ?)`
	numOfKey          = `(SELECT num FROM api_keys WHERE id = ?)`
)
