-- From version 1 to version 2. Foreign keys are not enforced while this runs, so
-- a table may be replaced by a copy with other columns; they are checked at the end.

-- Endings: more reasons why an answer is incomplete, and what a call under way costs
-- if the process dies in it. A CHECK cannot be changed, so the table is made anew.
CREATE TABLE turns_2 (
    num                INTEGER PRIMARY KEY,
    id                 TEXT NOT NULL UNIQUE,
    task_num           INTEGER NOT NULL REFERENCES tasks (num) ON DELETE RESTRICT,
    seq                INTEGER NOT NULL,
    organization_id    TEXT NOT NULL,
    worker_id          TEXT NOT NULL,
    worker_version     INTEGER NOT NULL,
    created_by_user_id TEXT,
    api_key_id         TEXT,
    own_folder         INTEGER NOT NULL
                       CHECK (own_folder IN (0, 1) AND (own_folder = 1 OR created_by_user_id IS NOT NULL)),
    triggered_by       TEXT NOT NULL CHECK (triggered_by IN ('api', 'email', 'schedule', 'ui')),
    input              TEXT NOT NULL CHECK (input <> ''),
    budget             TEXT NOT NULL CHECK (budget IN ('low', 'standard', 'high', 'unlimited')),
    status             TEXT NOT NULL
                       CHECK (status IN ('pending', 'running', 'completed', 'error', 'aborted')),
    ready              INTEGER NOT NULL CHECK (ready IN (0, 1)),
    runner_id          TEXT
                       CHECK ((runner_id IS NOT NULL) = (status = 'running' AND rests_until IS NULL)),
    rests_until        INTEGER
                       CHECK (rests_until IS NULL OR status = 'running'),
    claims             INTEGER NOT NULL,
    interruptions      INTEGER NOT NULL,
    abort_requested    INTEGER NOT NULL CHECK (abort_requested IN (0, 1)),
    output_text        TEXT NOT NULL,
    structured_output  TEXT,
    error_code         TEXT,
    error_message      TEXT,
    error_retryable    INTEGER,
    incomplete_reason  TEXT CHECK (incomplete_reason IN ('budget_exhausted', 'max_output_tokens', 'content_filter', 'aborted')),
    incomplete_limit   TEXT CHECK (incomplete_limit IN ('credits', 'steps', 'time')),
    model              TEXT NOT NULL,
    steps              INTEGER NOT NULL,
    input_tokens       INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    cache_read_tokens  INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    reasoning_tokens   INTEGER NOT NULL,
    model_cost         INTEGER NOT NULL,
    tool_cost          INTEGER NOT NULL,
    duration_ms        INTEGER NOT NULL,
    call_tokens        INTEGER,
    call_cost          INTEGER CHECK ((call_cost IS NULL) = (call_tokens IS NULL)),
    created_at         INTEGER NOT NULL,
    started_at         INTEGER,
    completed_at       INTEGER CHECK ((completed_at IS NULL) = (status IN ('pending', 'running'))),
    task_status        TEXT
                       CHECK ((task_status IS NULL) = (completed_at IS NULL)),
    UNIQUE (task_num, seq)
) STRICT;

INSERT INTO turns_2 (
    num, id, task_num, seq, organization_id, worker_id, worker_version, created_by_user_id, api_key_id, own_folder,
    triggered_by, input, budget, status, ready, runner_id, rests_until, claims, interruptions, abort_requested,
    output_text, structured_output, error_code, error_message, error_retryable, incomplete_reason,
    incomplete_limit, model, steps, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
    reasoning_tokens, model_cost, tool_cost, duration_ms, created_at, started_at, completed_at, task_status
)
SELECT
    num, id, task_num, seq, organization_id, worker_id, worker_version, created_by_user_id, api_key_id, created_by_user_id IS NULL,
    triggered_by, input, budget, status, ready, runner_id, rests_until, claims, interruptions, abort_requested,
    output_text, structured_output, error_code, error_message, error_retryable, incomplete_reason,
    incomplete_limit, model, steps, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
    reasoning_tokens, model_cost, tool_cost, duration_ms, created_at, started_at, completed_at,
    CASE WHEN completed_at IS NULL THEN NULL
        WHEN EXISTS (SELECT 1 FROM turns n WHERE n.task_num = turns.task_num AND n.seq = turns.seq + 1
            AND n.created_at < turns.completed_at AND (n.completed_at IS NULL OR n.completed_at > turns.completed_at)) THEN 'pending'
        ELSE status END
FROM turns;

DROP TABLE turns;
ALTER TABLE turns_2 RENAME TO turns;

CREATE INDEX turns_queued    ON turns (ready, organization_id, worker_id, num) WHERE status = 'pending';
CREATE INDEX turns_running   ON turns (runner_id) WHERE runner_id IS NOT NULL;
CREATE INDEX turns_resting   ON turns (rests_until) WHERE rests_until IS NOT NULL;
CREATE INDEX turns_by_worker ON turns (worker_id, num);

-- A schedule knows the task of its last run. Until now none did: a turn of a schedule
-- that waits or runs is that of the schedule with the same worker, user and input.
ALTER TABLE schedules ADD COLUMN running_task_num INTEGER REFERENCES tasks (num) ON DELETE RESTRICT;

DROP INDEX schedules_due;
DROP INDEX schedules_by_organization;
CREATE INDEX schedules_due             ON schedules (next_run_at)                  WHERE next_run_at IS NOT NULL AND paused = 0 AND running_task_num IS NULL;
CREATE INDEX schedules_by_organization ON schedules (organization_id, running_task_num, next_run_at) WHERE next_run_at IS NOT NULL AND paused = 0;
CREATE INDEX schedules_by_running_task ON schedules (running_task_num)             WHERE running_task_num IS NOT NULL;

UPDATE schedules SET running_task_num = unfinished.task_num
FROM (
    SELECT worker_id, created_by_user_id, input, max(task_num) AS task_num
    FROM turns
    WHERE status IN ('pending', 'running') AND triggered_by = 'schedule'
    GROUP BY worker_id, created_by_user_id, input
) AS unfinished
WHERE unfinished.worker_id = schedules.worker_id AND unfinished.created_by_user_id = schedules.created_by_user_id
    AND unfinished.input = schedules.input AND schedules.next_run_at IS NOT NULL;

-- The status of a task follows from its turns by one rule, which the table holds. Until
-- now it was that of the newest turn, even while an earlier one ran.
CREATE TABLE tasks_2 (
    num                INTEGER PRIMARY KEY,
    id                 TEXT NOT NULL,                    -- tsk_, or the client's own
    organization_id    TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    worker_id          TEXT NOT NULL REFERENCES workers (id) ON DELETE RESTRICT,
    created_by_user_id TEXT,                             -- NULL: a stranger's mail
    title              TEXT NOT NULL,
    -- The one rule that says a task's status. Every answer, filter, stream, webhook and
    -- page takes it from here.
    status             TEXT NOT NULL GENERATED ALWAYS AS
                       (CASE WHEN running THEN 'running' WHEN unfinished THEN 'pending' ELSE outcome END) VIRTUAL,
    triggered_by       TEXT NOT NULL CHECK (triggered_by IN ('api', 'email', 'schedule', 'ui')),
    turn_count         INTEGER NOT NULL,
    unfinished         INTEGER NOT NULL CHECK (unfinished >= 0), -- turns pending or running
    running            INTEGER NOT NULL CHECK (running IN (0, 1) AND running <= unfinished), -- turns running
    outcome            TEXT NOT NULL                     -- how its newest turn ended; '' before
                       CHECK (outcome IN ('', 'completed', 'error', 'aborted') AND (outcome <> '' OR unfinished > 0)),
    cost               INTEGER NOT NULL,                 -- nano-dollars
    duration_ms        INTEGER NOT NULL,
    created_at         INTEGER NOT NULL,
    completed_at       INTEGER CHECK ((completed_at IS NULL) = (unfinished > 0)),
    archived_at        INTEGER
) STRICT;

INSERT INTO tasks_2 (
    num, id, organization_id, worker_id, created_by_user_id, title, triggered_by, turn_count, unfinished, running, outcome,
    cost, duration_ms, created_at, completed_at, archived_at
)
SELECT
    k.num, k.id, k.organization_id, k.worker_id, k.created_by_user_id, k.title, k.triggered_by, k.turn_count, k.unfinished,
    EXISTS (SELECT 1 FROM turns r WHERE r.task_num = k.num AND r.status = 'running'),
    iif(k.status IN ('pending', 'running'), '', k.status), k.cost, k.duration_ms, k.created_at,
    iif(k.unfinished > 0, NULL, (SELECT max(e.completed_at) FROM turns e WHERE e.task_num = k.num)), k.archived_at
FROM tasks k;

DROP TABLE tasks;
ALTER TABLE tasks_2 RENAME TO tasks;

CREATE UNIQUE INDEX tasks_by_id ON tasks (id, organization_id);
CREATE INDEX tasks_listed     ON tasks (organization_id, created_at)               WHERE archived_at IS NULL;
CREATE INDEX tasks_by_worker  ON tasks (worker_id, created_at)                     WHERE archived_at IS NULL;
CREATE INDEX tasks_by_status  ON tasks (organization_id, status, created_at)       WHERE archived_at IS NULL;
CREATE INDEX tasks_by_trigger ON tasks (organization_id, triggered_by, created_at) WHERE archived_at IS NULL;
CREATE INDEX tasks_archived   ON tasks (organization_id, created_at)               WHERE archived_at IS NOT NULL;
CREATE INDEX tasks_by_caller  ON tasks (worker_id, created_by_user_id)             WHERE archived_at IS NULL;

-- A delivery shows the task as it was when its turn ended. Those that are still to be
-- made show it as their type says.
ALTER TABLE deliveries ADD COLUMN task_status TEXT;
ALTER TABLE deliveries ADD COLUMN task_turns INTEGER;
ALTER TABLE deliveries ADD COLUMN task_cost INTEGER;
ALTER TABLE deliveries ADD COLUMN task_duration INTEGER;

UPDATE deliveries SET
    task_status = CASE type WHEN 'task.completed' THEN 'completed' WHEN 'task.failed' THEN 'error' ELSE 'aborted' END,
    (task_turns, task_cost, task_duration) = (SELECT k.turn_count, k.cost, k.duration_ms
        FROM turns t CROSS JOIN tasks k ON k.num = t.task_num WHERE t.num = deliveries.turn_num)
WHERE turn_num IS NOT NULL;

-- Tools and folders: strangers' tasks, and the turns they have from now on, are apart.
-- What they attached and published before keeps its address: rows of files stay.
ALTER TABLE workers ADD COLUMN workspace TEXT NOT NULL DEFAULT 'shared' CHECK (workspace IN ('shared', 'task'));
ALTER TABLE worker_versions ADD COLUMN tools TEXT CHECK (json_valid(tools));
ALTER TABLE worker_versions ADD COLUMN stranger_tools TEXT CHECK (json_valid(stranger_tools));
ALTER TABLE tasks ADD COLUMN own_folder INTEGER NOT NULL DEFAULT 0 CHECK (own_folder IN (0, 1));
UPDATE tasks SET own_folder = 1 WHERE created_by_user_id IS NULL;

-- The answers of a private worker go to the author of a mail alone, those of others to
-- the author's domain. Before, they followed Reply-To anywhere. An answer that waits to
-- be sent is composed anew.
UPDATE inbound_emails SET reply_to = from_address
WHERE reply_to <> '' AND reply_to <> from_address
    AND (worker_id IN (SELECT id FROM workers WHERE visibility = 'private')
        OR lower(substr(reply_to, instr(reply_to, '@'))) <> lower(substr(from_address, instr(from_address, '@'))));
UPDATE outbound_emails SET subject = '', size = 0, source = NULL, source_sha256 = NULL,
    recipient = (SELECT e.reply_to FROM inbound_emails e WHERE e.num = inbound_num)
WHERE status = 'queued'
    AND recipient <> (SELECT e.reply_to FROM inbound_emails e WHERE e.num = inbound_num AND e.reply_to <> '');
