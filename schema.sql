-- Journeyman's whole database, in the order a newcomer should meet it.
--
-- Times are Unix milliseconds. Money is nano-dollars (1e-9 US$), so that sums are exact; 10,000,000 of them are one
-- credit. Ids that leave the program are a prefix, "_" and a lower-case ULID; num columns are internal and count up
-- in the order of creation. A table that has both is referred to by num: an id takes 30 bytes. Only people,
-- organizations, keys and workers are referred to by id, except in tables that get a row with every task. A column is
-- named for what it refers to: worker_id or worker_num. This file is the newest version: see store.NewestVersion.
-- PRAGMA user_version of a database, or the table meta on PostgreSQL, holds its own version.
--
-- A column holds plain values: what a query shows is what it means. CHECKs hold in every SQLite that has STRICT
-- tables: before 3.45, json_valid(NULL) is 0.

-- People and access ----------------------------------------------------------

-- An organization owns workers and everything they do. Nothing is shared between two of them.
CREATE TABLE organizations (
    num                INTEGER PRIMARY KEY,
    id                 TEXT NOT NULL UNIQUE,      -- org_
    name               TEXT NOT NULL UNIQUE CHECK (name <> ''),
    monthly_credit_cap REAL CHECK (monthly_credit_cap >= 0), -- credits a calendar month (UTC); NULL: no cap
    created_at         INTEGER NOT NULL,
    models             TEXT CHECK (models <> '')  -- for workers without a model of their own: a chain such as
                                                  -- anthropic:claude-sonnet-5-5,ollama:qwen3; NULL: the server's
) STRICT;

-- A user is a person, known by email address. What they may do in an organization: see memberships.
CREATE TABLE users (
    num           INTEGER PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE,        -- usr_
    email         TEXT NOT NULL UNIQUE COLLATE NOCASE CHECK (email <> ''),
    name          TEXT NOT NULL,
    password_hash TEXT,                        -- argon2id in PHC form; NULL: cannot sign in
    created_at    INTEGER NOT NULL,
    theme         TEXT CHECK (theme IN ('light', 'dark')), -- of the pages; NULL: as the system
    language      TEXT CHECK (language <> ''), -- of the pages, such as de; NULL: as the browser asks
    shortcuts     INTEGER NOT NULL DEFAULT 1 CHECK (shortcuts IN (0, 1)), -- 0: the pages take no keyboard shortcuts
    unproven      INTEGER NOT NULL DEFAULT 0 CHECK (unproven IN (0, 1)) -- 1: a link of an organization set the
                                               -- password, so only that organization vouches for the address
) STRICT;

CREATE TABLE memberships (
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    user_id         TEXT NOT NULL REFERENCES users (id) ON DELETE RESTRICT,
    role            TEXT NOT NULL CHECK (role IN ('owner', 'admin', 'member')),
    created_at      INTEGER NOT NULL,
    steps_hidden    INTEGER NOT NULL DEFAULT 0 CHECK (steps_hidden IN (0, 1)), -- 1: first steps are hidden
    PRIMARY KEY (organization_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX memberships_by_user ON memberships (user_id, created_at, organization_id); -- of a user, oldest first

-- An API key acts for the user who made it, in one organization. Only its hash is stored, so a reader of this table
-- cannot call the API. A key works only while its user is a member, and is revoked when the membership ends.
CREATE TABLE api_keys (
    num             INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE, -- key_
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    user_id         TEXT NOT NULL REFERENCES users (id) ON DELETE RESTRICT,
    name            TEXT NOT NULL CHECK (name <> ''),
    hash            BLOB NOT NULL UNIQUE CHECK (length(hash) = 32), -- SHA-256 of the key
    prefix          TEXT NOT NULL,        -- first 12 characters, for display
    created_at      INTEGER NOT NULL,
    last_used_at    INTEGER,              -- to the minute
    expires_at      INTEGER,              -- set when rolled: 24 h of grace
    revoked_at      INTEGER,
    oauth_grant_id  TEXT REFERENCES oauth_grants (id) ON DELETE RESTRICT -- set if it is an access token
) STRICT;
CREATE INDEX api_keys_by_organization ON api_keys (organization_id, id); -- the key list
CREATE INDEX api_keys_by_grant ON api_keys (oauth_grant_id) WHERE oauth_grant_id IS NOT NULL; -- ended with their grant

-- A program that asks for access by OAuth 2.1, such as a hosted MCP client. A row means nothing until a person agrees.
CREATE TABLE oauth_clients (
    id            TEXT PRIMARY KEY, -- ocl_
    name          TEXT NOT NULL CHECK (name <> ''), -- as it calls itself
    redirect_uris TEXT NOT NULL CHECK (json_valid(redirect_uris)), -- JSON array: where a browser may be sent back to
    created_at    INTEGER NOT NULL,
    last_used_at  INTEGER NOT NULL  -- clients that nobody has agreed to are pruned
) STRICT;
CREATE INDEX oauth_clients_by_use ON oauth_clients (last_used_at); -- pruning

-- A grant is a person's consent that a client acts for them in one organization. Its access tokens are API keys; only
-- the hash of its refresh token is kept.
CREATE TABLE oauth_grants (
    id              TEXT PRIMARY KEY, -- ogr_
    client_id       TEXT NOT NULL REFERENCES oauth_clients (id) ON DELETE RESTRICT,
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    user_id         TEXT NOT NULL REFERENCES users (id) ON DELETE RESTRICT,
    code_hash       BLOB UNIQUE CHECK (length(code_hash) = 32), -- SHA-256 of the code; NULL once it was used
    code_challenge  TEXT NOT NULL,    -- of PKCE, S256
    redirect_uri    TEXT NOT NULL,    -- where the code was sent
    refresh_hash    BLOB UNIQUE CHECK (length(refresh_hash) = 32), -- SHA-256 of the newest refresh token; NULL before
    created_at      INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL, -- of the code, then of the refresh token
    revoked_at      INTEGER
) STRICT;
CREATE INDEX oauth_grants_by_client ON oauth_grants (client_id); -- pruning
CREATE INDEX oauth_grants_by_user ON oauth_grants (user_id, organization_id); -- a user's list
CREATE INDEX oauth_grants_by_expiry ON oauth_grants (expires_at); -- pruning

-- A link lets its holder join an organization or choose a password, once. Only the hash of its token is stored. A row
-- is a valid link until it expires. The row is deleted when the link is used or withdrawn.
CREATE TABLE links (
    id                 TEXT PRIMARY KEY, -- lnk_
    hash               BLOB NOT NULL UNIQUE CHECK (length(hash) = 32), -- SHA-256 of the token
    kind               TEXT NOT NULL CHECK (kind IN ('invitation', 'reset', 'welcome')),
    organization_id    TEXT REFERENCES organizations (id) ON DELETE RESTRICT -- joined, or in which it was made; NULL:
                                         -- the command line
                       CHECK (organization_id IS NOT NULL OR kind <> 'invitation'),
    email              TEXT COLLATE NOCASE CHECK ((email IS NOT NULL) = (kind = 'invitation')), -- the invited person
    role               TEXT
                       CHECK (role IN ('owner', 'admin', 'member')) CHECK ((role IS NOT NULL) = (kind = 'invitation')),
    user_id            TEXT REFERENCES users (id) ON DELETE RESTRICT -- the user who may choose a password
                       CHECK ((user_id IS NOT NULL) = (kind <> 'invitation')),
    created_by_user_id TEXT REFERENCES users (id) ON DELETE RESTRICT, -- NULL: the command line
    created_at         INTEGER NOT NULL,
    expires_at         INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX links_by_invited ON links (organization_id, email) WHERE kind = 'invitation'; -- only one
CREATE INDEX links_by_organization ON links (organization_id, id) WHERE kind = 'invitation'; -- the list of open ones
CREATE INDEX links_by_user ON links (user_id) WHERE user_id IS NOT NULL; -- ended by a change of password
CREATE INDEX links_by_creator ON links (created_by_user_id) WHERE created_by_user_id IS NOT NULL; -- end with its role
CREATE INDEX links_by_expiry ON links (expires_at); -- pruning

-- A session is a browser in which a user is signed in. Only the hash of its token is kept.
CREATE TABLE sessions (
    id              TEXT PRIMARY KEY, -- ses_
    hash            BLOB NOT NULL UNIQUE CHECK (length(hash) = 32), -- SHA-256 of the token
    user_id         TEXT NOT NULL REFERENCES users (id) ON DELETE RESTRICT,
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT, -- the one that the pages show
    user_agent      TEXT NOT NULL,
    remote_addr     TEXT NOT NULL,    -- at sign-in
    created_at      INTEGER NOT NULL,
    last_used_at    INTEGER NOT NULL, -- to the minute
    expires_at      INTEGER NOT NULL  -- moves on with use
) STRICT;
CREATE INDEX sessions_by_user ON sessions (user_id, id); -- a user's list
CREATE INDEX sessions_by_expiry ON sessions (expires_at); -- pruning

-- The log of changes that concern access, with their authors. Rows never change, until they are old: see --keep-audit.
CREATE TABLE audit_log (
    num             INTEGER PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    user_id         TEXT REFERENCES users (id) ON DELETE RESTRICT, -- NULL: the command line
    api_key_id      TEXT REFERENCES api_keys (id) ON DELETE RESTRICT, -- the key used, if any
    action          TEXT NOT NULL, -- such as 'key.create'
    subject         TEXT NOT NULL, -- id of what was changed
    detail          TEXT NOT NULL CHECK (json_valid(detail)), -- JSON object, for people
    remote_addr     TEXT NOT NULL,
    created_at      INTEGER NOT NULL
) STRICT;
-- One index for each way to filter the list, newest first.
CREATE INDEX audit_log_listed ON audit_log (organization_id, created_at);
CREATE INDEX audit_log_by_action ON audit_log (organization_id, action, created_at);
CREATE INDEX audit_log_by_user ON audit_log (organization_id, user_id, created_at);
CREATE INDEX audit_log_by_user_action ON audit_log (organization_id, user_id, action, created_at);

-- Workers ----------------------------------------------------------------------

-- A worker is an agent definition. Deleting one only hides it: its tasks and files stay.
CREATE TABLE workers (
    num             INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE, -- wrk_
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    user_id         TEXT NOT NULL REFERENCES users (id) ON DELETE RESTRICT, -- the creator
    title           TEXT NOT NULL CHECK (title <> ''),
    summary         TEXT NOT NULL,
    visibility      TEXT NOT NULL CHECK (visibility IN ('public', 'private')),
    version         INTEGER NOT NULL,     -- of new turns; without REFERENCES: that row comes second
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    deleted_at      INTEGER,
    workspace       TEXT NOT NULL DEFAULT 'shared' CHECK (workspace IN ('shared', 'task')), -- folder of its new tasks
    keep_task_days  INTEGER CHECK (keep_task_days BETWEEN 0 AND 36500), -- until deletion; 0: never; NULL: the server's
    origin          TEXT NOT NULL DEFAULT 'created' CHECK (origin IN ('created', 'task')) -- task: a task has made it
) STRICT;
CREATE INDEX workers_by_organization ON workers (organization_id, num) WHERE deleted_at IS NULL; -- the list
CREATE INDEX workers_by_origin ON workers (organization_id, origin) WHERE deleted_at IS NULL; -- its filter

-- The instructions and settings of a worker. A turn keeps the version with which it was accepted.
CREATE TABLE worker_versions (
    worker_id      TEXT NOT NULL REFERENCES workers (id) ON DELETE RESTRICT,
    version        INTEGER NOT NULL,         -- 1, 2, ...
    instructions   TEXT NOT NULL,
    output_schema  TEXT CHECK (output_schema IS NULL OR json_valid(output_schema)), -- JSON Schema; NULL: free text
    model          TEXT CHECK (model <> ''), -- such as openai:gpt-5-mini; NULL: the server's
    approval_tools TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(approval_tools)), -- JSON: their calls need approval
    mcp_tools      TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(mcp_tools)), -- JSON: servers, or their tools
    created_at     INTEGER NOT NULL,
    tools          TEXT CHECK (tools IS NULL OR json_valid(tools)), -- JSON: rules for calls; NULL: every tool
    stranger_tools TEXT CHECK (stranger_tools IS NULL OR json_valid(stranger_tools)), -- JSON: likewise for strangers
    user_id        TEXT REFERENCES users (id) ON DELETE RESTRICT, -- the author of the version; NULL: not recorded
    restored_from  INTEGER CHECK (restored_from < version), -- the version whose content it repeats; NULL: none
    effort         TEXT CHECK (effort IN ('none', 'low', 'medium', 'high', 'max')), -- NULL: as the provider decides
    temperature    REAL CHECK (temperature BETWEEN 0 AND 2), -- NULL: as the provider decides
    PRIMARY KEY (worker_id, version)
) STRICT;

-- The users who are invited to a private worker.
CREATE TABLE worker_members (
    worker_id  TEXT NOT NULL REFERENCES workers (id) ON DELETE RESTRICT,
    user_id    TEXT NOT NULL REFERENCES users (id) ON DELETE RESTRICT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (worker_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX worker_members_by_user ON worker_members (user_id); -- ended with their membership

-- The workers that a user has pinned: every page lists them. They are few.
CREATE TABLE worker_pins (
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT, -- the worker's
    user_id         TEXT NOT NULL REFERENCES users (id) ON DELETE RESTRICT,
    worker_id       TEXT NOT NULL REFERENCES workers (id) ON DELETE RESTRICT,
    created_at      INTEGER NOT NULL,
    PRIMARY KEY (organization_id, user_id, worker_id)
) STRICT, WITHOUT ROWID;

-- A secret is a value that tools send along without the model seeing it, such as the key of another service. It is
-- sealed with the key file of the data folder and is never shown again.
CREATE TABLE secrets (
    id                 TEXT PRIMARY KEY, -- sec_
    organization_id    TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    worker_id          TEXT REFERENCES workers (id) ON DELETE RESTRICT, -- NULL: every worker may use it
    name               TEXT NOT NULL CHECK (name <> ''), -- as in ${secret:NAME}
    hosts              TEXT NOT NULL CHECK (json_valid(hosts)), -- JSON array: hosts that web_fetch may send it to
    sealed             BLOB NOT NULL,
    created_by_user_id TEXT NOT NULL REFERENCES users (id) ON DELETE RESTRICT,
    created_at         INTEGER NOT NULL,
    updated_at         INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX secrets_by_name ON secrets (organization_id, coalesce(worker_id, ''), name); -- the list

-- The OAuth sign-in of this server at an MCP server: the client's registration and its tokens, sealed as secrets are.
CREATE TABLE mcp_logins (
    server     TEXT PRIMARY KEY, -- its name in the configuration
    sealed     BLOB NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

-- A provider of models that an organization has connected. Its models are called name:model. The key is sealed with
-- the key file of the data folder and is never shown again.
CREATE TABLE model_providers (
    id                 TEXT PRIMARY KEY, -- prv_
    organization_id    TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    name               TEXT NOT NULL CHECK (name <> ''), -- in the names of its models; never changes
    kind               TEXT NOT NULL -- its API
                       CHECK (kind IN ('anthropic', 'openai', 'openrouter', 'ollama', 'openai-compatible')),
    base_url           TEXT CHECK (base_url <> ''), -- NULL: that of the kind
    sealed             BLOB,             -- the key; NULL: it needs none
    key_end            TEXT NOT NULL,    -- last characters of the key, for display
    context_window     INTEGER NOT NULL CHECK (context_window >= 0), -- tokens; 0: as the provider says
    models             TEXT NOT NULL CHECK (json_valid(models)), -- JSON array, as of the last test
    test               TEXT CHECK (test IS NULL OR json_valid(test)), -- JSON: its result; NULL: none since a change
    created_by_user_id TEXT REFERENCES users (id) ON DELETE RESTRICT, -- NULL: the command line
    created_at         INTEGER NOT NULL,
    updated_at         INTEGER NOT NULL,
    revision           INTEGER NOT NULL  -- counts the changes of key and address
) STRICT;
CREATE UNIQUE INDEX model_providers_by_name ON model_providers (organization_id, name); -- the list, and a model's name

-- Work -------------------------------------------------------------------------

-- A task is a conversation with a worker: one turn or more. Its figures are sums, so that a list need not add them up.
CREATE TABLE tasks (
    num                 INTEGER PRIMARY KEY,
    id                  TEXT NOT NULL,    -- tsk_, or the client's own
    organization_num    INTEGER NOT NULL REFERENCES organizations (num) ON DELETE RESTRICT,
    worker_num          INTEGER NOT NULL REFERENCES workers (num) ON DELETE RESTRICT,
    created_by_user_num INTEGER,          -- NULL: a stranger's mail; without REFERENCES: see turns
    title               TEXT NOT NULL,
    -- The only definition of a task's status. Every answer, filter, stream, webhook and page reads it from here.
    status              TEXT NOT NULL GENERATED ALWAYS AS
                        (CASE WHEN running THEN 'running' WHEN unfinished THEN 'pending' ELSE outcome END) VIRTUAL,
    triggered_by        TEXT NOT NULL CHECK (triggered_by IN ('api', 'email', 'schedule', 'ui')),
    turn_count          INTEGER NOT NULL,
    unfinished          INTEGER NOT NULL CHECK (unfinished >= 0), -- turns pending or running
    running             INTEGER NOT NULL CHECK (running IN (0, 1) AND running <= unfinished), -- turns running
    outcome             TEXT CHECK (outcome IN ('completed', 'error', 'aborted'))
                        CHECK (outcome IS NOT NULL OR unfinished > 0), -- how its newest turn ended; NULL before
    cost                INTEGER NOT NULL, -- nano-dollars
    duration_ms         INTEGER NOT NULL,
    created_at          INTEGER NOT NULL,
    completed_at        INTEGER CHECK ((completed_at IS NULL) = (unfinished > 0)),
    archived_at         INTEGER,
    own_folder          INTEGER NOT NULL DEFAULT 0 CHECK (own_folder IN (0, 1)), -- 1: no other task sees its folder
    waits_for           TEXT              -- as in its suspended turn
                        CHECK (waits_for IN ('person', 'model', 'worker')) CHECK (waits_for IS NULL OR running = 1)
) STRICT;
CREATE UNIQUE INDEX tasks_by_id ON tasks (id, organization_num); -- a client's id is its organization's own
-- One index for each filter a task list can begin with, newest first.
CREATE INDEX tasks_listed ON tasks (organization_num, created_at) WHERE archived_at IS NULL;
CREATE INDEX tasks_by_worker ON tasks (worker_num, created_at) WHERE archived_at IS NULL;
CREATE INDEX tasks_by_status ON tasks (organization_num, status, created_at)
    WHERE archived_at IS NULL AND status <> 'completed'; -- others: tasks_listed
CREATE INDEX tasks_by_trigger ON tasks (organization_num, triggered_by, created_at) WHERE archived_at IS NULL;
CREATE INDEX tasks_archived ON tasks (organization_num, created_at) WHERE archived_at IS NOT NULL;
CREATE INDEX tasks_waiting ON tasks (organization_num, waits_for, created_at)
    WHERE waits_for IS NOT NULL AND archived_at IS NULL;
CREATE INDEX tasks_by_caller ON tasks (worker_num, created_by_user_num) WHERE archived_at IS NULL; -- "continue"
CREATE INDEX tasks_ended ON tasks (worker_num, completed_at) WHERE completed_at IS NOT NULL; -- pruning

-- A runner is a process that carries out turns. A turn that it has claimed belongs to it until its lease ends. A
-- process that dies leaves its row behind. After the end of the lease, another runner returns the turns to the queue.
CREATE TABLE runners (
    id         TEXT PRIMARY KEY,
    expires_at INTEGER NOT NULL,
    url        TEXT,     -- where other nodes reach its server; NULL, as the columns below: there are none
    version    TEXT,     -- of its program
    started_at INTEGER
) STRICT, WITHOUT ROWID;

-- A turn is one instruction to a worker, and its result. Its row is committed before any client learns that it was
-- accepted: over the API, by mail, by a schedule or on a page. It is deleted only with its task. It is also the
-- queue: see turns_queued. Every REFERENCES costs each new turn a lookup, and on PostgreSQL a lock on a row that all
-- of them share. So columns that the same statement reads from their table have none: users and keys stay.
CREATE TABLE turns (
    num                 INTEGER PRIMARY KEY,
    id                  TEXT NOT NULL UNIQUE,     -- trn_
    task_num            INTEGER NOT NULL REFERENCES tasks (num) ON DELETE RESTRICT,
    seq                 INTEGER NOT NULL,         -- 0, 1, ... in its task
    organization_num    INTEGER NOT NULL,         -- without REFERENCES: the task's, as worker_num
    worker_num          INTEGER NOT NULL,         -- without REFERENCES: the task's
    worker_version      INTEGER NOT NULL,         -- without REFERENCES: the worker's, or that of an earlier turn
    created_by_user_num INTEGER,                  -- NULL: somebody who was no member then; without REFERENCES
    api_key_num         INTEGER,                  -- NULL: it came without a key; without REFERENCES
    own_folder          INTEGER NOT NULL          -- 1: it works in its task's own folder, as strangers' turns always do
                        CHECK (own_folder IN (0, 1) AND (own_folder = 1 OR created_by_user_num IS NOT NULL)),
    triggered_by        TEXT NOT NULL CHECK (triggered_by IN ('api', 'email', 'schedule', 'ui')),
    input               TEXT NOT NULL CHECK (input <> ''),
    budget              TEXT NOT NULL CHECK (budget IN ('low', 'standard', 'high', 'unlimited')),
    status              TEXT NOT NULL             -- pending -> running -> completed | error | aborted
                        CHECK (status IN ('pending', 'running', 'completed', 'error', 'aborted')),
    ready               INTEGER NOT NULL CHECK (ready IN (0, 1)), -- 0 until all earlier turns of the task have ended
    runner_id           TEXT CHECK ((runner_id IS NOT NULL) = (status = 'running' AND suspended_until IS NULL)),
                        -- the runner that has claimed it; without REFERENCES: the row of a dead one goes first
    suspended_until     INTEGER CHECK (suspended_until IS NULL OR status = 'running'), -- the end of its suspension
    claims              INTEGER NOT NULL,         -- how often it was claimed
    interruptions       INTEGER NOT NULL,         -- claims that died since the last finished call
    abort_requested     INTEGER NOT NULL CHECK (abort_requested IN (0, 1)),
    output_text         TEXT NOT NULL,
    structured_output   TEXT CHECK (structured_output IS NULL OR json_valid(structured_output)), -- JSON; NULL: none
    error_code          TEXT,                     -- NULL: no error
    error_message       TEXT,
    error_retryable     INTEGER,
    incomplete_reason   TEXT CHECK (incomplete_reason IN
                        ('budget_exhausted', 'max_output_tokens', 'content_filter', 'aborted')),
    incomplete_limit    TEXT CHECK (incomplete_limit IN ('credits', 'steps', 'time')),
    model               TEXT CHECK (model <> ''), -- the one that answered last; NULL before
    steps               INTEGER NOT NULL,
    input_tokens        INTEGER NOT NULL,
    output_tokens       INTEGER NOT NULL,
    cache_read_tokens   INTEGER NOT NULL,
    cache_write_tokens  INTEGER NOT NULL,
    reasoning_tokens    INTEGER NOT NULL,
    model_cost          INTEGER NOT NULL,         -- nano-dollars
    tool_cost           INTEGER NOT NULL,         -- nano-dollars
    duration_ms         INTEGER NOT NULL,         -- from start to end
    -- Set while a provider is asked, and charged if the process dies before the answer.
    call_tokens         INTEGER,                  -- of the call's input, estimated
    call_cost           INTEGER CHECK ((call_cost IS NULL) = (call_tokens IS NULL)), -- nano-dollars
    created_at          INTEGER NOT NULL,
    started_at          INTEGER,                  -- of the first claim
    completed_at        INTEGER CHECK ((completed_at IS NULL) = (status IN ('pending', 'running'))),
    task_status         TEXT CHECK ((task_status IS NULL) = (completed_at IS NULL)), -- of the task after its end
    envelope            TEXT NOT NULL DEFAULT '', -- text for the model before the input: time, author and channel
    -- Set while it is suspended: what it waits for. 'person': a decision or an answer; 'model': its provider, until
    -- retry_at; 'worker': a turn that it has started.
    waits_for           TEXT CHECK (waits_for IN ('person', 'model', 'worker'))
                        CHECK (waits_for IS NULL OR suspended_until IS NOT NULL),
    wait_reason         TEXT CHECK (wait_reason IS NULL OR waits_for IS NOT NULL), -- such as the provider's error
    retry_at            INTEGER CHECK (retry_at IS NULL OR waits_for IS 'model'),
    failing_since       INTEGER,                  -- time of the first failed model call since the last success
    failed_calls        INTEGER NOT NULL DEFAULT 0, -- number of these failed calls
    -- The call of run_worker that started it; NULL: none did. A turn and all turns below it share one budget.
    parent_turn_num     INTEGER REFERENCES turns (num) ON DELETE RESTRICT,
    parent_step_seq     INTEGER CHECK ((parent_step_seq IS NULL) = (parent_turn_num IS NULL)), -- without REFERENCES
    parent_call_seq     INTEGER CHECK ((parent_call_seq IS NULL) = (parent_turn_num IS NULL)), -- without REFERENCES
    root_turn_num       INTEGER REFERENCES turns (num) ON DELETE RESTRICT
                        CHECK ((root_turn_num IS NULL) = (parent_turn_num IS NULL)),
    depth               INTEGER NOT NULL DEFAULT 0 CHECK ((depth = 0) = (parent_turn_num IS NULL)), -- 0: no parent
    UNIQUE (task_num, seq)
) STRICT;
-- The queue. Claiming walks from organization to organization and inside one from worker to worker, so that none
-- waits behind another's thousands. Turns of strangers have a lane of their own: they get only a part of the slots.
CREATE INDEX turns_queued ON turns (ready, organization_num, worker_num, num)
    WHERE status = 'pending' AND created_by_user_num IS NOT NULL;
CREATE INDEX turns_queued_of_strangers ON turns (ready, organization_num, worker_num, num)
    WHERE status = 'pending' AND created_by_user_num IS NULL;
CREATE INDEX turns_running ON turns (runner_id) WHERE runner_id IS NOT NULL; -- turns of dead runners
CREATE INDEX turns_suspended ON turns (suspended_until) WHERE suspended_until IS NOT NULL; -- whose wait is over
CREATE INDEX turns_retrying ON turns (retry_at) WHERE retry_at IS NOT NULL; -- turns that call their model again
CREATE UNIQUE INDEX turns_by_parent ON turns (parent_turn_num, parent_step_seq, parent_call_seq)
    WHERE parent_turn_num IS NOT NULL; -- one turn a call
CREATE INDEX turns_by_root ON turns (root_turn_num) WHERE root_turn_num IS NOT NULL; -- what a team has spent
CREATE INDEX turns_by_worker ON turns (worker_num, num); -- turns that a stream of a worker has missed

-- The toolsets of turns: the tools of MCP servers, as these described them at that time. Equal ones are stored once.
CREATE TABLE toolsets (
    hash    TEXT PRIMARY KEY, -- SHA-256 of toolset, in hexadecimal
    toolset TEXT NOT NULL CHECK (json_valid(toolset))
) STRICT;

-- The toolset of a turn. The row is written before the turn's first model call, so that a resumed turn has the same
-- tools and the same preamble. Turns that need neither have no row.
CREATE TABLE turn_toolsets (
    turn_num INTEGER PRIMARY KEY REFERENCES turns (num) ON DELETE RESTRICT,
    hash     TEXT NOT NULL REFERENCES toolsets (hash) ON DELETE RESTRICT,
    preamble TEXT NOT NULL CHECK (json_valid(preamble)) -- JSON object: the workers and programs that the preamble names
) STRICT;

-- The journal: a step is one finished model call. It is written before any of its effects, and never changed.
CREATE TABLE steps (
    turn_num           INTEGER NOT NULL REFERENCES turns (num) ON DELETE RESTRICT,
    seq                INTEGER NOT NULL, -- 0, 1, ... in its turn
    attempt            INTEGER NOT NULL, -- number of the try: streams tell an interrupted one by it
    parts              TEXT NOT NULL CHECK (json_valid(parts)), -- JSON array: reasoning, text and tool calls, in order
    finish             TEXT NOT NULL,    -- stop, tool-calls, length, continued, mistake, content-filter, refused, other
                                         -- or aborted; continued: cut at the output limit, and the turn goes on;
                                         -- mistake: the tool call could not be read, and the model was told
    feedback           TEXT NOT NULL,    -- message of the runner to the model after the step; usually ''
    model              TEXT NOT NULL,
    estimated_tokens   INTEGER NOT NULL, -- of the input, counted from its text before the call
    input_tokens       INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    cache_read_tokens  INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    reasoning_tokens   INTEGER NOT NULL,
    cost               INTEGER NOT NULL, -- nano-dollars
    started_at         INTEGER NOT NULL,
    completed_at       INTEGER NOT NULL,
    PRIMARY KEY (turn_num, seq)
) STRICT; -- not WITHOUT ROWID: rows of a kilobyte or more would each take a page of their own

-- A tool call that has ended: its row and its effects (files, sources) are one transaction. A call in a step's parts
-- without a row here has not ended. The spent columns are how much of its budget the turn and its team had used then:
-- the model reads notices about it, which must not change when the turn resumes.
CREATE TABLE tool_calls (
    turn_num      INTEGER NOT NULL,
    step_seq      INTEGER NOT NULL,
    seq           INTEGER NOT NULL, -- 0, 1, ... in its step
    state         TEXT NOT NULL CHECK (state IN ('completed', 'error', 'interrupted')),
    output        TEXT NOT NULL CHECK (json_valid(output)), -- JSON; an error: its message, as a JSON string
    cost          INTEGER NOT NULL, -- nano-dollars
    started_at    INTEGER NOT NULL,
    completed_at  INTEGER NOT NULL,
    spent_steps   INTEGER NOT NULL DEFAULT 0 CHECK (spent_steps BETWEEN 0 AND 100), -- per cent of the limit
    spent_time    INTEGER NOT NULL DEFAULT 0 CHECK (spent_time BETWEEN 0 AND 100),
    spent_credits INTEGER NOT NULL DEFAULT 0 CHECK (spent_credits BETWEEN 0 AND 100),
    spent_by_team INTEGER NOT NULL DEFAULT 0 CHECK (spent_by_team IN (0, 1)), -- 1: its team's steps and credits count
    PRIMARY KEY (turn_num, step_seq, seq),
    FOREIGN KEY (turn_num, step_seq) REFERENCES steps (turn_num, seq) ON DELETE RESTRICT
) STRICT;

-- An image that a tool call shows to the model. The bytes lie in the data folder under their SHA-256.
CREATE TABLE call_images (
    turn_num   INTEGER NOT NULL,
    step_seq   INTEGER NOT NULL,
    call_seq   INTEGER NOT NULL,
    seq        INTEGER NOT NULL,        -- 0, 1, ... in its call
    path       TEXT CHECK (path <> ''), -- in the workspace, such as 'b.pdf#page=3'; NULL: another server's image
    media_type TEXT NOT NULL,
    size       INTEGER NOT NULL CHECK (size > 0),
    sha256     TEXT NOT NULL CHECK (length(sha256) = 64),
    PRIMARY KEY (turn_num, step_seq, call_seq, seq),
    FOREIGN KEY (turn_num, step_seq, call_seq) REFERENCES tool_calls (turn_num, step_seq, seq) ON DELETE RESTRICT
) STRICT;
CREATE INDEX call_images_by_sha256 ON call_images (sha256); -- whether a file is still used

-- A tool call that waits for a person: it may run only once it is approved, or it asks a question, whose answer is
-- the call's result. The row is written with the call's step. While a call of a step is pending and no other call is
-- left to run, the turn is suspended: no runner has it. The last decision returns the turn to the queue.
CREATE TABLE approvals (
    num                INTEGER PRIMARY KEY,
    id                 TEXT NOT NULL UNIQUE, -- apr_
    kind               TEXT NOT NULL CHECK (kind IN ('approval', 'question')),
    organization_id    TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    task_num           INTEGER NOT NULL REFERENCES tasks (num) ON DELETE RESTRICT,
    turn_num           INTEGER NOT NULL,
    step_seq           INTEGER NOT NULL,
    call_seq           INTEGER NOT NULL,     -- of the call, as in tool_calls; without REFERENCES: that row comes later
    status             TEXT NOT NULL         -- the last two: the turn ended, or went on, without a decision
                       CHECK (status IN ('pending', 'approved', 'denied', 'answered', 'expired', 'cancelled')),
    reason             TEXT NOT NULL,        -- of the decision; '' without one
    answer             TEXT CHECK ((answer IS NOT NULL) = (status = 'answered')), -- to the question
    decision           INTEGER               -- 0, 1, ... among its step's decisions, in their order
                       CHECK ((decision IS NOT NULL) = (status IN ('approved', 'denied', 'answered'))),
    decided_by_user_id TEXT REFERENCES users (id) ON DELETE RESTRICT,
    created_at         INTEGER NOT NULL,
    decided_at         INTEGER CHECK ((decided_at IS NULL) = (status = 'pending')),
    started_at         INTEGER,              -- set before the call runs: from here on it may have acted
    UNIQUE (turn_num, step_seq, call_seq),
    FOREIGN KEY (turn_num, step_seq) REFERENCES steps (turn_num, seq) ON DELETE RESTRICT
) STRICT;
CREATE INDEX approvals_by_task ON approvals (task_num, num); -- the list of a task
CREATE INDEX approvals_pending ON approvals (organization_id, num) WHERE status = 'pending'; -- the inbox

-- A tool whose calls need no more decisions in a task: a person has approved one of them for the rest of the task. It
-- holds while that person may decide on the task's calls.
CREATE TABLE task_allowances (
    task_num       INTEGER NOT NULL REFERENCES tasks (num) ON DELETE RESTRICT,
    tool           TEXT NOT NULL CHECK (tool <> ''), -- as the model names it
    user_id        TEXT NOT NULL REFERENCES users (id) ON DELETE RESTRICT, -- the person who has allowed it
    worker_version INTEGER NOT NULL, -- the version of its worker for which it holds; without REFERENCES: that of a turn
    created_at     INTEGER NOT NULL,
    PRIMARY KEY (task_num, tool)
) STRICT, WITHOUT ROWID;

-- A compaction shortens the beginning of a conversation, so that the conversation fits its model. The beginning ends
-- at a place in the task. Later prompts contain it in short form, but the steps themselves do not change.
CREATE TABLE compactions (
    num           INTEGER PRIMARY KEY,
    task_num      INTEGER NOT NULL REFERENCES tasks (num) ON DELETE RESTRICT,
    turn_num      INTEGER NOT NULL REFERENCES turns (num) ON DELETE RESTRICT, -- the turn that needed it
    step_seq      INTEGER NOT NULL, -- the step that needed it; without REFERENCES: that row may come later
    kind          TEXT NOT NULL CHECK (kind IN ('cut', 'files', 'summary', 'omission')), -- cut: outputs and arguments
                                    -- of tools; files: only the names of some files remain; summary and omission: a
                                    -- summary or a note replaces everything
    before_turn   INTEGER NOT NULL, -- the place: seq of a turn of the task,
    before_step   INTEGER NOT NULL, -- and of its first step that stays complete; 0: its instruction does, too
    cut_to        INTEGER CHECK ((cut_to IS NOT NULL) = (kind = 'cut')), -- bytes that remain of each text
    files         TEXT              -- JSON: [{"turn": seq, "path"}] of the files that are only named
                  CHECK (files IS NULL OR json_valid(files)) CHECK ((files IS NOT NULL) = (kind = 'files')),
    items         INTEGER NOT NULL, -- number of shortened texts, files or model calls
    summary       TEXT CHECK ((summary IS NOT NULL) = (kind IN ('summary', 'omission'))), -- in place of the beginning
    refused       INTEGER NOT NULL CHECK (refused IN (0, 1)), -- 1: by the provider; 0: by the runner's estimate
    model         TEXT NOT NULL,    -- the one that the conversation must fit; it also wrote the summary
    room          INTEGER NOT NULL, -- tokens of input that the model is assumed to accept
    tokens_before INTEGER NOT NULL, -- of the request, estimated
    tokens_after  INTEGER NOT NULL,
    input_tokens  INTEGER NOT NULL, -- used for the summary; 0 without one
    output_tokens INTEGER NOT NULL,
    cost          INTEGER NOT NULL, -- nano-dollars
    started_at    INTEGER NOT NULL,
    completed_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX compactions_by_task ON compactions (task_num, num); -- the next call, the next turn, and the task page
CREATE INDEX compactions_by_turn ON compactions (turn_num); -- pruning

-- A file as it was when a client attached it or a worker published it. The bytes lie in the data folder under their
-- SHA-256, so a later version changes nothing here: it is another row.
CREATE TABLE files (
    num        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,             -- fil_
    worker_id  TEXT NOT NULL REFERENCES workers (id) ON DELETE RESTRICT,
    task_num   INTEGER NOT NULL REFERENCES tasks (num) ON DELETE RESTRICT,
    turn_num   INTEGER NOT NULL REFERENCES turns (num) ON DELETE RESTRICT,
    origin     TEXT NOT NULL CHECK (origin IN ('attached', 'published')),
    path       TEXT NOT NULL CHECK (path <> ''), -- in the workspace; of a task's own folder: below tasks/{its id}/
    title      TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size       INTEGER NOT NULL CHECK (size >= 0),
    sha256     TEXT NOT NULL CHECK (length(sha256) = 64),
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX files_by_path ON files (worker_id, path, num); -- a file's address, newest version first
CREATE INDEX files_by_task ON files (task_num, num); -- the run view
CREATE INDEX files_by_turn ON files (turn_num, num); -- the turn list
CREATE INDEX files_by_sha256 ON files (sha256); -- whether a file is still used
CREATE INDEX files_listed ON files (worker_id, num) WHERE origin = 'published'; -- a worker's files, newest first

-- A web page on which an answer is based.
CREATE TABLE sources (
    num        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE, -- src_
    task_num   INTEGER NOT NULL REFERENCES tasks (num) ON DELETE RESTRICT,
    turn_num   INTEGER NOT NULL REFERENCES turns (num) ON DELETE RESTRICT,
    url        TEXT NOT NULL,
    title      TEXT,
    created_at INTEGER NOT NULL,
    UNIQUE (task_num, url)
) STRICT;
CREATE INDEX sources_by_task ON sources (task_num, num); -- the run view
CREATE INDEX sources_by_turn ON sources (turn_num, num); -- streams

-- The results of requests, so that a repeated POST is carried out only once. The API key and the Idempotency-Key
-- identify a request. For clients that only count their retries, retry_hash does in place of the key. The row is
-- written in the transaction that creates the result.
CREATE TABLE idempotency (
    api_key_num  INTEGER NOT NULL, -- 0 for a form of the pages, so without REFERENCES
    user_num     INTEGER NOT NULL CHECK ((user_num = 0) = (api_key_num <> 0)), -- of a form, or 0: without REFERENCES
    key          TEXT NOT NULL,    -- the client's key; '' without one
    retry_hash   BLOB NOT NULL CHECK (length(retry_hash) = iif(key = '', 16, 0)), -- of a request without a key
    request_hash BLOB CHECK ((request_hash IS NULL) = (key = '')), -- of a request with one, or of a form
    result_id    TEXT NOT NULL,    -- id of what was made; without REFERENCES: it is in one of many tables
    expires_at   INTEGER NOT NULL,
    PRIMARY KEY (api_key_num, user_num, key, retry_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_expiry ON idempotency (expires_at); -- pruning

-- The usage of each day, added up when it occurs. Charts and bills read this table, never the turns.
CREATE TABLE usage (
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    day             INTEGER NOT NULL, -- days since 1970-01-01, UTC
    worker_id       TEXT NOT NULL,    -- '' without one, as for a call outside of turns, so without REFERENCES
    api_key_id      TEXT NOT NULL,    -- likewise without REFERENCES
    triggered_by    TEXT NOT NULL,
    turns           INTEGER NOT NULL, -- number of ended turns
    failures        INTEGER NOT NULL, -- number of these that failed
    steps           INTEGER NOT NULL,
    input_tokens    INTEGER NOT NULL,
    output_tokens   INTEGER NOT NULL,
    cost            INTEGER NOT NULL, -- nano-dollars
    duration_ms     INTEGER NOT NULL,
    PRIMARY KEY (organization_id, day, worker_id, api_key_id, triggered_by)
) STRICT, WITHOUT ROWID;

-- The month's spending in one row, for the cap.
CREATE TABLE spending (
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    month           INTEGER NOT NULL, -- year * 12 + month - 1, UTC
    cost            INTEGER NOT NULL, -- nano-dollars
    PRIMARY KEY (organization_id, month)
) STRICT, WITHOUT ROWID;

-- Work without a request -------------------------------------------------------

-- A schedule makes a new task when next_run_at has come. Making the task and moving next_run_at are one transaction,
-- so a due time fires exactly once. While that task has turns that wait or run, the schedule makes no other.
CREATE TABLE schedules (
    num                INTEGER PRIMARY KEY,
    id                 TEXT NOT NULL UNIQUE, -- sch_
    organization_id    TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    worker_id          TEXT NOT NULL REFERENCES workers (id) ON DELETE RESTRICT,
    created_by_user_id TEXT NOT NULL REFERENCES users (id) ON DELETE RESTRICT, -- the user for whom it runs
    input              TEXT NOT NULL CHECK (input <> ''),
    budget             TEXT NOT NULL CHECK (budget IN ('low', 'standard', 'high', 'unlimited')),
    type               TEXT NOT NULL CHECK (type IN ('scheduled', 'delayed', 'cron', 'interval')),
    delay_seconds      REAL CHECK ((delay_seconds IS NOT NULL) = (type = 'delayed')),
    cron               TEXT CHECK ((cron IS NOT NULL) = (type = 'cron')),
    interval_seconds   REAL CHECK ((interval_seconds IS NOT NULL) = (type = 'interval')),
    timezone           TEXT CHECK (timezone IS NULL OR type = 'cron'), -- NULL: the expression names its own
    anchor_at          INTEGER NOT NULL,     -- start of the intervals, or the only time of a one-time schedule
    next_run_at        INTEGER,              -- NULL: fired for the last time, or cancelled
    last_run_at        INTEGER,
    paused             INTEGER NOT NULL CHECK (paused IN (0, 1)),
    created_at         INTEGER NOT NULL,
    cancelled_at       INTEGER,
    running_task_num   INTEGER REFERENCES tasks (num) ON DELETE RESTRICT -- of its last run; NULL once it has ended
) STRICT;
CREATE INDEX schedules_due ON schedules (next_run_at)
    WHERE next_run_at IS NOT NULL AND paused = 0 AND running_task_num IS NULL;
CREATE INDEX schedules_by_organization ON schedules (organization_id, running_task_num, next_run_at)
    WHERE next_run_at IS NOT NULL AND paused = 0; -- due, one organization after the other
CREATE INDEX schedules_by_running_task ON schedules (running_task_num) WHERE running_task_num IS NOT NULL;
CREATE INDEX schedules_by_worker ON schedules (worker_id, num) WHERE next_run_at IS NOT NULL; -- the list
CREATE INDEX schedules_by_timezone ON schedules (timezone)
    WHERE next_run_at IS NOT NULL AND timezone IS NOT NULL; -- another --timezone
CREATE INDEX schedules_by_last_run ON schedules (last_run_at)
    WHERE next_run_at IS NOT NULL AND last_run_at IS NOT NULL; -- a clock set back

-- The webhook of a worker. A worker has at most one.
CREATE TABLE webhooks (
    worker_id      TEXT PRIMARY KEY REFERENCES workers (id) ON DELETE RESTRICT,
    url            TEXT NOT NULL CHECK (url <> ''),
    token          TEXT NOT NULL, -- whk_, sent as X-Service-Token
    signing_secret TEXT NOT NULL, -- whsec_, never sent with a delivery
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A delivery is a message to a webhook that a turn has ended, or waits for a person. The row is written in the
-- transaction of that event. The body is made when the delivery is sent, and shows the task as it was at the event.
CREATE TABLE deliveries (
    num             INTEGER PRIMARY KEY,
    id              TEXT NOT NULL, -- evt_, the same on every attempt
    worker_num      INTEGER NOT NULL REFERENCES workers (num) ON DELETE RESTRICT,
    turn_num        INTEGER REFERENCES turns (num) ON DELETE RESTRICT, -- NULL: a test
    type            TEXT NOT NULL, -- task.completed, turn.failed, ...
    attempts        INTEGER NOT NULL,
    next_attempt_at INTEGER,       -- NULL: delivered or given up
    created_at      INTEGER NOT NULL,
    task_status     TEXT,          -- NULL for a test, as the columns below
    task_turns      INTEGER,
    task_cost       INTEGER,       -- nano-dollars
    task_duration   INTEGER        -- milliseconds
) STRICT;
CREATE INDEX deliveries_due ON deliveries (worker_num, next_attempt_at, num)
    WHERE next_attempt_at IS NOT NULL; -- one endpoint after the other
CREATE INDEX deliveries_by_turn ON deliveries (turn_num) WHERE turn_num IS NOT NULL; -- pruning

-- One attempt at a delivery: the interface's webhook execution.
CREATE TABLE webhook_executions (
    num             INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE, -- whe_
    worker_num      INTEGER NOT NULL REFERENCES workers (num) ON DELETE RESTRICT,
    seq             INTEGER NOT NULL,     -- 1, 2, ... of the worker, so that a page is a range
    delivery_num    INTEGER NOT NULL REFERENCES deliveries (num) ON DELETE RESTRICT,
    url             TEXT NOT NULL,
    request_status  TEXT NOT NULL CHECK (request_status IN ('success', 'error')),
    response_status INTEGER,              -- NULL: no response
    error_message   TEXT,
    duration_ms     INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    UNIQUE (worker_num, seq)
) STRICT;
CREATE INDEX webhook_executions_by_delivery ON webhook_executions (delivery_num); -- pruning

-- The request and the response of an attempt, kept for failed attempts, and for the newest attempts of a worker.
CREATE TABLE webhook_exchanges (
    execution_num INTEGER PRIMARY KEY REFERENCES webhook_executions (num) ON DELETE CASCADE,
    request       TEXT NOT NULL, -- as HTTP writes it: its beginning, without secrets
    response      TEXT NOT NULL  -- likewise; '' where nothing came back
) STRICT;

-- Mail -------------------------------------------------------------------------

-- A received mail. The server has confirmed to the sender that it keeps the mail.
CREATE TABLE inbound_emails (
    num             INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,       -- msg_
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    worker_id       TEXT REFERENCES workers (id) ON DELETE RESTRICT, -- NULL: it is for the postmaster
    message_id      TEXT NOT NULL,              -- its sender's or made by us, without REFERENCES: no row of ours
    content         TEXT,                       -- hash of Message-ID, author, date, subject and body; NULL: a copy
    proven          INTEGER NOT NULL DEFAULT 0 CHECK (proven IN (0, 1, 2)), -- 1: its author is proven; 2: and a member
    status          TEXT NOT NULL CHECK (status IN ('accepted', 'ignored', 'held')),
    reason          TEXT NOT NULL,              -- why ignored or held; '' if accepted
    turn_num        INTEGER REFERENCES turns (num) ON DELETE RESTRICT
                    CHECK ((turn_num IS NOT NULL) = (status = 'accepted')),
    mail_from       TEXT NOT NULL,              -- envelope sender; '' for bounces
    from_address    TEXT NOT NULL,              -- of the From header, in lower case
    recipient       TEXT NOT NULL,              -- the worker's address, as it was used
    reply_to        TEXT NOT NULL,              -- where the answer goes
    subject         TEXT NOT NULL,
    verdicts        TEXT NOT NULL CHECK (json_valid(verdicts)), -- JSON: spf, dkim, dmarc
    remote_addr     TEXT NOT NULL,
    network         TEXT CHECK (network <> ''), -- of a sending server; NULL: a relay, which sends mail of everybody
    size            INTEGER NOT NULL,           -- bytes
    created_at      INTEGER NOT NULL,
    source_sha256   TEXT,                       -- a large source lies in the data folder,
    source          BLOB,                       -- a small one here: no file to sync for each mail
    CHECK (source IS NULL OR source_sha256 IS NULL) -- both NULL: the source was old and is deleted
) STRICT;
CREATE UNIQUE INDEX inbound_emails_by_content ON inbound_emails (worker_id, content)
    WHERE content IS NOT NULL; -- the same mail twice is one turn
CREATE INDEX inbound_emails_by_message_id ON inbound_emails (worker_id, message_id, proven, num)
    WHERE turn_num IS NOT NULL; -- the thread of an answer
CREATE INDEX inbound_emails_by_organization ON inbound_emails (organization_id, id); -- the list, newest first
CREATE INDEX inbound_emails_held ON inbound_emails (organization_id, id) WHERE status = 'held'; -- for an Admin
CREATE INDEX inbound_emails_by_sender ON inbound_emails (worker_id, from_address, created_at)
    WHERE status = 'accepted'; -- the guard against loops
CREATE INDEX inbound_emails_by_turn ON inbound_emails (turn_num) WHERE turn_num IS NOT NULL; -- the reply
CREATE INDEX inbound_emails_by_age ON inbound_emails (created_at)
    WHERE source IS NOT NULL OR source_sha256 IS NOT NULL; -- pruning
CREATE INDEX inbound_emails_by_source ON inbound_emails (source_sha256) WHERE source_sha256 IS NOT NULL; -- is it used
CREATE INDEX inbound_emails_of_worker ON inbound_emails (worker_id, status, proven, num, size)
    WHERE status <> 'accepted'; -- this index and the next two: the limits of mail that starts no work
CREATE INDEX inbound_emails_of_sender ON inbound_emails (worker_id, status, proven, from_address, num, size)
    WHERE status <> 'accepted';
CREATE INDEX inbound_emails_of_network ON inbound_emails (organization_id, network, status, proven, num, size)
    WHERE status <> 'accepted' AND network IS NOT NULL;

-- A mail to send, written in the transaction of its cause. A reply is written when a turn that a mail started ends. A
-- notice tells the author of a mail that there will be no reply, because nothing verifies the author. A question or a
-- request for approval is written when its turn is suspended. The table is the outbox until the mail is sent. The id
-- of a mail is the local part of its Message-ID: an answer with it comes from somebody who has received the mail.
CREATE TABLE outbound_emails (
    num             INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE, -- msg_
    kind            TEXT NOT NULL CHECK (kind IN ('reply', 'question', 'approval', 'alert', 'notice')),
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    worker_id       TEXT REFERENCES workers (id) ON DELETE RESTRICT -- NULL: an alert
                    CHECK ((worker_id IS NULL) = (kind = 'alert')),
    turn_num        INTEGER REFERENCES turns (num) ON DELETE RESTRICT
                    CHECK ((turn_num IS NULL) = (kind IN ('alert', 'notice'))),
    inbound_num     INTEGER REFERENCES inbound_emails (num) ON DELETE RESTRICT -- the mail that it answers
                    CHECK (inbound_num IS NOT NULL OR kind <> 'reply'),
    approval_num    INTEGER REFERENCES approvals (num) ON DELETE RESTRICT -- the approval that it asks about
                    CHECK ((approval_num IS NULL) = (kind IN ('reply', 'alert', 'notice'))),
    alert_num       INTEGER REFERENCES alert_messages (num) ON DELETE RESTRICT -- the message of a channel
                    CHECK ((alert_num IS NULL) = (kind <> 'alert')),
    user_id         TEXT REFERENCES users (id) ON DELETE RESTRICT CHECK (user_id IS NOT NULL OR kind <> 'approval'),
                    -- the member who is asked; NULL: the author of the mail, or an alert
    network         TEXT CHECK ((network IS NOT NULL) = (kind = 'notice')), -- from which the mail of a notice came; its
                                          -- author if that network sends mail of everybody
    recipient       TEXT NOT NULL,
    subject         TEXT,                 -- NULL until composed
    status          TEXT NOT NULL CHECK (status IN ('queued', 'kept', 'sent', 'failed', 'bounced')), -- kept: no relay
    attempts        INTEGER NOT NULL,
    next_attempt_at INTEGER CHECK ((next_attempt_at IS NOT NULL) = (status = 'queued')),
    claimed         INTEGER NOT NULL DEFAULT 0 -- 1: an attempt is under way; it is given up at next_attempt_at
                    CHECK (claimed IN (0, 1) AND (claimed = 0 OR status = 'queued')),
    error_message   TEXT NOT NULL,        -- of the last attempt, or what came back
    created_at      INTEGER NOT NULL,
    sent_at         INTEGER,
    size            INTEGER NOT NULL,     -- bytes; 0 until composed
    source_sha256   TEXT,                 -- as above; both NULL until composed, too
    source          BLOB
) STRICT;
CREATE INDEX outbound_emails_due ON outbound_emails (next_attempt_at, num) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX outbound_emails_by_organization ON outbound_emails (organization_id, id); -- the list, newest first
CREATE INDEX outbound_emails_by_age ON outbound_emails (created_at)
    WHERE status <> 'queued' AND (source IS NOT NULL OR source_sha256 IS NOT NULL); -- pruning
CREATE INDEX outbound_emails_by_source ON outbound_emails (source_sha256) WHERE source_sha256 IS NOT NULL; -- is it used
CREATE INDEX outbound_emails_by_inbound ON outbound_emails (inbound_num) WHERE inbound_num IS NOT NULL; -- pruning
CREATE INDEX outbound_emails_by_turn ON outbound_emails (turn_num) WHERE turn_num IS NOT NULL; -- pruning
CREATE INDEX outbound_emails_by_approval ON outbound_emails (approval_num) WHERE approval_num IS NOT NULL; -- its mails
CREATE INDEX outbound_emails_notices ON outbound_emails (created_at, network) WHERE network IS NOT NULL; -- their limits
CREATE INDEX outbound_emails_by_alert ON outbound_emails (alert_num) WHERE alert_num IS NOT NULL; -- pruning

-- Alerts -----------------------------------------------------------------------

-- A channel brings the alerts of an organization to people: by mail to one member, or to a webhook such as Slack's.
-- The URL of a webhook is a secret, because anybody who knows it can write there.
CREATE TABLE alert_channels (
    id              TEXT PRIMARY KEY, -- alc_
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    user_id         TEXT REFERENCES users (id) ON DELETE RESTRICT, -- the recipient of the mails; NULL: it is a webhook
    host            TEXT CHECK ((host IS NULL) = (user_id IS NOT NULL)), -- of the URL, for people; NULL for mail
    sealed          BLOB CHECK ((sealed IS NULL) = (user_id IS NOT NULL)), -- the URL; NULL for mail
    topics          TEXT NOT NULL CHECK (json_valid(topics)), -- JSON array: failed, waiting, cap, ...
    frequency       TEXT NOT NULL CHECK (frequency IN ('now', 'hour', 'day')), -- how often it sends a message
    paused          INTEGER NOT NULL CHECK (paused IN (0, 1)), -- while paused, it collects nothing
    created_at      INTEGER NOT NULL,
    sent_at         INTEGER           -- when its last message was made; NULL: none yet
) STRICT;
CREATE INDEX alert_channels_by_organization ON alert_channels (organization_id, id); -- the list

-- The alerts that a channel has to report, written in the transaction of the event. Events of one kind at one worker
-- are one row with a count, so a channel has few rows. The row stays for some minutes after a message, so that a
-- repeated event waits.
CREATE TABLE alerts (
    channel_id TEXT NOT NULL REFERENCES alert_channels (id) ON DELETE CASCADE,
    event      TEXT NOT NULL,    -- such as 'task.failed'
    worker_id  TEXT NOT NULL,    -- '' without one, so without REFERENCES
    count      INTEGER NOT NULL, -- events that no message has reported
    task_num   INTEGER REFERENCES tasks (num) ON DELETE RESTRICT, -- the newest; NULL without one
    first_at   INTEGER NOT NULL, -- of these events
    last_at    INTEGER NOT NULL,
    due_at     INTEGER CHECK ((due_at IS NULL) = (count = 0)),
    sent_at    INTEGER,          -- of the last message; NULL: none yet
    PRIMARY KEY (channel_id, event, worker_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX alerts_due ON alerts (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX alerts_sent ON alerts (sent_at) WHERE due_at IS NULL; -- pruning
CREATE INDEX alerts_by_task ON alerts (task_num) WHERE task_num IS NOT NULL; -- pruning of tasks

-- A message of a channel. The rows are a webhook's queue; a mail goes on in the outbox. Each attempt sends the same.
CREATE TABLE alert_messages (
    num             INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE, -- alm_, the same on every attempt
    channel_id      TEXT REFERENCES alert_channels (id) ON DELETE SET NULL, -- NULL: it was removed
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE RESTRICT,
    test            INTEGER NOT NULL CHECK (test IN (0, 1)), -- a person asked for it
    items           TEXT NOT NULL CHECK (json_valid(items)), -- JSON array of the alerts
    status          TEXT NOT NULL CHECK (status IN ('queued', 'sent', 'failed', 'mailed')), -- mailed: see the outbox
    attempts        INTEGER NOT NULL,
    next_attempt_at INTEGER CHECK ((next_attempt_at IS NOT NULL) = (status = 'queued')),
    answer          TEXT NOT NULL,        -- to the last attempt, or why there is none
    created_at      INTEGER NOT NULL,
    tried_at        INTEGER               -- the last attempt; NULL before
) STRICT;
CREATE INDEX alert_messages_due ON alert_messages (next_attempt_at, num) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX alert_messages_by_channel ON alert_messages (channel_id, num); -- the newest

-- Several servers -------------------------------------------------------------

-- Servers that share a database are nodes. Among them, one runner at a time carries out the turns of a worker. A row
-- counts only while its runner has one in runners.
CREATE TABLE placements (
    worker_num INTEGER NOT NULL, -- without REFERENCES: that of a turn
    runner_id  TEXT NOT NULL,    -- without REFERENCES: see above
    used_at    INTEGER NOT NULL, -- the last claim of one of its turns
    PRIMARY KEY (worker_num)
) STRICT, WITHOUT ROWID;
CREATE INDEX placements_by_runner ON placements (runner_id);

-- The leader among the nodes. As in placements, a row counts only while its runner has one in runners.
CREATE TABLE leaders (
    name      TEXT PRIMARY KEY,
    runner_id TEXT NOT NULL  -- without REFERENCES: see above
) STRICT, WITHOUT ROWID;

-- The highest price of the model calls that a node has in progress. The table is used where several nodes make calls
-- that a cap or the budget of a team limits. As in placements, a row counts only while its runner has one in runners.
CREATE TABLE reservations (
    account   TEXT NOT NULL,    -- an organization's id, or 'team ' and a turn's id
    runner_id TEXT NOT NULL,    -- without REFERENCES: see above
    cost      INTEGER NOT NULL, -- nano-dollars
    PRIMARY KEY (account, runner_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX reservations_by_runner ON reservations (runner_id);
