-- From version 4 to version 5.

-- Servers that share a database see each other here.
ALTER TABLE runners ADD COLUMN url TEXT NOT NULL DEFAULT '';
ALTER TABLE runners ADD COLUMN version TEXT NOT NULL DEFAULT '';
ALTER TABLE runners ADD COLUMN started_at INTEGER NOT NULL DEFAULT 0;

CREATE TABLE placements (
    worker_num INTEGER NOT NULL,
    runner_id  TEXT NOT NULL,
    used_at    INTEGER NOT NULL,
    PRIMARY KEY (worker_num)
) STRICT, WITHOUT ROWID;

CREATE INDEX placements_by_runner ON placements (runner_id);

CREATE TABLE leaders (
    name      TEXT PRIMARY KEY,
    runner_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE holds (
    account   TEXT NOT NULL,
    runner_id TEXT NOT NULL,
    cost      INTEGER NOT NULL,
    PRIMARY KEY (account, runner_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX holds_by_runner ON holds (runner_id);
