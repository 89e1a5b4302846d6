package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// What a delivery tells of.
const (
	TaskCompleted = "task.completed"
	TaskFailed    = "task.failed"
	TaskAborted   = "task.aborted"
)

// A Delivery is a promise to tell a webhook that a turn has ended.
type Delivery struct {
	num       int64
	turnNum   int64  // 0: a test
	ID        string // the same on every attempt
	WorkerID  string
	Type      string
	Attempts  int64 // made so far
	CreatedAt time.Time
	Webhook   Webhook // as it is now
}

// Test reports whether the delivery tells of no turn but of a sample.
func (d Delivery) Test() bool { return d.turnNum == 0 }

const deliveryColumns = `d.num, coalesce(d.turn_num, 0), d.id, d.worker_id, d.type, d.attempts, d.created_at,
	coalesce(w.url, ''), coalesce(w.token, ''), coalesce(w.signing_secret, '')`

func scanDelivery(row scanner) (d Delivery, err error) {
	var created int64
	err = row.Scan(&d.num, &d.turnNum, &d.ID, &d.WorkerID, &d.Type, &d.Attempts, &created, &d.Webhook.URL, &d.Webhook.Token, &d.Webhook.SigningSecret)
	d.CreatedAt = fromMillis(created)
	return d, err
}

// queueDelivery promises to tell of a turn, in the transaction that ends it, where
// its worker has a webhook.
func (s *Store) queueDelivery(tx *Tx, t Turn) error {
	kind := map[Status]string{Completed: TaskCompleted, Failed: TaskFailed, Aborted: TaskAborted}[t.Status]
	now := s.millis()
	n, err := tx.Exec(`INSERT INTO deliveries (id, worker_id, turn_num, type, attempts, next_attempt_at, created_at)
		SELECT ?, worker_id, ?, ?, 0, ?, ? FROM webhooks WHERE worker_id = ?`, NewID("evt", s.now()), t.Num, kind, now, now, t.WorkerID)
	if err == nil && n > 0 {
		s.deliveryAdded(tx, t.WorkerID)
	}
	return err
}

// OnDelivery has fn called with the id of the worker after a delivery was queued.
// fn must not block. It is to be set before anything can be queued.
func (s *Store) OnDelivery(fn func(workerID string)) { s.onDelivery.Store(&fn) }

func (s *Store) deliveryAdded(tx *Tx, workerID string) {
	if fn := s.onDelivery.Load(); fn != nil {
		tx.ifCommitted(func() { (*fn)(workerID) })
	}
}

// NextDelivery is the worker after the one named, in the order of their ids, that
// has deliveries to make, and when the first of them is due; ok is false where none
// has.
func (s *Store) NextDelivery(ctx context.Context, after string) (workerID string, at time.Time, ok bool, err error) {
	return s.nextDelivery(ctx, `SELECT worker_id, next_attempt_at FROM deliveries INDEXED BY deliveries_due
		WHERE worker_id > ? AND next_attempt_at IS NOT NULL ORDER BY worker_id, next_attempt_at LIMIT 1`, after)
}

// WorkerDelivery is when the next delivery of a worker is due; ok is false where
// none is to be made.
func (s *Store) WorkerDelivery(ctx context.Context, workerID string) (at time.Time, ok bool, err error) {
	_, at, ok, err = s.nextDelivery(ctx, `SELECT worker_id, next_attempt_at FROM deliveries INDEXED BY deliveries_due
		WHERE worker_id = ? AND next_attempt_at IS NOT NULL ORDER BY next_attempt_at LIMIT 1`, workerID)
	return at, ok, err
}

func (s *Store) nextDelivery(ctx context.Context, query string, arg any) (workerID string, at time.Time, ok bool, err error) {
	ms, err := one(ctx, s, func(row scanner) (ms int64, err error) { err = row.Scan(&workerID, &ms); return ms, err }, query, arg)
	if errors.Is(err, sql.ErrNoRows) {
		return "", time.Time{}, false, nil
	}
	return workerID, fromMillis(ms), err == nil, err
}

// DueDeliveries lists up to limit deliveries of a worker that are due, in the order
// in which they are to be made: that of the turns' ends, retries later.
func (s *Store) DueDeliveries(ctx context.Context, workerID string, limit int) ([]Delivery, error) {
	return all(ctx, s, scanDelivery, `SELECT `+deliveryColumns+` FROM deliveries d INDEXED BY deliveries_due
		LEFT JOIN webhooks w ON w.worker_id = d.worker_id
		WHERE d.worker_id = ? AND d.next_attempt_at <= ? ORDER BY d.next_attempt_at, d.num LIMIT ?`, workerID, s.millis(), limit)
}

// CurrentDelivery gives a delivery and its webhook as they are now; ok is false where
// it is done with or was given up.
func (s *Store) CurrentDelivery(ctx context.Context, d Delivery) (now Delivery, ok bool, err error) {
	now, err = one(ctx, s, scanDelivery, `SELECT `+deliveryColumns+` FROM deliveries d CROSS JOIN webhooks w ON w.worker_id = d.worker_id
		WHERE d.num = ? AND d.next_attempt_at IS NOT NULL`, d.num)
	if errors.Is(err, sql.ErrNoRows) {
		return d, false, nil
	}
	return now, err == nil, err
}

// DeliverySubject gives the task, turn and worker that a delivery tells of; of a
// test the worker alone.
func (s *Store) DeliverySubject(ctx context.Context, d Delivery) (task Task, t Turn, w Worker, err error) {
	w, err = one(ctx, s, scanWorker, `SELECT `+workerColumns+fromWorkers+`WHERE w.id = ?`, d.WorkerID)
	if err != nil || d.Test() {
		return task, t, w, err
	}
	if t, err = one(ctx, s, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE num = ?`, d.turnNum); err != nil {
		return task, t, w, err
	}
	task, err = one(ctx, s, scanTask, `SELECT `+taskColumns+` FROM tasks WHERE num = ?`, t.TaskNum)
	return task, t, w, err
}

// An Attempt says how sending a delivery went.
type Attempt struct {
	Success        bool   // a response of 2xx
	ResponseStatus int    // 0: no response
	ErrorMessage   string // '' with Success
	StartedAt      time.Time
	Duration       time.Duration
	Retry          time.Time // when to try again; zero for never
	Manual         bool      // someone asked for it: without Success the delivery's own tries go on
	Request        string    // what was sent, without secrets and as far as it is to be kept
	Response       string    // what came back; '' where nothing did
}

// RecordAttempt writes down an attempt at a delivery, and when the next is due.
func (s *Store) RecordAttempt(ctx context.Context, d Delivery, a Attempt) (Execution, error) {
	list, err := s.RecordAttempts(ctx, []Attempt{a}, []Delivery{d})
	if err != nil {
		return Execution{}, err
	}
	return list[0], nil
}

// RecordAttempts is RecordAttempt for several, in their order: attempts[i] is one
// at deliveries[i].
func (s *Store) RecordAttempts(ctx context.Context, attempts []Attempt, deliveries []Delivery) (list []Execution, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		for i, a := range attempts {
			e, err := s.recordAttempt(ctx, tx, deliveries[i], a)
			if err != nil {
				return err
			}
			list = append(list, e)
		}
		return nil
	})
	return list, err
}

func (s *Store) recordAttempt(ctx context.Context, tx *Tx, d Delivery, a Attempt) (e Execution, err error) {
	tx.ifCommitted(func() { s.counters.attempted(a.Success) })
	status := "error"
	if a.Success {
		status = "success"
	}
	var response any
	if a.ResponseStatus != 0 {
		response = a.ResponseStatus
	}
	num, err := tx.Insert(`INSERT INTO webhook_executions (id, worker_id, seq, delivery_num, url, request_status, response_status, error_message,
			duration_ms, created_at, request, response)
		VALUES (?1, ?2, (SELECT coalesce(max(seq), 0) + 1 FROM webhook_executions WHERE worker_id = ?2), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)`,
		NewID("whe", s.now()), d.WorkerID, d.num, d.Webhook.URL, status, response, nullable(a.ErrorMessage),
		a.Duration.Milliseconds(), a.StartedAt.UnixMilli(), a.Request, a.Response)
	if err != nil {
		return e, err
	}
	if err := s.settle(tx, d, a); err != nil {
		return e, err
	}
	return one(ctx, tx, scanExecution, `SELECT `+executionColumns+fromExecutions+`WHERE e.num = ?`, num)
}

// settle says when a delivery is tried again. One that was given up meanwhile stays
// so.
func (s *Store) settle(tx *Tx, d Delivery, a Attempt) error {
	if a.Manual && !a.Success {
		return nil
	}
	_, err := tx.Exec(`UPDATE deliveries SET attempts = attempts + ?, next_attempt_at = iif(next_attempt_at IS NULL, NULL, ?) WHERE num = ?`,
		!a.Manual, nullMillis(a.Retry), d.num)
	return err
}

// An Execution is one attempt at a delivery, as the interface shows it.
type Execution struct {
	ID             string
	WorkerID       string
	TaskID         string // '' for a test
	TaskTitle      string
	URL            string
	RequestStatus  string // success or error
	ResponseStatus int    // 0: not reached
	ErrorMessage   string
	Duration       time.Duration
	CreatedAt      time.Time
}

const executionColumns = `e.id, e.worker_id, coalesce(k.id, ''), coalesce(k.title, ''), e.url, e.request_status, coalesce(e.response_status, 0),
	coalesce(e.error_message, ''), e.duration_ms, e.created_at`

const fromExecutions = ` FROM webhook_executions e CROSS JOIN deliveries d ON d.num = e.delivery_num
	LEFT JOIN turns t ON t.num = d.turn_num LEFT JOIN tasks k ON k.num = t.task_num `

func scanExecution(row scanner) (e Execution, err error) {
	var duration, created int64
	err = row.Scan(&e.ID, &e.WorkerID, &e.TaskID, &e.TaskTitle, &e.URL, &e.RequestStatus, &e.ResponseStatus, &e.ErrorMessage, &duration, &created)
	e.Duration, e.CreatedAt = time.Duration(duration)*time.Millisecond, fromMillis(created)
	return e, err
}

// ExecutionsPerPage is how many executions a page lists (interface, Limits).
const ExecutionsPerPage = 50

// Executions lists a page of the attempts to reach a worker's webhook, newest
// first, and says how many there are; only the worker's creator may ask. The first
// page is 1.
func (s *Store) Executions(ctx context.Context, c Caller, workerID string, page int64) (list []Execution, total int64, err error) {
	if _, err := s.ownWorker(ctx, s, c, workerID); err != nil {
		return nil, 0, err
	}
	newest, err := one(ctx, s, scanInt, `SELECT coalesce(max(seq), 0) FROM webhook_executions WHERE worker_id = ?`, workerID)
	if err != nil {
		return nil, 0, err
	}
	oldest, err := one(ctx, s, scanInt, `SELECT coalesce(min(seq), 1) FROM webhook_executions WHERE worker_id = ?`, workerID)
	if err != nil {
		return nil, 0, err
	}
	total = newest - oldest + 1
	if page > total { // which also keeps the product small
		return nil, total, nil
	}
	last := newest - (page-1)*ExecutionsPerPage
	list, err = all(ctx, s, scanExecution, `SELECT `+executionColumns+fromExecutions+`
		WHERE e.worker_id = ? AND e.seq <= ? AND e.seq > ? ORDER BY e.seq DESC`, workerID, last, last-ExecutionsPerPage)
	return list, total, err
}

// Execution gives one attempt; only the worker's creator may ask.
func (s *Store) Execution(ctx context.Context, c Caller, workerID, id string) (Execution, error) {
	if _, err := s.ownWorker(ctx, s, c, workerID); err != nil {
		return Execution{}, err
	}
	e, err := one(ctx, s, scanExecution, `SELECT `+executionColumns+fromExecutions+`WHERE e.id = ?`, id)
	if err == nil && e.WorkerID != workerID {
		err = sql.ErrNoRows
	}
	return e, notFound(err, "execution of this worker")
}

// Exchange gives what was sent and what came back in one attempt, as far as both are
// kept; only the worker's creator may ask.
func (s *Store) Exchange(ctx context.Context, c Caller, workerID, id string) (e Execution, request, response string, err error) {
	if e, err = s.Execution(ctx, c, workerID, id); err != nil {
		return e, "", "", err
	}
	_, err = one(ctx, s, func(row scanner) (struct{}, error) { return struct{}{}, row.Scan(&request, &response) },
		`SELECT request, response FROM webhook_executions WHERE id = ?`, id)
	return e, request, response, notFound(err, "execution of this worker")
}

// ExecutedDelivery gives the delivery that an execution was an attempt at, to be
// made again; only the worker's creator may ask, and there must be a webhook.
func (s *Store) ExecutedDelivery(ctx context.Context, c Caller, workerID, executionID string) (Delivery, error) {
	if _, err := s.Execution(ctx, c, workerID, executionID); err != nil {
		return Delivery{}, err
	}
	if _, err := s.configured(ctx, s, workerID); err != nil {
		return Delivery{}, err
	}
	return one(ctx, s, scanDelivery, `SELECT `+deliveryColumns+` FROM webhook_executions e CROSS JOIN deliveries d ON d.num = e.delivery_num
		LEFT JOIN webhooks w ON w.worker_id = d.worker_id WHERE e.id = ?`, executionID)
}

// CreateTestDelivery makes a delivery of a sample, which is not sent by itself; only
// the worker's creator may, and there must be a webhook.
func (s *Store) CreateTestDelivery(ctx context.Context, c Caller, workerID string) (d Delivery, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		if _, err := s.ownWorker(ctx, tx, c, workerID); err != nil {
			return err
		}
		w, err := s.configured(ctx, tx, workerID)
		if err != nil {
			return err
		}
		d = Delivery{ID: NewID("evt", s.now()), WorkerID: workerID, Type: TaskCompleted, CreatedAt: fromMillis(s.millis()), Webhook: w}
		d.num, err = tx.Insert(`INSERT INTO deliveries (id, worker_id, type, attempts, created_at) VALUES (?, ?, ?, 0, ?)`,
			d.ID, d.WorkerID, d.Type, d.CreatedAt.UnixMilli())
		return err
	})
	return d, err
}

// PruneDeliveries forgets deliveries that are done with and attempts, both older
// than age, at most limit of each, and says how many.
func (s *Store) PruneDeliveries(ctx context.Context, age time.Duration, limit int) (n int64, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		before := s.now().Add(-age).UnixMilli()
		executions, err := tx.Exec(`DELETE FROM webhook_executions WHERE created_at < ?
			AND num IN (SELECT num FROM webhook_executions WHERE num > 0 ORDER BY num LIMIT ?)`, before, limit)
		if err != nil {
			return err
		}
		n, err = tx.Exec(`DELETE FROM deliveries WHERE created_at < ? AND next_attempt_at IS NULL
			AND num IN (SELECT num FROM deliveries WHERE num > 0 ORDER BY num LIMIT ?)
			AND NOT EXISTS (SELECT 1 FROM webhook_executions e WHERE e.delivery_num = deliveries.num)`, before, limit)
		n += executions
		return err
	})
	return n, err
}
