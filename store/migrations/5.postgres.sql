-- From version 4 to version 5, on a PostgreSQL server. Only the declarations differ from 5.sql.

-- Servers that share a database see each other here.
ALTER TABLE runners ADD COLUMN url TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE runners ADD COLUMN version TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE runners ADD COLUMN started_at BIGINT NOT NULL DEFAULT 0;

CREATE TABLE placements (
    worker_num BIGINT NOT NULL,
    runner_id  TEXT COLLATE "C" NOT NULL,
    used_at    BIGINT NOT NULL,
    PRIMARY KEY (worker_num)
);

CREATE INDEX placements_by_runner ON placements (runner_id);

CREATE TABLE leaders (
    name      TEXT COLLATE "C" PRIMARY KEY,
    runner_id TEXT COLLATE "C" NOT NULL
);

CREATE TABLE holds (
    account   TEXT COLLATE "C" NOT NULL,
    runner_id TEXT COLLATE "C" NOT NULL,
    cost      BIGINT NOT NULL,
    PRIMARY KEY (account, runner_id)
);

CREATE INDEX holds_by_runner ON holds (runner_id);
