-- From version 2 to version 3. Foreign keys are not enforced while this runs, so
-- a table may be replaced by a copy with other columns; they are checked at the end.

-- Access by OAuth 2.1 for MCP clients.
CREATE TABLE oauth_clients (
    id            TEXT PRIMARY KEY,
    name          TEXT NOT NULL CHECK (name <> ''),
    redirect_uris TEXT NOT NULL CHECK (json_valid(redirect_uris)),
    created_at    INTEGER NOT NULL,
    last_used_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX oauth_clients_by_use ON oauth_clients (last_used_at);

CREATE TABLE oauth_grants (
    id              TEXT PRIMARY KEY,
    client_id       TEXT NOT NULL REFERENCES oauth_clients (id) ON DELETE RESTRICT,
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    user_id         TEXT NOT NULL REFERENCES users (id) ON DELETE RESTRICT,
    code_hash       BLOB UNIQUE CHECK (length(code_hash) = 32),
    code_challenge  TEXT NOT NULL,
    redirect_uri    TEXT NOT NULL,
    refresh_hash    BLOB UNIQUE CHECK (length(refresh_hash) = 32),
    created_at      INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    revoked_at      INTEGER
) STRICT;
CREATE INDEX oauth_grants_by_client ON oauth_grants (client_id);
CREATE INDEX oauth_grants_by_user   ON oauth_grants (user_id, organization_id);
CREATE INDEX oauth_grants_by_expiry ON oauth_grants (expires_at);

-- Rows that are many refer to people, keys and workers by num: an id takes 30 bytes.
-- Besides that, organizations have models, users say how they want the pages, and a key
-- may belong to a grant.
CREATE TABLE organizations_3 (
    num                INTEGER PRIMARY KEY,
    id                 TEXT NOT NULL UNIQUE,
    name               TEXT NOT NULL UNIQUE CHECK (name <> ''),
    monthly_credit_cap REAL CHECK (monthly_credit_cap >= 0),
    created_at         INTEGER NOT NULL,
    models             TEXT NOT NULL DEFAULT ''
) STRICT;

INSERT INTO organizations_3 (
    id, name, monthly_credit_cap, created_at
)
SELECT
    id, name, monthly_credit_cap, created_at
FROM organizations ORDER BY rowid;

DROP TABLE organizations;
ALTER TABLE organizations_3 RENAME TO organizations;

CREATE TABLE users_3 (
    num           INTEGER PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE,
    email         TEXT NOT NULL UNIQUE COLLATE NOCASE CHECK (email <> ''),
    name          TEXT NOT NULL,
    password_hash TEXT,
    created_at    INTEGER NOT NULL,
    theme         TEXT NOT NULL DEFAULT '' CHECK (theme IN ('', 'light', 'dark')),
    language      TEXT NOT NULL DEFAULT '',
    shortcuts     INTEGER NOT NULL DEFAULT 1 CHECK (shortcuts IN (0, 1))
) STRICT;

INSERT INTO users_3 (
    id, email, name, password_hash, created_at
)
SELECT
    id, email, name, password_hash, created_at
FROM users ORDER BY rowid;

DROP TABLE users;
ALTER TABLE users_3 RENAME TO users;

CREATE TABLE api_keys_3 (
    num             INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    user_id         TEXT NOT NULL REFERENCES users (id) ON DELETE RESTRICT,
    name            TEXT NOT NULL CHECK (name <> ''),
    hash            BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    prefix          TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    last_used_at    INTEGER,
    expires_at      INTEGER,
    revoked_at      INTEGER,
    oauth_grant_id  TEXT REFERENCES oauth_grants (id) ON DELETE RESTRICT
) STRICT;

INSERT INTO api_keys_3 (
    id, organization_id, user_id, name, hash, prefix, created_at, last_used_at, expires_at, revoked_at
)
SELECT
    id, organization_id, user_id, name, hash, prefix, created_at, last_used_at, expires_at, revoked_at
FROM api_keys ORDER BY rowid;

DROP TABLE api_keys;
ALTER TABLE api_keys_3 RENAME TO api_keys;

CREATE INDEX api_keys_by_organization ON api_keys (organization_id, id);
CREATE INDEX api_keys_by_grant        ON api_keys (oauth_grant_id) WHERE oauth_grant_id IS NOT NULL;

-- Secrets of tools, and logins at MCP servers.
CREATE TABLE secrets (
    id                 TEXT PRIMARY KEY,
    organization_id    TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    worker_id          TEXT REFERENCES workers (id) ON DELETE RESTRICT,
    name               TEXT NOT NULL CHECK (name <> ''),
    hosts              TEXT NOT NULL CHECK (json_valid(hosts)),
    sealed             BLOB NOT NULL,
    created_by_user_id TEXT NOT NULL REFERENCES users (id) ON DELETE RESTRICT,
    created_at         INTEGER NOT NULL,
    updated_at         INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX secrets_by_name ON secrets (organization_id, coalesce(worker_id, ''), name);

CREATE TABLE mcp_logins (
    server     TEXT PRIMARY KEY,
    sealed     BLOB NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

-- What a suspended turn waits for: until now, every such turn waited for a person. Turns
-- that a turn has started. Of ended tasks, the list by status leaves most out.
CREATE TABLE tasks_3 (
    num                INTEGER PRIMARY KEY,
    id                 TEXT NOT NULL,
    organization_num   INTEGER NOT NULL REFERENCES organizations (num) ON DELETE RESTRICT,
    worker_num         INTEGER NOT NULL REFERENCES workers (num) ON DELETE RESTRICT,
    created_by_num     INTEGER,
    title              TEXT NOT NULL,
    status             TEXT NOT NULL GENERATED ALWAYS AS
                       (CASE WHEN running THEN 'running' WHEN unfinished THEN 'pending' ELSE outcome END) VIRTUAL,
    triggered_by       TEXT NOT NULL CHECK (triggered_by IN ('api', 'email', 'schedule', 'ui')),
    turn_count         INTEGER NOT NULL,
    unfinished         INTEGER NOT NULL CHECK (unfinished >= 0),
    running            INTEGER NOT NULL CHECK (running IN (0, 1) AND running <= unfinished),
    outcome            TEXT NOT NULL
                       CHECK (outcome IN ('', 'completed', 'error', 'aborted') AND (outcome <> '' OR unfinished > 0)),
    cost               INTEGER NOT NULL,
    duration_ms        INTEGER NOT NULL,
    created_at         INTEGER NOT NULL,
    completed_at       INTEGER CHECK ((completed_at IS NULL) = (unfinished > 0)),
    archived_at        INTEGER,
    own_folder         INTEGER NOT NULL DEFAULT 0 CHECK (own_folder IN (0, 1)),
    waits_for          TEXT CHECK (waits_for IN ('person', 'model', 'worker'))
                       CHECK (waits_for IS NULL OR running = 1)
) STRICT;

INSERT INTO tasks_3 (
    num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running,
    outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder
)
SELECT
    num, id, (SELECT o.num FROM organizations o WHERE o.id = organization_id),
    (SELECT w.num FROM workers w WHERE w.id = worker_id), (SELECT u.num FROM users u WHERE u.id = created_by_user_id),
    title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at,
    archived_at, own_folder
FROM tasks ORDER BY num;

DROP TABLE tasks;
ALTER TABLE tasks_3 RENAME TO tasks;

CREATE UNIQUE INDEX tasks_by_id ON tasks (id, organization_num);
CREATE INDEX tasks_listed     ON tasks (organization_num, created_at)               WHERE archived_at IS NULL;
CREATE INDEX tasks_by_worker  ON tasks (worker_num, created_at)                     WHERE archived_at IS NULL;
CREATE INDEX tasks_by_status  ON tasks (organization_num, status, created_at)       WHERE archived_at IS NULL AND status <> 'completed';
CREATE INDEX tasks_by_trigger ON tasks (organization_num, triggered_by, created_at) WHERE archived_at IS NULL;
CREATE INDEX tasks_archived   ON tasks (organization_num, created_at)               WHERE archived_at IS NOT NULL;
CREATE INDEX tasks_waiting    ON tasks (organization_num, waits_for, created_at)    WHERE waits_for IS NOT NULL AND archived_at IS NULL;
CREATE INDEX tasks_by_caller  ON tasks (worker_num, created_by_num)                 WHERE archived_at IS NULL;
CREATE INDEX tasks_ended      ON tasks (worker_num, completed_at)                   WHERE completed_at IS NOT NULL;

CREATE TABLE turns_3 (
    num                INTEGER PRIMARY KEY,
    id                 TEXT NOT NULL UNIQUE,
    task_num           INTEGER NOT NULL REFERENCES tasks (num) ON DELETE RESTRICT,
    seq                INTEGER NOT NULL,
    organization_num   INTEGER NOT NULL,
    worker_num         INTEGER NOT NULL,
    worker_version     INTEGER NOT NULL,
    created_by_num     INTEGER,
    api_key_num        INTEGER,
    own_folder         INTEGER NOT NULL
                       CHECK (own_folder IN (0, 1) AND (own_folder = 1 OR created_by_num IS NOT NULL)),
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
                       CHECK (task_status IS NULL OR completed_at IS NOT NULL AND task_status <> status),
    envelope           TEXT NOT NULL DEFAULT '',
    waits_for          TEXT CHECK (waits_for IN ('person', 'model', 'worker'))
                       CHECK (waits_for IS NULL OR rests_until IS NOT NULL),
    wait_reason        TEXT CHECK (wait_reason IS NULL OR waits_for IS NOT NULL),
    retry_at           INTEGER CHECK (retry_at IS NULL OR waits_for IS 'model'),
    failing_since      INTEGER,
    failed_calls       INTEGER NOT NULL DEFAULT 0,
    parent_turn_num    INTEGER REFERENCES turns (num) ON DELETE RESTRICT,
    parent_step_seq    INTEGER CHECK ((parent_step_seq IS NULL) = (parent_turn_num IS NULL)),
    parent_call_seq    INTEGER CHECK ((parent_call_seq IS NULL) = (parent_turn_num IS NULL)),
    root_turn_num      INTEGER REFERENCES turns (num) ON DELETE RESTRICT
                       CHECK ((root_turn_num IS NULL) = (parent_turn_num IS NULL)),
    depth              INTEGER NOT NULL DEFAULT 0
                       CHECK ((depth = 0) = (parent_turn_num IS NULL)),
    UNIQUE (task_num, seq)
) STRICT;

INSERT INTO turns_3 (
    num, id, task_num, seq, organization_num, worker_num, worker_version, created_by_num, api_key_num, own_folder,
    triggered_by, input, budget, status, ready, runner_id, rests_until, claims, interruptions, abort_requested,
    output_text, structured_output, error_code, error_message, error_retryable, incomplete_reason, incomplete_limit,
    model, steps, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, model_cost,
    tool_cost, duration_ms, call_tokens, call_cost, created_at, started_at, completed_at, task_status
)
SELECT
    num, id, task_num, seq, (SELECT o.num FROM organizations o WHERE o.id = organization_id),
    (SELECT w.num FROM workers w WHERE w.id = worker_id), worker_version,
    (SELECT u.num FROM users u WHERE u.id = created_by_user_id),
    (SELECT k.num FROM api_keys k WHERE k.id = api_key_id), own_folder, triggered_by, input, budget, status, ready,
    runner_id, rests_until, claims, interruptions, abort_requested, output_text, structured_output, error_code,
    error_message, error_retryable, incomplete_reason, incomplete_limit, model, steps, input_tokens, output_tokens,
    cache_read_tokens, cache_write_tokens, reasoning_tokens, model_cost, tool_cost, duration_ms, call_tokens,
    call_cost, created_at, started_at, completed_at, nullif(task_status, status)
FROM turns ORDER BY num;

DROP TABLE turns;
ALTER TABLE turns_3 RENAME TO turns;

CREATE INDEX turns_queued    ON turns (ready, organization_num, worker_num, num) WHERE status = 'pending';
CREATE INDEX turns_running   ON turns (runner_id) WHERE runner_id IS NOT NULL;
CREATE INDEX turns_resting   ON turns (rests_until) WHERE rests_until IS NOT NULL;
CREATE INDEX turns_retrying  ON turns (retry_at) WHERE retry_at IS NOT NULL;
CREATE UNIQUE INDEX turns_by_parent ON turns (parent_turn_num, parent_step_seq, parent_call_seq) WHERE parent_turn_num IS NOT NULL;
CREATE INDEX turns_by_root   ON turns (root_turn_num) WHERE root_turn_num IS NOT NULL;
CREATE INDEX turns_by_worker ON turns (worker_num, num);

UPDATE turns SET waits_for = 'person' WHERE rests_until IS NOT NULL;
UPDATE tasks SET waits_for = 'person' WHERE num IN (SELECT task_num FROM turns WHERE rests_until IS NOT NULL);

-- Images that tools show to the model.
CREATE TABLE call_images (
    turn_num   INTEGER NOT NULL,
    step_seq   INTEGER NOT NULL,
    call_seq   INTEGER NOT NULL,
    seq        INTEGER NOT NULL,
    path       TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size       INTEGER NOT NULL CHECK (size > 0),
    sha256     TEXT NOT NULL CHECK (length(sha256) = 64),
    PRIMARY KEY (turn_num, step_seq, call_seq, seq),
    FOREIGN KEY (turn_num, step_seq, call_seq) REFERENCES tool_calls (turn_num, step_seq, seq) ON DELETE RESTRICT
) STRICT;
CREATE INDEX call_images_by_sha256 ON call_images (sha256);

-- Questions beside approvals. A CHECK cannot be changed, so the table is made anew.
CREATE TABLE approvals_3 (
    num                INTEGER PRIMARY KEY,
    id                 TEXT NOT NULL UNIQUE,
    kind               TEXT NOT NULL CHECK (kind IN ('approval', 'question')),
    organization_id    TEXT NOT NULL,
    task_num           INTEGER NOT NULL REFERENCES tasks (num) ON DELETE RESTRICT,
    turn_num           INTEGER NOT NULL,
    step_seq           INTEGER NOT NULL,
    call_seq           INTEGER NOT NULL,
    status             TEXT NOT NULL
                       CHECK (status IN ('pending', 'approved', 'denied', 'answered', 'expired', 'cancelled')),
    reason             TEXT NOT NULL,
    answer             TEXT CHECK ((answer IS NOT NULL) = (status = 'answered')),
    decision           INTEGER
                       CHECK ((decision IS NOT NULL) = (status IN ('approved', 'denied', 'answered'))),
    decided_by_user_id TEXT,
    created_at         INTEGER NOT NULL,
    decided_at         INTEGER CHECK ((decided_at IS NULL) = (status = 'pending')),
    begun_at           INTEGER,
    UNIQUE (turn_num, step_seq, call_seq),
    FOREIGN KEY (turn_num, step_seq) REFERENCES steps (turn_num, seq) ON DELETE RESTRICT
) STRICT;

INSERT INTO approvals_3 (
    num, id, kind, organization_id, task_num, turn_num, step_seq, call_seq, status, reason, decision, decided_by_user_id,
    created_at, decided_at, begun_at
)
SELECT
    num, id, 'approval', organization_id, task_num, turn_num, step_seq, call_seq, status, reason, decision, decided_by_user_id,
    created_at, decided_at, begun_at
FROM approvals;

DROP TABLE approvals;
ALTER TABLE approvals_3 RENAME TO approvals;

CREATE INDEX approvals_by_task ON approvals (task_num, num);
CREATE INDEX approvals_pending ON approvals (organization_id, num) WHERE status = 'pending';

-- Mails that ask people, beside replies.
CREATE TABLE outbound_emails_3 (
    num             INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,
    kind            TEXT NOT NULL CHECK (kind IN ('reply', 'question', 'approval', 'alert')),
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    worker_id       TEXT REFERENCES workers (id) ON DELETE RESTRICT
                    CHECK ((worker_id IS NULL) = (kind = 'alert')),
    turn_num        INTEGER REFERENCES turns (num) ON DELETE RESTRICT
                    CHECK ((turn_num IS NULL) = (kind = 'alert')),
    inbound_num     INTEGER REFERENCES inbound_emails (num) ON DELETE RESTRICT
                    CHECK (inbound_num IS NOT NULL OR kind <> 'reply'),
    approval_num    INTEGER REFERENCES approvals (num) ON DELETE RESTRICT
                    CHECK ((approval_num IS NULL) = (kind IN ('reply', 'alert'))),
    alert_num       INTEGER REFERENCES alert_messages (num) ON DELETE RESTRICT
                    CHECK ((alert_num IS NULL) = (kind <> 'alert')),
    user_id         TEXT REFERENCES users (id) ON DELETE RESTRICT
                    CHECK (user_id IS NOT NULL OR kind <> 'approval'),
    recipient       TEXT NOT NULL,
    subject         TEXT NOT NULL,
    status          TEXT NOT NULL CHECK (status IN ('queued', 'kept', 'sent', 'failed', 'bounced')),
    attempts        INTEGER NOT NULL,
    next_attempt_at INTEGER CHECK ((next_attempt_at IS NOT NULL) = (status = 'queued')),
    claimed         INTEGER NOT NULL DEFAULT 0
                    CHECK (claimed IN (0, 1) AND (claimed = 0 OR status = 'queued')),
    error_message   TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    sent_at         INTEGER,
    size            INTEGER NOT NULL,
    source_sha256   TEXT,
    source          BLOB
) STRICT;

INSERT INTO outbound_emails_3 (
    num, id, kind, organization_id, worker_id, turn_num, inbound_num, recipient, subject, status, attempts, next_attempt_at,
    error_message, created_at, sent_at, size, source_sha256, source
)
SELECT
    num, id, 'reply', organization_id, worker_id, turn_num, inbound_num, recipient, subject, status, attempts, next_attempt_at,
    error_message, created_at, sent_at, size, source_sha256, source
FROM outbound_emails;

DROP TABLE outbound_emails;
ALTER TABLE outbound_emails_3 RENAME TO outbound_emails;

CREATE INDEX outbound_emails_due             ON outbound_emails (next_attempt_at, num) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX outbound_emails_by_organization ON outbound_emails (organization_id, id);
CREATE INDEX outbound_emails_by_age          ON outbound_emails (created_at) WHERE status <> 'queued' AND (source IS NOT NULL OR source_sha256 IS NOT NULL);
CREATE INDEX outbound_emails_by_source       ON outbound_emails (source_sha256) WHERE source_sha256 IS NOT NULL;
CREATE INDEX outbound_emails_by_inbound      ON outbound_emails (inbound_num) WHERE inbound_num IS NOT NULL;
CREATE INDEX outbound_emails_by_approval     ON outbound_emails (approval_num) WHERE approval_num IS NOT NULL;
CREATE INDEX outbound_emails_by_turn         ON outbound_emails (turn_num) WHERE turn_num IS NOT NULL;
CREATE INDEX outbound_emails_by_alert        ON outbound_emails (alert_num) WHERE alert_num IS NOT NULL;

-- Alerts of organizations.
CREATE TABLE alert_channels (
    id              TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    user_id         TEXT REFERENCES users (id) ON DELETE RESTRICT,
    host            TEXT NOT NULL
                    CHECK ((host = '') = (user_id IS NOT NULL)),
    sealed          BLOB
                    CHECK ((sealed IS NULL) = (user_id IS NOT NULL)),
    topics          TEXT NOT NULL CHECK (json_valid(topics)),
    rhythm          TEXT NOT NULL CHECK (rhythm IN ('now', 'hour', 'day')),
    paused          INTEGER NOT NULL CHECK (paused IN (0, 1)),
    created_at      INTEGER NOT NULL,
    told_at         INTEGER
) STRICT;

CREATE INDEX alert_channels_by_organization ON alert_channels (organization_id, id);

CREATE TABLE alerts (
    channel_id TEXT NOT NULL REFERENCES alert_channels (id) ON DELETE CASCADE,
    event      TEXT NOT NULL,
    worker_id  TEXT NOT NULL,
    count      INTEGER NOT NULL,
    task_num   INTEGER REFERENCES tasks (num) ON DELETE RESTRICT,
    first_at   INTEGER NOT NULL,
    last_at    INTEGER NOT NULL,
    due_at     INTEGER CHECK ((due_at IS NULL) = (count = 0)),
    told_at    INTEGER,
    PRIMARY KEY (channel_id, event, worker_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX alerts_due  ON alerts (due_at)  WHERE due_at IS NOT NULL;
CREATE INDEX alerts_told ON alerts (told_at) WHERE due_at IS NULL;
CREATE INDEX alerts_by_task ON alerts (task_num) WHERE task_num IS NOT NULL;

CREATE TABLE alert_messages (
    num             INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,
    channel_id      TEXT REFERENCES alert_channels (id) ON DELETE SET NULL,
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    test            INTEGER NOT NULL CHECK (test IN (0, 1)),
    items           TEXT NOT NULL CHECK (json_valid(items)),
    status          TEXT NOT NULL CHECK (status IN ('queued', 'sent', 'failed', 'mailed')),
    attempts        INTEGER NOT NULL,
    next_attempt_at INTEGER CHECK ((next_attempt_at IS NOT NULL) = (status = 'queued')),
    answer          TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    tried_at        INTEGER
) STRICT;

CREATE INDEX alert_messages_due        ON alert_messages (next_attempt_at, num) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX alert_messages_by_channel ON alert_messages (channel_id, num);

-- Tools whose calls need no more decisions in a task.
CREATE TABLE task_allowances (
    task_num   INTEGER NOT NULL REFERENCES tasks (num) ON DELETE RESTRICT,
    tool       TEXT NOT NULL CHECK (tool <> ''),
    user_id    TEXT NOT NULL REFERENCES users (id) ON DELETE RESTRICT,
    worker_version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (task_num, tool)
) STRICT, WITHOUT ROWID;

-- Providers of models.
CREATE TABLE model_providers (
    id                 TEXT PRIMARY KEY,
    organization_id    TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    name               TEXT NOT NULL CHECK (name <> ''),
    kind               TEXT NOT NULL CHECK (kind IN ('anthropic', 'openai', 'openrouter', 'ollama', 'openai-compatible')),
    base_url           TEXT NOT NULL,
    sealed             BLOB,
    key_end            TEXT NOT NULL,
    context_window     INTEGER NOT NULL CHECK (context_window >= 0),
    models             TEXT NOT NULL CHECK (json_valid(models)),
    test               TEXT CHECK (json_valid(test)),
    created_by_user_id TEXT REFERENCES users (id) ON DELETE RESTRICT,
    created_at         INTEGER NOT NULL,
    updated_at         INTEGER NOT NULL,
    revision           INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX model_providers_by_name ON model_providers (organization_id, name);

-- Who made each version of a worker.
ALTER TABLE worker_versions ADD COLUMN user_id TEXT REFERENCES users (id) ON DELETE RESTRICT;
ALTER TABLE worker_versions ADD COLUMN restored_from INTEGER CHECK (restored_from < version);

-- What a user has chosen for the pages.
CREATE TABLE worker_pins (
    organization_id TEXT NOT NULL,
    user_id         TEXT NOT NULL REFERENCES users (id) ON DELETE RESTRICT,
    worker_id       TEXT NOT NULL REFERENCES workers (id) ON DELETE RESTRICT,
    created_at      INTEGER NOT NULL,
    PRIMARY KEY (organization_id, user_id, worker_id)
) STRICT, WITHOUT ROWID;

ALTER TABLE memberships ADD COLUMN steps_hidden INTEGER NOT NULL DEFAULT 0 CHECK (steps_hidden IN (0, 1));

-- Pruning of tasks, and fewer bytes a task.
ALTER TABLE workers ADD COLUMN keep_task_days INTEGER CHECK (keep_task_days BETWEEN 0 AND 36500);
ALTER TABLE steps ADD COLUMN answers INTEGER NOT NULL DEFAULT 0 CHECK (answers IN (0, 1));

CREATE INDEX compactions_by_turn ON compactions (turn_num);

CREATE TABLE deliveries_3 (
    num             INTEGER PRIMARY KEY,
    id              TEXT
                    CHECK (id IS NOT NULL OR turn_num IS NOT NULL AND type <> 'task.waiting'),
    worker_num      INTEGER NOT NULL REFERENCES workers (num) ON DELETE RESTRICT,
    turn_num        INTEGER REFERENCES turns (num) ON DELETE RESTRICT,
    type            TEXT NOT NULL,
    attempts        INTEGER NOT NULL,
    next_attempt_at INTEGER,
    created_at      INTEGER NOT NULL,
    task_status     TEXT,
    task_turns      INTEGER,
    task_cost       INTEGER,
    task_duration   INTEGER
) STRICT;

INSERT INTO deliveries_3 (
    num, id, worker_num, turn_num, type, attempts, next_attempt_at, created_at, task_status, task_turns, task_cost,
    task_duration
)
SELECT
    num, id, (SELECT w.num FROM workers w WHERE w.id = worker_id), turn_num, type, attempts, next_attempt_at,
    created_at, task_status, task_turns, task_cost, task_duration
FROM deliveries ORDER BY num;

DROP TABLE deliveries;
ALTER TABLE deliveries_3 RENAME TO deliveries;

CREATE INDEX deliveries_due ON deliveries (worker_num, next_attempt_at, num) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX deliveries_by_turn ON deliveries (turn_num) WHERE turn_num IS NOT NULL;

CREATE TABLE webhook_executions_3 (
    num             INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,
    worker_num      INTEGER NOT NULL REFERENCES workers (num) ON DELETE RESTRICT,
    seq             INTEGER NOT NULL,
    delivery_num    INTEGER NOT NULL REFERENCES deliveries (num) ON DELETE RESTRICT,
    url             TEXT NOT NULL,
    request_status  TEXT NOT NULL CHECK (request_status IN ('success', 'error')),
    response_status INTEGER,
    error_message   TEXT,
    duration_ms     INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    UNIQUE (worker_num, seq)
) STRICT;

INSERT INTO webhook_executions_3 (
    num, id, worker_num, seq, delivery_num, url, request_status, response_status, error_message, duration_ms,
    created_at
)
SELECT
    num, id, (SELECT w.num FROM workers w WHERE w.id = worker_id), seq, delivery_num, url, request_status,
    response_status, error_message, duration_ms, created_at
FROM webhook_executions ORDER BY num;

-- Of attempts that succeeded, only the newest ones keep what was sent.
CREATE TABLE webhook_exchanges (
    execution_num INTEGER PRIMARY KEY REFERENCES webhook_executions (num) ON DELETE CASCADE,
    request       TEXT NOT NULL,
    response      TEXT NOT NULL
) STRICT;

INSERT INTO webhook_exchanges (execution_num, request, response)
SELECT num, request, response FROM webhook_executions e
WHERE request_status = 'error'
    OR seq > (SELECT max(seq) FROM webhook_executions newest WHERE newest.worker_id = e.worker_id) - 100;

DROP TABLE webhook_executions;
ALTER TABLE webhook_executions_3 RENAME TO webhook_executions;

CREATE INDEX webhook_executions_by_delivery ON webhook_executions (delivery_num);

-- A request that is known by its hash needs the hash once, and 128 bits of it.
CREATE TABLE idempotency_3 (
    api_key_num  INTEGER NOT NULL,
    user_num     INTEGER NOT NULL
                 CHECK ((user_num = 0) = (api_key_num <> 0)),
    key          ANY NOT NULL,
    request_hash BLOB
                 CHECK ((request_hash IS NULL) = (typeof(key) = 'blob')),
    result_id    TEXT NOT NULL,
    expires_at   INTEGER NOT NULL,
    PRIMARY KEY (api_key_num, user_num, key)
) STRICT, WITHOUT ROWID;

INSERT INTO idempotency_3 (
    api_key_num, user_num, key, request_hash, result_id, expires_at
)
SELECT
    coalesce((SELECT k.num FROM api_keys k WHERE k.id = api_key_id), 0),
    coalesce((SELECT u.num FROM users u WHERE u.id = api_key_id), 0), iif(key GLOB '#*', substr(request_hash, 1, 16), substr(key, 2)),
    iif(key GLOB '#*', NULL, request_hash), result_id, expires_at
FROM idempotency
WHERE api_key_id IN (SELECT id FROM api_keys UNION ALL SELECT id FROM users); -- others ask no more

DROP TABLE idempotency;
ALTER TABLE idempotency_3 RENAME TO idempotency;

CREATE INDEX idempotency_by_expiry ON idempotency (expires_at);
