-- Journeyman's whole database, in the order a newcomer should meet it.
--
-- Times are Unix milliseconds. Money is nano-dollars (1e-9 US$), so that sums are
-- exact; 10,000,000 of them are one credit. Ids that leave the program are a
-- prefix, "_" and a lower-case ULID; num columns are internal, count up in the
-- order of creation, and are what other tables refer to where rows are many.
-- This file is version 2; PRAGMA user_version of a database says which it has.

-- People and access ----------------------------------------------------------

-- An organization owns workers and everything they do. Nothing is shared between
-- two of them.
CREATE TABLE organizations (
    id                 TEXT PRIMARY KEY,                 -- org_
    name               TEXT NOT NULL UNIQUE CHECK (name <> ''),
    monthly_credit_cap REAL CHECK (monthly_credit_cap >= 0), -- credits a calendar month (UTC); NULL: no cap
    created_at         INTEGER NOT NULL
) STRICT;

-- A user is a person, known by email address. What they may do depends on the
-- organization: see memberships.
CREATE TABLE users (
    id            TEXT PRIMARY KEY,                      -- usr_
    email         TEXT NOT NULL UNIQUE COLLATE NOCASE CHECK (email <> ''),
    name          TEXT NOT NULL,
    password_hash TEXT,                                  -- argon2id in PHC form; NULL: cannot sign in
    created_at    INTEGER NOT NULL
) STRICT;

CREATE TABLE memberships (
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    user_id         TEXT NOT NULL REFERENCES users (id) ON DELETE RESTRICT,
    role            TEXT NOT NULL CHECK (role IN ('owner', 'admin', 'member')),
    created_at      INTEGER NOT NULL,
    PRIMARY KEY (organization_id, user_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX memberships_by_user ON memberships (user_id, created_at, organization_id); -- a user's organizations, oldest first

-- An API key acts for the user who made it, in one organization. Only its hash is
-- kept: who reads this table cannot call the API. A key is good for nothing without
-- its user's membership, and is revoked when that ends.
CREATE TABLE api_keys (
    id              TEXT PRIMARY KEY,                    -- key_
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    user_id         TEXT NOT NULL REFERENCES users (id) ON DELETE RESTRICT,
    name            TEXT NOT NULL CHECK (name <> ''),
    hash            BLOB NOT NULL UNIQUE CHECK (length(hash) = 32), -- SHA-256 of the key
    prefix          TEXT NOT NULL,                       -- first 12 characters, for display
    created_at      INTEGER NOT NULL,
    last_used_at    INTEGER,                             -- to the minute
    expires_at      INTEGER,                             -- set when rolled: 24 h of grace
    revoked_at      INTEGER
) STRICT;

CREATE INDEX api_keys_by_organization ON api_keys (organization_id, id); -- the key list

-- A link lets whoever holds it in, once: to join an organization, or to choose a
-- password. Only the hash of its token is kept. A row is a link that still works,
-- until it expires: the use of one, and its withdrawal, delete it.
CREATE TABLE links (
    id                 TEXT PRIMARY KEY,                 -- lnk_
    hash               BLOB NOT NULL UNIQUE CHECK (length(hash) = 32), -- SHA-256 of the token
    kind               TEXT NOT NULL CHECK (kind IN ('invitation', 'reset', 'welcome')),
    organization_id    TEXT REFERENCES organizations (id) ON DELETE RESTRICT -- joined, or in which it was made; NULL: the command line
                       CHECK (organization_id IS NOT NULL OR kind <> 'invitation'),
    email              TEXT COLLATE NOCASE CHECK ((email IS NOT NULL) = (kind = 'invitation')), -- who is invited
    role               TEXT CHECK (role IN ('owner', 'admin', 'member'))
                       CHECK ((role IS NOT NULL) = (kind = 'invitation')),
    user_id            TEXT REFERENCES users (id) ON DELETE RESTRICT -- who is to choose a password
                       CHECK ((user_id IS NOT NULL) = (kind <> 'invitation')),
    created_by_user_id TEXT REFERENCES users (id) ON DELETE RESTRICT, -- NULL: the command line
    created_at         INTEGER NOT NULL,
    expires_at         INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX links_by_invited ON links (organization_id, email) WHERE kind = 'invitation'; -- one invitation at a time
CREATE INDEX links_by_organization   ON links (organization_id, id)    WHERE kind = 'invitation'; -- the list of open ones
CREATE INDEX links_by_user           ON links (user_id)                WHERE user_id IS NOT NULL; -- ended by a change of password
CREATE INDEX links_by_creator        ON links (created_by_user_id)     WHERE created_by_user_id IS NOT NULL; -- ended with their maker's role
CREATE INDEX links_by_expiry         ON links (expires_at); -- pruning

-- A session is a browser signed in. Only the hash of its token is kept.
CREATE TABLE sessions (
    id              TEXT PRIMARY KEY,                    -- ses_
    hash            BLOB NOT NULL UNIQUE CHECK (length(hash) = 32), -- SHA-256 of the token
    user_id         TEXT NOT NULL REFERENCES users (id) ON DELETE RESTRICT,
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT, -- the one being looked at
    user_agent      TEXT NOT NULL,
    remote_addr     TEXT NOT NULL,                       -- at sign-in
    created_at      INTEGER NOT NULL,
    last_used_at    INTEGER NOT NULL,                    -- to the minute
    expires_at      INTEGER NOT NULL                     -- moves on with use
) STRICT;

CREATE INDEX sessions_by_user   ON sessions (user_id, id);    -- a user's list
CREATE INDEX sessions_by_expiry ON sessions (expires_at);     -- pruning

-- Who changed what about access, and from where. Only ever appended to.
CREATE TABLE audit_log (
    num             INTEGER PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    user_id         TEXT,                                -- NULL: the command line
    api_key_id      TEXT,                                -- the key used, if any
    action          TEXT NOT NULL,                       -- such as 'key.create'
    subject         TEXT NOT NULL,                       -- id of what was changed
    detail          TEXT NOT NULL,                       -- JSON object, for people
    remote_addr     TEXT NOT NULL,
    created_at      INTEGER NOT NULL
) STRICT;

-- One index for each way to filter the list, newest first.
CREATE INDEX audit_log_listed         ON audit_log (organization_id, created_at);
CREATE INDEX audit_log_by_action      ON audit_log (organization_id, action, created_at);
CREATE INDEX audit_log_by_user        ON audit_log (organization_id, user_id, created_at);
CREATE INDEX audit_log_by_user_action ON audit_log (organization_id, user_id, action, created_at);

-- Workers ----------------------------------------------------------------------

-- A worker is an agent definition. Deleting one only hides it: its tasks and
-- files stay.
CREATE TABLE workers (
    num             INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,                -- wrk_
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    user_id         TEXT NOT NULL REFERENCES users (id) ON DELETE RESTRICT, -- the creator
    title           TEXT NOT NULL CHECK (title <> ''),
    summary         TEXT NOT NULL,
    visibility      TEXT NOT NULL CHECK (visibility IN ('public', 'private')),
    version         INTEGER NOT NULL,                    -- of worker_versions: the one new turns get
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    deleted_at      INTEGER,
    workspace       TEXT NOT NULL DEFAULT 'shared'       -- of new tasks: one folder for all of them, or one for each
                    CHECK (workspace IN ('shared', 'task'))
) STRICT;

CREATE INDEX workers_by_organization ON workers (organization_id, num) WHERE deleted_at IS NULL; -- the worker list, newest first

-- What a worker is told and how it works. A turn keeps the version it was accepted
-- with, so that a change reaches later turns only.
CREATE TABLE worker_versions (
    worker_id      TEXT NOT NULL REFERENCES workers (id) ON DELETE RESTRICT,
    version        INTEGER NOT NULL,                     -- 1, 2, ...
    instructions   TEXT NOT NULL,
    output_schema  TEXT,                                 -- JSON Schema, Draft-07; NULL: free text
    model          TEXT CHECK (model <> ''),             -- such as openai:gpt-5-mini; NULL: the server's
    approval_tools TEXT NOT NULL DEFAULT '[]',           -- JSON array: tools whose calls wait for an approval
    mcp_tools      TEXT NOT NULL DEFAULT '[]',           -- JSON array: servers, or their tools, that are offered
    created_at     INTEGER NOT NULL,
    tools          TEXT CHECK (json_valid(tools)),       -- JSON array: rules for what turns may call; NULL: every tool
    stranger_tools TEXT CHECK (json_valid(stranger_tools)), -- likewise, for turns of people who are no members; NULL: the default
    PRIMARY KEY (worker_id, version)
) STRICT;

-- Who may see a private worker besides its creator.
CREATE TABLE worker_members (
    worker_id  TEXT NOT NULL REFERENCES workers (id) ON DELETE RESTRICT,
    user_id    TEXT NOT NULL REFERENCES users (id) ON DELETE RESTRICT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (worker_id, user_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX worker_members_by_user ON worker_members (user_id); -- ended with their membership

-- Work -------------------------------------------------------------------------

-- A task is a conversation with a worker: one turn or more. Its figures are the
-- sums of its turns', kept here so that a list need not add them up.
CREATE TABLE tasks (
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
    archived_at        INTEGER,
    own_folder         INTEGER NOT NULL DEFAULT 0 CHECK (own_folder IN (0, 1)) -- 1: its turns work in a folder that no other task sees
) STRICT;

CREATE UNIQUE INDEX tasks_by_id ON tasks (id, organization_id); -- a client's id is its organization's own
-- One index for each filter a task list can begin with, newest first.
CREATE INDEX tasks_listed     ON tasks (organization_id, created_at)               WHERE archived_at IS NULL;
CREATE INDEX tasks_by_worker  ON tasks (worker_id, created_at)                     WHERE archived_at IS NULL;
CREATE INDEX tasks_by_status  ON tasks (organization_id, status, created_at)       WHERE archived_at IS NULL;
CREATE INDEX tasks_by_trigger ON tasks (organization_id, triggered_by, created_at) WHERE archived_at IS NULL;
CREATE INDEX tasks_archived   ON tasks (organization_id, created_at)               WHERE archived_at IS NOT NULL;
CREATE INDEX tasks_by_caller  ON tasks (worker_id, created_by_user_id)             WHERE archived_at IS NULL; -- "continue"

-- A runner is a process that carries out turns. A turn it has claimed is its own
-- until the lease ends; a process that died leaves its row behind, and whoever
-- finds the lease over takes the turns back.
CREATE TABLE runners (
    id         TEXT PRIMARY KEY,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A turn is one instruction to a worker and what became of it. Its row is
-- committed before anyone is told "accepted", whoever asked: API, mail, schedule
-- or page. It is never deleted. It is also the queue: see turns_queued.
CREATE TABLE turns (
    num                INTEGER PRIMARY KEY,
    id                 TEXT NOT NULL UNIQUE,             -- trn_
    task_num           INTEGER NOT NULL REFERENCES tasks (num) ON DELETE RESTRICT,
    seq                INTEGER NOT NULL,                 -- 0, 1, ... in its task
    organization_id    TEXT NOT NULL,
    worker_id          TEXT NOT NULL,
    worker_version     INTEGER NOT NULL,
    created_by_user_id TEXT,                             -- the author; NULL: somebody who was no member then
    api_key_id         TEXT,
    own_folder         INTEGER NOT NULL                  -- 1: it works in its task's own folder, as strangers' turns always do
                       CHECK (own_folder IN (0, 1) AND (own_folder = 1 OR created_by_user_id IS NOT NULL)),
    triggered_by       TEXT NOT NULL CHECK (triggered_by IN ('api', 'email', 'schedule', 'ui')),
    input              TEXT NOT NULL CHECK (input <> ''),
    budget             TEXT NOT NULL CHECK (budget IN ('low', 'standard', 'high', 'unlimited')),

    status             TEXT NOT NULL                     -- pending -> running -> completed | error | aborted
                       CHECK (status IN ('pending', 'running', 'completed', 'error', 'aborted')),
    ready              INTEGER NOT NULL CHECK (ready IN (0, 1)), -- 0 until all earlier turns of the task have ended
    runner_id          TEXT                              -- who has claimed it
                       CHECK ((runner_id IS NOT NULL) = (status = 'running' AND rests_until IS NULL)),
    rests_until        INTEGER                           -- set while it waits for approvals: when it is given up
                       CHECK (rests_until IS NULL OR status = 'running'),
    claims             INTEGER NOT NULL,                 -- how often it was claimed
    interruptions      INTEGER NOT NULL,                 -- claims that died since the last finished call
    abort_requested    INTEGER NOT NULL CHECK (abort_requested IN (0, 1)),

    output_text        TEXT NOT NULL,
    structured_output  TEXT,                             -- JSON
    error_code         TEXT,                             -- NULL: no error
    error_message      TEXT,
    error_retryable    INTEGER,
    incomplete_reason  TEXT CHECK (incomplete_reason IN ('budget_exhausted', 'max_output_tokens', 'content_filter', 'aborted')),
    incomplete_limit   TEXT CHECK (incomplete_limit IN ('credits', 'steps', 'time')),

    model              TEXT NOT NULL,                    -- that answered last; '' before
    steps              INTEGER NOT NULL,
    input_tokens       INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    cache_read_tokens  INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    reasoning_tokens   INTEGER NOT NULL,
    model_cost         INTEGER NOT NULL,                 -- nano-dollars
    tool_cost          INTEGER NOT NULL,                 -- nano-dollars
    duration_ms        INTEGER NOT NULL,                 -- from start to end

    -- Set while a provider is asked, and charged if the process dies before the answer.
    call_tokens        INTEGER,                          -- of the call's input, estimated
    call_cost          INTEGER CHECK ((call_cost IS NULL) = (call_tokens IS NULL)), -- nano-dollars

    created_at         INTEGER NOT NULL,
    started_at         INTEGER,                          -- of the first claim
    completed_at       INTEGER CHECK ((completed_at IS NULL) = (status IN ('pending', 'running'))),
    task_status        TEXT                              -- the task's when this turn had ended: what streams tell
                       CHECK ((task_status IS NULL) = (completed_at IS NULL)),
    UNIQUE (task_num, seq)
) STRICT;

-- The queue. Claiming walks from organization to organization and inside one from
-- worker to worker, so that none waits behind another's thousands.
CREATE INDEX turns_queued    ON turns (ready, organization_id, worker_id, num) WHERE status = 'pending';
CREATE INDEX turns_running   ON turns (runner_id) WHERE runner_id IS NOT NULL; -- what a dead runner left
CREATE INDEX turns_resting   ON turns (rests_until) WHERE rests_until IS NOT NULL; -- what has waited too long
CREATE INDEX turns_by_worker ON turns (worker_id, num);                     -- what a worker-wide stream has missed

-- What turns were offered of the tools of other people's servers, as those described
-- them then. Equal offers are kept once.
CREATE TABLE tool_offers (
    hash  TEXT PRIMARY KEY,                              -- SHA-256 of offer, in hexadecimal
    offer TEXT NOT NULL CHECK (json_valid(offer))
) STRICT;

-- Which offer a turn has. It is written before the turn's first model call, so that
-- a turn that resumes has the tools it began with; turns without such tools have none.
CREATE TABLE turn_offers (
    turn_num INTEGER PRIMARY KEY REFERENCES turns (num) ON DELETE RESTRICT,
    hash     TEXT NOT NULL REFERENCES tool_offers (hash) ON DELETE RESTRICT
) STRICT;

-- The journal: a step is one model call that has finished. It is written before
-- anything follows from it, and never changed.
CREATE TABLE steps (
    turn_num           INTEGER NOT NULL REFERENCES turns (num) ON DELETE RESTRICT,
    seq                INTEGER NOT NULL,                 -- 0, 1, ... in its turn
    attempt            INTEGER NOT NULL,                 -- which try this is: streams tell a try cut off from the one that counts
    parts              TEXT NOT NULL,                    -- JSON array: reasoning, text and tool calls, in order
    finish             TEXT NOT NULL,                    -- stop, tool-calls, length, continued, content-filter, refused, other or aborted;
                                                         -- continued: cut at the output limit, and the turn goes on
    feedback           TEXT NOT NULL,                    -- what the runner said to the model afterwards; '' mostly
    model              TEXT NOT NULL,
    estimated_tokens   INTEGER NOT NULL,                 -- of the input, counted from its text before the call
    input_tokens       INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    cache_read_tokens  INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    reasoning_tokens   INTEGER NOT NULL,
    cost               INTEGER NOT NULL,                 -- nano-dollars
    started_at         INTEGER NOT NULL,
    completed_at       INTEGER NOT NULL,
    PRIMARY KEY (turn_num, seq)
) STRICT; -- not WITHOUT ROWID: rows of a kilobyte or more would each take a page of their own

-- A tool call that has ended: its row and its effects (files, sources) are one
-- transaction. A call in a step's parts without a row here has not ended.
CREATE TABLE tool_calls (
    turn_num     INTEGER NOT NULL,
    step_seq     INTEGER NOT NULL,
    seq          INTEGER NOT NULL,                       -- 0, 1, ... in its step
    state        TEXT NOT NULL CHECK (state IN ('completed', 'error', 'interrupted')),
    output       TEXT NOT NULL,                          -- JSON; an error: its message, as a JSON string
    cost         INTEGER NOT NULL,                       -- nano-dollars
    started_at   INTEGER NOT NULL,
    completed_at INTEGER NOT NULL,
    PRIMARY KEY (turn_num, step_seq, seq),
    FOREIGN KEY (turn_num, step_seq) REFERENCES steps (turn_num, seq) ON DELETE RESTRICT
) STRICT;

-- A tool call that may run only once a person has approved it. The row is written
-- with the call's step. While one of a step is pending and no other call is left to
-- run, the turn rests: it is nobody's claim, and is queued again by the last decision.
CREATE TABLE approvals (
    num                INTEGER PRIMARY KEY,
    id                 TEXT NOT NULL UNIQUE,             -- apr_
    organization_id    TEXT NOT NULL,
    task_num           INTEGER NOT NULL REFERENCES tasks (num) ON DELETE RESTRICT,
    turn_num           INTEGER NOT NULL,
    step_seq           INTEGER NOT NULL,
    call_seq           INTEGER NOT NULL,                 -- of the call, as in tool_calls
    status             TEXT NOT NULL                     -- the last two: the turn ended without a decision
                       CHECK (status IN ('pending', 'approved', 'denied', 'expired', 'cancelled')),
    reason             TEXT NOT NULL,                    -- of the decision; '' without one
    decision           INTEGER                           -- 0, 1, ... among its step's decisions, in their order
                       CHECK ((decision IS NOT NULL) = (status IN ('approved', 'denied'))),
    decided_by_user_id TEXT,
    created_at         INTEGER NOT NULL,
    decided_at         INTEGER CHECK ((decided_at IS NULL) = (status = 'pending')),
    begun_at           INTEGER,                          -- set before the call runs: from here on it may have acted
    UNIQUE (turn_num, step_seq, call_seq),
    FOREIGN KEY (turn_num, step_seq) REFERENCES steps (turn_num, seq) ON DELETE RESTRICT
) STRICT;

CREATE INDEX approvals_by_task ON approvals (task_num, num);                                -- the list of a task
CREATE INDEX approvals_pending ON approvals (organization_id, num) WHERE status = 'pending'; -- what waits for a decision

-- What was left out of a conversation so that it fits its model: from then on, what
-- stands before a place in the task is told shorter. The steps themselves stay whole.
CREATE TABLE compactions (
    num           INTEGER PRIMARY KEY,
    task_num      INTEGER NOT NULL REFERENCES tasks (num) ON DELETE RESTRICT,
    turn_num      INTEGER NOT NULL REFERENCES turns (num) ON DELETE RESTRICT, -- that was to go on
    step_seq      INTEGER NOT NULL,                      -- with this step, which may not be there yet
    kind          TEXT NOT NULL                          -- cut: outputs and arguments of tools; files: attached ones are only named;
                  CHECK (kind IN ('cut', 'files', 'summary', 'omission')), -- summary and omission: all, for a summary or a note
    before_turn   INTEGER NOT NULL,                      -- the place: seq of a turn of the task,
    before_step   INTEGER NOT NULL,                      -- and of its first step that is told whole; 0: so is its instruction
    cut_to        INTEGER CHECK ((cut_to IS NOT NULL) = (kind = 'cut')), -- bytes that are left of each text
    items         INTEGER NOT NULL,                      -- texts, files or model calls that are told shorter
    summary       TEXT CHECK ((summary IS NOT NULL) = (kind IN ('summary', 'omission'))), -- told in place of them
    refused       INTEGER NOT NULL CHECK (refused IN (0, 1)), -- 1: the provider found the request too long; 0: we did
    model         TEXT NOT NULL,                         -- that the conversation has to fit, and that wrote the summary
    room          INTEGER NOT NULL,                      -- tokens of input that it is taken to have room for
    tokens_before INTEGER NOT NULL,                      -- of the request, estimated
    tokens_after  INTEGER NOT NULL,
    input_tokens  INTEGER NOT NULL,                      -- that the summary took; 0 unless there is one
    output_tokens INTEGER NOT NULL,
    cost          INTEGER NOT NULL,                      -- nano-dollars
    started_at    INTEGER NOT NULL,
    completed_at  INTEGER NOT NULL
) STRICT;

CREATE INDEX compactions_by_task ON compactions (task_num, num); -- what the next call and turn build on, and the task page

-- A file as it was when a client attached it or a worker published it. The bytes
-- lie in the data folder under their SHA-256, so a later version changes nothing
-- here: it is another row.
CREATE TABLE files (
    num        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,                     -- fil_
    worker_id  TEXT NOT NULL REFERENCES workers (id) ON DELETE RESTRICT,
    task_num   INTEGER NOT NULL REFERENCES tasks (num) ON DELETE RESTRICT,
    turn_num   INTEGER NOT NULL REFERENCES turns (num) ON DELETE RESTRICT,
    origin     TEXT NOT NULL CHECK (origin IN ('attached', 'published')),
    path       TEXT NOT NULL CHECK (path <> ''),         -- in the workspace; of a task's own folder: below tasks/{its id}/
    title      TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size       INTEGER NOT NULL CHECK (size >= 0),
    sha256     TEXT NOT NULL CHECK (length(sha256) = 64),
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX files_by_path ON files (worker_id, path, num); -- a file's address, newest version first
CREATE INDEX files_by_task ON files (task_num, num);        -- the run view
CREATE INDEX files_by_turn ON files (turn_num, num);        -- the turn list
CREATE INDEX files_by_sha256 ON files (sha256);             -- what nothing refers to any more
CREATE INDEX files_listed  ON files (worker_id, num) WHERE origin = 'published'; -- a worker's files, newest first

-- A web page that an answer rests on.
CREATE TABLE sources (
    num        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,                     -- src_
    task_num   INTEGER NOT NULL REFERENCES tasks (num) ON DELETE RESTRICT,
    turn_num   INTEGER NOT NULL REFERENCES turns (num) ON DELETE RESTRICT,
    url        TEXT NOT NULL,
    title      TEXT,
    created_at INTEGER NOT NULL,
    UNIQUE (task_num, url)
) STRICT;

CREATE INDEX sources_by_task ON sources (task_num, num); -- the run view
CREATE INDEX sources_by_turn ON sources (turn_num, num); -- streams

-- What was asked once is done once: the POST that made a thing, by API key and
-- Idempotency-Key, or by the hash of the request for clients that only count
-- their retries. Written in the transaction that makes the thing.
CREATE TABLE idempotency (
    api_key_id   TEXT NOT NULL,
    key          TEXT NOT NULL,                          -- '=' and the client's key, or '#' and the request's hash
    request_hash BLOB NOT NULL,                          -- of path and body
    result_id    TEXT NOT NULL,                          -- id of the turn, worker, schedule, ... that was made
    expires_at   INTEGER NOT NULL,
    PRIMARY KEY (api_key_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_by_expiry ON idempotency (expires_at); -- pruning

-- What was used, summed as it happens: plots and bills read this, never the turns.
CREATE TABLE usage (
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    day             INTEGER NOT NULL,                    -- days since 1970-01-01, UTC
    worker_id       TEXT NOT NULL,
    api_key_id      TEXT NOT NULL,                       -- '' without one
    triggered_by    TEXT NOT NULL,
    turns           INTEGER NOT NULL,                    -- that ended
    failures        INTEGER NOT NULL,                    -- of these, in error
    steps           INTEGER NOT NULL,
    input_tokens    INTEGER NOT NULL,
    output_tokens   INTEGER NOT NULL,
    cost            INTEGER NOT NULL,                    -- nano-dollars
    duration_ms     INTEGER NOT NULL,
    PRIMARY KEY (organization_id, day, worker_id, api_key_id, triggered_by)
) STRICT, WITHOUT ROWID;

-- The month's spending in one row, for the cap.
CREATE TABLE spending (
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    month           INTEGER NOT NULL,                    -- year * 12 + month - 1, UTC
    cost            INTEGER NOT NULL,                    -- nano-dollars
    PRIMARY KEY (organization_id, month)
) STRICT, WITHOUT ROWID;

-- Work without a request -------------------------------------------------------

-- A schedule makes a new task when next_run_at has come. Making the task and
-- moving next_run_at are one transaction, so a due time fires exactly once. While
-- that task has turns that wait or run, the schedule makes no other.
CREATE TABLE schedules (
    num                INTEGER PRIMARY KEY,
    id                 TEXT NOT NULL UNIQUE,             -- sch_
    organization_id    TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    worker_id          TEXT NOT NULL REFERENCES workers (id) ON DELETE RESTRICT,
    created_by_user_id TEXT NOT NULL REFERENCES users (id) ON DELETE RESTRICT, -- for whom it runs
    input              TEXT NOT NULL CHECK (input <> ''),
    budget             TEXT NOT NULL CHECK (budget IN ('low', 'standard', 'high', 'unlimited')),
    type               TEXT NOT NULL CHECK (type IN ('scheduled', 'delayed', 'cron', 'interval')),
    delay_seconds      REAL CHECK ((delay_seconds IS NOT NULL) = (type = 'delayed')),
    cron               TEXT CHECK ((cron IS NOT NULL) = (type = 'cron')),
    interval_seconds   REAL CHECK ((interval_seconds IS NOT NULL) = (type = 'interval')),
    timezone           TEXT CHECK (timezone IS NULL OR type = 'cron'), -- that next_run_at was computed in; NULL: cron names its own
    anchor_at          INTEGER NOT NULL,                 -- what a rhythm counts from, and the only time of a one-time schedule
    next_run_at        INTEGER,                          -- NULL: fired for the last time, or cancelled
    last_run_at        INTEGER,
    paused             INTEGER NOT NULL CHECK (paused IN (0, 1)),
    created_at         INTEGER NOT NULL,
    cancelled_at       INTEGER,
    running_task_num   INTEGER REFERENCES tasks (num) ON DELETE RESTRICT -- that its last run made; NULL once that has ended
) STRICT;

CREATE INDEX schedules_due             ON schedules (next_run_at)                  WHERE next_run_at IS NOT NULL AND paused = 0 AND running_task_num IS NULL;
CREATE INDEX schedules_by_organization ON schedules (organization_id, running_task_num, next_run_at) WHERE next_run_at IS NOT NULL AND paused = 0; -- due, one organization after the other
CREATE INDEX schedules_by_running_task ON schedules (running_task_num)             WHERE running_task_num IS NOT NULL; -- the end of a task
CREATE INDEX schedules_by_worker       ON schedules (worker_id, num)               WHERE next_run_at IS NOT NULL; -- the list
CREATE INDEX schedules_by_timezone     ON schedules (timezone)                     WHERE next_run_at IS NOT NULL AND timezone IS NOT NULL; -- another --timezone
CREATE INDEX schedules_by_last_run     ON schedules (last_run_at)                  WHERE next_run_at IS NOT NULL AND last_run_at IS NOT NULL; -- a clock set back

-- One webhook a worker. No row: none is configured.
CREATE TABLE webhooks (
    worker_id      TEXT PRIMARY KEY REFERENCES workers (id) ON DELETE RESTRICT,
    url            TEXT NOT NULL CHECK (url <> ''),
    token          TEXT NOT NULL,                        -- whk_, sent as X-Service-Token
    signing_secret TEXT NOT NULL,                        -- whsec_, never sent with a delivery
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A delivery is a promise to tell a webhook that a turn ended, written in the
-- transaction that ends it. Its body is made when it is sent, and shows the task as it
-- was at that end, whatever has happened to it since.
CREATE TABLE deliveries (
    num             INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,                -- evt_, the same on every attempt
    worker_id       TEXT NOT NULL REFERENCES workers (id) ON DELETE RESTRICT,
    turn_num        INTEGER REFERENCES turns (num) ON DELETE RESTRICT, -- NULL: a test
    type            TEXT NOT NULL,                       -- task.completed, turn.failed, ...
    attempts        INTEGER NOT NULL,
    next_attempt_at INTEGER,                             -- NULL: done with, delivered or given up
    created_at      INTEGER NOT NULL,
    task_status     TEXT,                                -- NULL, as the rest: a test
    task_turns      INTEGER,
    task_cost       INTEGER,                             -- nano-dollars
    task_duration   INTEGER                              -- milliseconds
) STRICT;

CREATE INDEX deliveries_due ON deliveries (worker_id, next_attempt_at, num) WHERE next_attempt_at IS NOT NULL; -- one endpoint after the other

-- One attempt at a delivery: the interface's webhook execution.
CREATE TABLE webhook_executions (
    num             INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,                -- whe_
    worker_id       TEXT NOT NULL REFERENCES workers (id) ON DELETE RESTRICT,
    seq             INTEGER NOT NULL,                    -- 1, 2, ... of the worker's, so that a page is a range
    delivery_num    INTEGER NOT NULL REFERENCES deliveries (num) ON DELETE RESTRICT,
    url             TEXT NOT NULL,
    request_status  TEXT NOT NULL CHECK (request_status IN ('success', 'error')),
    response_status INTEGER,                             -- NULL: not reached
    error_message   TEXT,
    duration_ms     INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    request         TEXT NOT NULL,                       -- what was sent, as HTTP writes it: its beginning, without secrets
    response        TEXT NOT NULL,                       -- what came back, likewise; '' where nothing did
    UNIQUE (worker_id, seq)
) STRICT;

CREATE INDEX webhook_executions_by_delivery ON webhook_executions (delivery_num); -- pruning

-- Mail -------------------------------------------------------------------------

-- A mail that was answered 250, whatever became of it.
CREATE TABLE inbound_emails (
    num             INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,                -- msg_
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    worker_id       TEXT REFERENCES workers (id) ON DELETE RESTRICT, -- NULL: it is for the postmaster
    message_id      TEXT NOT NULL,                       -- the Message-ID, or one made from the content
    status          TEXT NOT NULL CHECK (status IN ('accepted', 'ignored', 'held')),
    reason          TEXT NOT NULL,                       -- why ignored or held; '' if accepted
    turn_num        INTEGER REFERENCES turns (num) ON DELETE RESTRICT
                    CHECK ((turn_num IS NOT NULL) = (status = 'accepted')),
    mail_from       TEXT NOT NULL,                       -- envelope sender; '' for bounces
    from_address    TEXT NOT NULL,                       -- of the From header, in lower case
    recipient       TEXT NOT NULL,                       -- the worker's address, as it was used
    reply_to        TEXT NOT NULL,                       -- where the answer goes
    subject         TEXT NOT NULL,
    verdicts        TEXT NOT NULL,                       -- JSON: spf, dkim, dmarc
    remote_addr     TEXT NOT NULL,
    size            INTEGER NOT NULL,                    -- bytes
    created_at      INTEGER NOT NULL,
    source_sha256   TEXT,                                -- a large source lies in the data folder,
    source          BLOB,                                -- a small one here: no file to sync for each mail
    CHECK (source IS NULL OR source_sha256 IS NULL),     -- both NULL: forgotten after a time, and the row kept for its thread
    UNIQUE (worker_id, message_id)                       -- the same mail twice is one turn
) STRICT;

CREATE INDEX inbound_emails_by_organization ON inbound_emails (organization_id, id);                         -- the list, newest first
CREATE INDEX inbound_emails_held            ON inbound_emails (organization_id, id) WHERE status = 'held';   -- what waits for an Admin
CREATE INDEX inbound_emails_by_sender       ON inbound_emails (worker_id, from_address, created_at) WHERE status = 'accepted'; -- the guard against loops
CREATE INDEX inbound_emails_by_turn         ON inbound_emails (turn_num) WHERE turn_num IS NOT NULL;         -- the reply, and who is in a thread
CREATE INDEX inbound_emails_by_age          ON inbound_emails (created_at) WHERE source IS NOT NULL OR source_sha256 IS NOT NULL; -- pruning
CREATE INDEX inbound_emails_by_source       ON inbound_emails (source_sha256) WHERE source_sha256 IS NOT NULL; -- what nothing refers to any more
CREATE INDEX inbound_emails_of_postmaster   ON inbound_emails (num) WHERE worker_id IS NULL;                 -- the newest are kept

-- A reply, written in the transaction that ends its turn; the outbox until sent.
-- Its id is the local part of its Message-ID: who answers it has received it.
CREATE TABLE outbound_emails (
    num             INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,                -- msg_
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    worker_id       TEXT NOT NULL REFERENCES workers (id) ON DELETE RESTRICT,
    turn_num        INTEGER NOT NULL REFERENCES turns (num) ON DELETE RESTRICT,
    inbound_num     INTEGER NOT NULL REFERENCES inbound_emails (num) ON DELETE RESTRICT, -- what it answers
    recipient       TEXT NOT NULL,
    subject         TEXT NOT NULL,                       -- '' until composed
    status          TEXT NOT NULL CHECK (status IN ('queued', 'kept', 'sent', 'failed', 'bounced')), -- kept: there is no relay
    attempts        INTEGER NOT NULL,
    next_attempt_at INTEGER CHECK ((next_attempt_at IS NOT NULL) = (status = 'queued')),
    error_message   TEXT NOT NULL,                       -- of the last attempt, or what came back
    created_at      INTEGER NOT NULL,
    sent_at         INTEGER,
    size            INTEGER NOT NULL,                    -- bytes; 0 until composed
    source_sha256   TEXT,                                -- as above; both NULL until composed, too
    source          BLOB
) STRICT;

CREATE INDEX outbound_emails_due             ON outbound_emails (next_attempt_at, num) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX outbound_emails_by_organization ON outbound_emails (organization_id, id); -- the list, newest first
CREATE INDEX outbound_emails_by_age          ON outbound_emails (created_at) WHERE status <> 'queued' AND (source IS NOT NULL OR source_sha256 IS NOT NULL); -- pruning
CREATE INDEX outbound_emails_by_source       ON outbound_emails (source_sha256) WHERE source_sha256 IS NOT NULL; -- what nothing refers to any more
CREATE INDEX outbound_emails_by_inbound      ON outbound_emails (inbound_num); -- before a mail is pruned, whether it was answered
