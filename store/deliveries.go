package store

import (
	"context"
	"database/sql"
	"time"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// The types of deliveries. A turn type is used while other turns of the task have not ended.
const (
	TaskCompleted = "task.completed"
	TaskFailed    = "task.failed"
	TaskAborted   = "task.aborted"
	TurnCompleted = "turn.completed"
	TurnFailed    = "turn.failed"
	TaskWaiting   = "task.waiting" // a turn has begun to wait for a person
)

// A Delivery is a message to a webhook that a turn has ended, or waits for a person.
type Delivery struct {
	num       int64
	workerNum int64
	turnNum   int64  // 0 for a test
	taskNum   int64  // 0 for a test
	ID        string // the same on every attempt
	WorkerID  string
	Type      string
	Attempts  int64 // so far
	CreatedAt time.Time
	Webhook   Webhook   // as it was when the delivery was read
	task      taskState // as it was at the end of the turn, or at the beginning of its wait

	WorkerCreatedAt time.Time // which the body shows of the worker besides its id
}

// Waiting reports whether the delivery says that a turn waits for a person.
func (d Delivery) Waiting() bool { return d.Type == TaskWaiting }

// Test reports whether the delivery is a test, with a sample instead of a turn.
func (d Delivery) Test() bool { return d.turnNum == 0 }

const deliveryColumns = `d.num, d.worker_num, coalesce(d.turn_num, 0),
	d.id, (SELECT id FROM workers WHERE num = d.worker_num), (SELECT created_at FROM workers WHERE num = d.worker_num),
	d.type, d.attempts, d.created_at,
	coalesce(d.task_status, ''), coalesce(d.task_turns, 0), coalesce(d.task_cost, 0), coalesce(d.task_duration, 0),
	coalesce(w.url, ''), coalesce(w.token, ''), coalesce(w.signing_secret, ''),
	coalesce((SELECT task_num FROM turns WHERE num = d.turn_num), 0)`

func scanDelivery(row db.Scanner) (d Delivery, err error) {
	err = row.Scan(&d.num, &d.workerNum, &d.turnNum, &d.ID, &d.WorkerID, db.AsTime(&d.WorkerCreatedAt), &d.Type,
		&d.Attempts, db.AsTime(&d.CreatedAt), &d.task.status, &d.task.turns, &d.task.cost, &d.task.duration,
		&d.Webhook.URL, &d.Webhook.Token, &d.Webhook.SigningSecret, &d.taskNum)
	return d, err
}

// queueDeliveries queues the deliveries for turns of one task that end together, in the transaction
// that ends them. Several turns end together only if the task is cancelled. Then one delivery,
// about the newest turn, reports all cancelled turns. task is the state of the task after them.
func (s *Effects) queueDeliveries(tx db.Tx, ended []Turn, task taskState) error {
	first, newest := ended[0], ended[len(ended)-1]
	if first.Status != Aborted {
		state := task
		if len(ended) > 1 {
			state.status = Pending // the other turns were still waiting when this one ended
		}
		if err := s.queueDelivery(tx, first, state); err != nil {
			return err
		}
	}
	if newest.Status != Aborted {
		return nil
	}
	// Turns that were added after the cancel are not part of what this delivery reports.
	task.status, task.turns = Aborted, newest.Seq+1
	return s.queueDelivery(tx, newest, task)
}

func (s *Effects) queueDelivery(tx db.Tx, t Turn, task taskState) error {
	return s.queueDeliveryOf(tx, t, deliveryType(t, task), task)
}

func (s *Effects) queueDeliveryOf(tx db.Tx, t Turn, kind string, task taskState) error {
	now := s.db.Millis()
	// The SELECT finds no row for a worker without a webhook or for an archived task: then nothing is
	// queued.
	n, err := tx.Exec(`INSERT INTO deliveries (id, worker_num, turn_num, type, attempts, next_attempt_at, created_at,
			task_status, task_turns, task_cost, task_duration)
		SELECT ?, (SELECT num FROM workers WHERE id = worker_id), ?, ?, 0, ?, ?, ?, ?, ?, ? FROM webhooks
		WHERE worker_id = ? AND `+speaks+` /* FOR KEY SHARE */`, db.NewID("evt", s.db.Now()), t.Num, kind, now, now,
		task.status, task.turns, task.cost, task.duration, t.WorkerID, t.taskNum)
	if fn := s.onDelivery.Load(); fn != nil && err == nil && n > 0 {
		tx.OnCommit(func() { (*fn)(t.WorkerID) })
	}
	return err
}

// deliveryType returns the type of a turn's delivery: a task type if the task has ended
// with the turn, else a turn type.
func deliveryType(t Turn, task taskState) string {
	switch {
	case t.Status == Aborted:
		return TaskAborted
	case t.Status == Failed && task.status.Ended():
		return TaskFailed
	case t.Status == Failed:
		return TurnFailed
	case task.status.Ended():
		return TaskCompleted
	}
	return TurnCompleted
}

// OnDelivery sets the function that is called with the worker's id after a delivery was
// queued. fn must not block. Call OnDelivery before anything can be queued.
func (s *Effects) OnDelivery(fn func(workerID string)) { s.onDelivery.Store(&fn) }

// An Attempt is the result of sending a delivery once.
type Attempt struct {
	Success        bool   // a response of 2xx
	ResponseStatus int    // 0 without a response
	ErrorMessage   string // '' with Success
	StartedAt      time.Time
	Duration       time.Duration
	Retry          time.Time // the time of the next attempt; zero for none
	Manual         bool      // requested by a person: after a failure, the automatic attempts continue
	Request        string    // without secrets, truncated
	Response       string    // truncated; '' without a response
}

// RecordAttempt stores an attempt at a delivery, and the time of the next one.
func (s *Effects) RecordAttempt(ctx context.Context, d Delivery, a Attempt) (e Execution, err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		num, err := s.recordAttempt(tx, d, a)
		if err == nil {
			err = trimExchanges(tx, d.workerNum, 1)
		}
		if err == nil {
			e, err = db.One(ctx, tx, scanExecution, `SELECT `+executionColumns+fromExecutions+`WHERE e.num = ?`, num)
		}
		return err
	})
	return e, err
}

// A MadeAttempt is an attempt with its delivery.
type MadeAttempt struct {
	Delivery Delivery
	Attempt  Attempt
}

// RecordAttempts stores attempts at deliveries of one worker, in the order of the list. It stores
// all of them or none. The list must not be empty.
func (s *Effects) RecordAttempts(ctx context.Context, list []MadeAttempt) error {
	return s.db.Write(ctx, func(tx db.Tx) error {
		for _, m := range list {
			if _, err := s.recordAttempt(tx, m.Delivery, m.Attempt); err != nil {
				return err
			}
		}
		return trimExchanges(tx, list[0].Delivery.workerNum, len(list))
	})
}

func (s *Effects) recordAttempt(tx db.Tx, d Delivery, a Attempt) (num int64, err error) {
	status, counter := "error", &s.counters.AttemptsFailed
	if a.Success {
		status, counter = "success", &s.counters.AttemptsSucceeded
	}
	tx.OnCommit(func() { counter.Add(1) }) // a write that is undone must not count
	num, err = tx.Insert(`INSERT INTO webhook_executions (id, worker_num, seq, delivery_num, url, request_status,
			response_status, error_message, duration_ms, created_at)
		VALUES (?1, ?2, (SELECT coalesce(max(seq), 0) + 1 FROM webhook_executions WHERE worker_num = ?2),
			?3, ?4, ?5, ?6, ?7, ?8, ?9)`,
		db.NewID("whe", s.db.Now()), d.workerNum, d.num, d.Webhook.URL, status, db.Nullable(a.ResponseStatus),
		db.Nullable(a.ErrorMessage), a.Duration.Milliseconds(), a.StartedAt.UnixMilli())
	if err != nil {
		return 0, err
	}
	err = tx.ExecLater(`INSERT INTO webhook_exchanges (execution_num, request, response) VALUES (?, ?, ?)`,
		num, a.Request, a.Response)
	if err != nil {
		return 0, err
	}
	return num, s.scheduleRetry(tx, d, a)
}

const (
	// ExchangesKept is the number of a worker's newest attempts whose request and response are kept.
	// Those of failed attempts are always kept.
	ExchangesKept = 100
	// trimStep is the number of attempts whose requests and responses are deleted together. So up to
	// trimStep - 1 more than ExchangesKept are stored.
	trimStep = 32
)

// trimExchanges deletes the requests and responses of the attempts that are no longer among a worker's
// newest ones, because it has stored n more attempts. Those of failed attempts stay. It deletes only
// when the number of attempts passes a multiple of trimStep: one range costs less than its rows one
// by one.
func trimExchanges(tx db.Tx, worker int64, n int) error {
	return tx.ExecLater(`DELETE FROM webhook_exchanges WHERE execution_num IN (SELECT num FROM webhook_executions
		WHERE worker_num = ?1 AND request_status = 'success'
			AND seq > ((SELECT max(seq) FROM webhook_executions WHERE worker_num = ?1) - ?3) / ?4 * ?4 - ?2
			AND seq <= (SELECT max(seq) FROM webhook_executions WHERE worker_num = ?1) / ?4 * ?4 - ?2)`,
		worker, ExchangesKept, n, trimStep)
}

// scheduleRetry stores the time of the next attempt at a delivery. A delivery that was given up
// meanwhile gets none.
func (s *Effects) scheduleRetry(tx db.Tx, d Delivery, a Attempt) error {
	// A failed manual attempt does not change the automatic attempts.
	if a.Manual && !a.Success {
		return nil
	}
	if err := s.alertGivenUp(tx, d, a); err != nil {
		return err
	}
	return tx.ExecLater(`UPDATE deliveries SET attempts = attempts + ?,
			next_attempt_at = iif(next_attempt_at IS NULL, NULL, CAST(? AS BIGINT))
		WHERE num = ?`,
		!a.Manual, db.NullMillis(a.Retry), d.num)
}

// alertGivenUp raises the alert of a delivery whose last attempt has failed.
func (s *Effects) alertGivenUp(tx db.Tx, d Delivery, a Attempt) error {
	if a.Success || a.Manual || !a.Retry.IsZero() || d.Test() {
		return nil
	}
	ctx := context.Background()
	o := alertEvent{topic: TopicDelivery, event: EventDeliveryLost, workerID: d.WorkerID}
	// If the webhook was removed meanwhile, the delivery has no next attempt, and a person has
	// caused that.
	_, err := db.One(ctx, tx, db.Into(&o.organizationID, &o.taskNum), `SELECT
			(SELECT id FROM organizations WHERE num = t.organization_num), t.task_num FROM deliveries d
		CROSS JOIN turns t ON t.num = d.turn_num WHERE d.num = ? AND d.next_attempt_at IS NOT NULL`, d.num)
	if err != nil {
		return db.NoRow(err, nil)
	}
	return s.raiseAlert(ctx, tx, o)
}

// An Execution is a stored Attempt.
type Execution struct {
	ID             string
	WorkerID       string
	TaskID         string // '' for a test
	TaskTitle      string
	URL            string
	RequestStatus  string // success or error
	ResponseStatus int    // 0 without a response
	ErrorMessage   string
	Duration       time.Duration
	CreatedAt      time.Time
}

const executionColumns = `e.id, (SELECT id FROM workers WHERE num = e.worker_num), coalesce(k.id, ''),
	coalesce(k.title, ''),
	e.url, e.request_status, coalesce(e.response_status, 0), coalesce(e.error_message, ''), e.duration_ms, e.created_at`

const fromExecutions = ` FROM webhook_executions e CROSS JOIN deliveries d ON d.num = e.delivery_num
	LEFT JOIN turns t ON t.num = d.turn_num LEFT JOIN tasks k ON k.num = t.task_num `

func scanExecution(row db.Scanner) (e Execution, err error) {
	err = row.Scan(&e.ID, &e.WorkerID, &e.TaskID, &e.TaskTitle, &e.URL, &e.RequestStatus, &e.ResponseStatus,
		&e.ErrorMessage, db.AsDuration(&e.Duration), db.AsTime(&e.CreatedAt))
	return e, err
}

// ExecutionsPerPage is how many executions a page lists (interface, Limits).
const ExecutionsPerPage = 50

// Executions returns a page of the attempts to reach a worker's webhook, newest first,
// and the number of all of them. The first page is 1. It returns Forbidden unless the
// caller created the worker.
func (s *Effects) Executions(ctx context.Context, c people.Caller, workerID string,
	page int64) (list []Execution, total int64, err error) {
	w, err := workers.Own(ctx, s.db, c, workerID)
	if err != nil {
		return nil, 0, err
	}
	var newest, oldest int64 // two subqueries, because SQLite uses the index only for a single max or min
	_, err = db.One(ctx, s.db, db.Into(&newest, &oldest), `SELECT
		(SELECT coalesce(max(seq), 0) FROM webhook_executions WHERE worker_num = ?1),
		(SELECT coalesce(min(seq), 1) FROM webhook_executions WHERE worker_num = ?1)`, w.Num)
	if err != nil {
		return nil, 0, err
	}
	// Pruning removes the oldest rows, so no row needs to be counted. Only the pruning of a task
	// with several turns leaves gaps: then the pages have fewer rows, for a time.
	total = newest - oldest + 1
	if page > total { // this also prevents an overflow of the product
		return nil, total, nil
	}
	last := newest - (page-1)*ExecutionsPerPage
	list, err = db.All(ctx, s.db, scanExecution, `SELECT `+executionColumns+fromExecutions+`
		WHERE e.worker_num = ? AND e.seq <= ? AND e.seq > ? ORDER BY e.seq DESC`, w.Num, last, last-ExecutionsPerPage)
	return list, total, err
}

// Execution returns one attempt. It returns Forbidden unless the caller created the worker.
func (s *Effects) Execution(ctx context.Context, c people.Caller, workerID, id string) (Execution, error) {
	if _, err := workers.Own(ctx, s.db, c, workerID); err != nil {
		return Execution{}, err
	}
	e, err := db.One(ctx, s.db, scanExecution, `SELECT `+executionColumns+fromExecutions+`WHERE e.id = ?`, id)
	if err == nil && e.WorkerID != workerID {
		err = sql.ErrNoRows
	}
	return e, db.NoRecord(err, "execution of this worker")
}

// Exchange returns an attempt with the stored parts of its request and its response. Both are
// "" if they are no longer kept: see ExchangesKept. It returns Forbidden unless the caller created
// the worker.
func (s *Effects) Exchange(ctx context.Context, c people.Caller, workerID,
	id string) (e Execution, request, response string, err error) {
	if e, err = s.Execution(ctx, c, workerID, id); err != nil {
		return e, "", "", err
	}
	_, err = db.One(ctx, s.db, db.Into(&request, &response), `SELECT x.request, x.response FROM webhook_executions e
		CROSS JOIN webhook_exchanges x ON x.execution_num = e.num WHERE e.id = ?`, id)
	return e, request, response, db.NoRow(err, nil)
}

// ExecutedDelivery returns the delivery of an execution, so that it can be sent again. It
// returns Forbidden unless the caller created the worker, and a Conflict without a
// webhook or for an archived task.
func (s *Effects) ExecutedDelivery(ctx context.Context, c people.Caller, workerID, executionID string) (Delivery,
	error) {
	if _, err := s.Execution(ctx, c, workerID, executionID); err != nil {
		return Delivery{}, err
	}
	if _, err := configured(ctx, s.db, workerID); err != nil {
		return Delivery{}, err
	}
	d, err := db.One(ctx, s.db, scanDelivery, `SELECT `+deliveryColumns+` FROM webhook_executions e
		CROSS JOIN deliveries d ON d.num = e.delivery_num
		LEFT JOIN webhooks w ON w.worker_id = (SELECT id FROM workers WHERE num = d.worker_num)
		WHERE e.id = ?`, executionID)
	if err == nil && !d.Test() {
		err = mustSpeak(ctx, s.db, d.taskNum)
	}
	return d, err
}

// CreateTestDelivery creates a test, which the queue does not send. It returns Forbidden
// unless the caller created the worker, and a Conflict without a webhook.
func (s *Effects) CreateTestDelivery(ctx context.Context, c people.Caller, workerID string) (d Delivery, err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		worker, err := workers.Own(ctx, tx, c, workerID)
		if err != nil {
			return err
		}
		w, err := configured(ctx, tx, workerID)
		if err != nil {
			return err
		}
		// The caller sends the test itself. Without next_attempt_at, the queue never
		// finds the row.
		d = Delivery{ID: db.NewID("evt", s.db.Now()), workerNum: worker.Num, WorkerID: workerID, Type: TaskCompleted,
			CreatedAt: db.FromMillis(s.db.Millis()), Webhook: w}
		d.num, err = tx.Insert(`INSERT INTO deliveries (id, worker_num, type, attempts, created_at)
			VALUES (?, ?, ?, 0, ?)`,
			d.ID, d.workerNum, d.Type, d.CreatedAt.UnixMilli())
		return err
	})
	return d, err
}

// PruneDeliveries deletes attempts and finished deliveries that are older than age, at
// most limit of each. It returns the number of deleted rows.
func (s *Effects) PruneDeliveries(ctx context.Context, age time.Duration, limit int) (n int64, err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		before := s.db.Now().Add(-age).UnixMilli()
		// The subqueries bound the rows that one call reads, also if nothing is old enough.
		executions, err := tx.Exec(`DELETE FROM webhook_executions WHERE created_at < ?
			AND num IN (SELECT num FROM webhook_executions WHERE num > 0 ORDER BY num LIMIT ?)`, before, limit)
		if err != nil {
			return err
		}
		n, err = tx.Exec(`DELETE FROM deliveries WHERE created_at < ? AND next_attempt_at IS NULL
			AND num IN (SELECT num FROM deliveries WHERE num > 0 ORDER BY num LIMIT ?)
			AND NOT EXISTS (SELECT 1 FROM webhook_executions e WHERE e.delivery_num = deliveries.num)`, before, limit)
		n += executions
		// A write that is undone must not count.
		tx.OnCommit(func() { s.counters.DeliveriesPruned.Add(n) })
		return err
	})
	return n, err
}
