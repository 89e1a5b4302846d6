-- From version 3 to version 4, on a PostgreSQL server. Only the declarations differ from 4.sql.

-- Whether somebody created a worker, or a task made it.
ALTER TABLE workers ADD COLUMN origin TEXT COLLATE "C" NOT NULL DEFAULT 'created' CHECK (origin IN ('created', 'task'));

-- A task without a worker made one with its input as the instructions and with its title, in the
-- same transaction. Only a worker that nobody has changed since and that has no other task is
-- marked: a wrong mark would hide the worker.
UPDATE workers SET origin = 'task'
WHERE version = 1 AND updated_at = created_at AND summary = '' AND visibility = 'public' AND workspace = 'shared'
    AND keep_task_days IS NULL
    AND EXISTS (
        SELECT 1 FROM turns t
        JOIN tasks k ON k.num = t.task_num
        JOIN worker_versions v ON v.worker_id = workers.id AND v.version = 1
        WHERE t.num = (SELECT min(f.num) FROM turns f WHERE f.worker_num = workers.num)
            AND t.seq = 0 AND t.depth = 0 AND t.triggered_by = 'api'
            AND t.created_at BETWEEN workers.created_at AND workers.created_at + 1000
            AND k.title = workers.title AND v.instructions = substr(t.input, 1, 20000)
            AND v.output_schema IS NULL AND v.model IS NULL AND v.approval_tools = '[]' AND v.mcp_tools = '[]'
            AND v.tools IS NULL AND v.stranger_tools IS NULL
            AND NOT EXISTS (SELECT 1 FROM turns o WHERE o.worker_num = t.worker_num AND o.num > t.num AND o.seq = 0));

-- Workers that somebody has set up in another way stay in the lists.
UPDATE workers SET origin = 'created'
WHERE origin = 'task' AND id IN (
    SELECT worker_id FROM schedules UNION ALL SELECT worker_id FROM webhooks UNION ALL SELECT worker_id FROM worker_members
    UNION ALL SELECT worker_id FROM worker_pins UNION ALL SELECT worker_id FROM secrets WHERE worker_id IS NOT NULL
    UNION ALL SELECT worker_id FROM inbound_emails WHERE worker_id IS NOT NULL);

CREATE INDEX workers_by_origin ON workers (organization_id, origin, num) WHERE deleted_at IS NULL;
