// Checks handlers/openapi.yaml with openapi-typescript: a client with the generated types must
// compile, and work with a real server.
//
//   node client-check.js BASE_URL API_KEY     (compiled by `tsc -p .ci`)
//
// Lines after @ts-expect-error must not compile: they check that the types are not too loose. The
// server must have the offline model, no rate limit, and permission to reach this machine.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'node:test';
import createClient from 'openapi-fetch';
import type { components, paths } from 'journeyman-api';

type Schemas = components['schemas'];

const [base, key] = process.argv.slice(2);
assert.ok(base && key, 'usage: node client-check.js BASE_URL API_KEY');
const client = createClient<paths>({ baseUrl: base, headers: { Authorization: `Bearer ${key}` } });

// must returns the data of an answer, and fails if the request was refused.
function must<T>(answer: { data?: T; error?: unknown; response: Response }): T {
  assert.ok(answer.data !== undefined, `${answer.response.status} ${JSON.stringify(answer.error)}`);
  return answer.data;
}

async function newWorker(body: Schemas['WorkerTemplateCreate'] = {}): Promise<Schemas['WorkerTemplate']> {
  const made = must(await client.POST('/api/workers', { body }));
  assert.ok(typeof made !== 'string' && 'visibility' in made, 'a template: not a stream, and no run');
  return made;
}

async function runTask(body: Schemas['TaskCreate']): Promise<Schemas['WorkerRun']> {
  const run = must(await client.POST('/api/tasks', { body }));
  assert.ok(typeof run !== 'string', 'a run, not a stream');
  return run;
}

test('fields with a default may be left out of requests', async () => {
  // None of these names budget, stream or visibility: they compile without.
  const bare: Schemas['TaskCreate'] = { input: 'Say hello.' };
  const full: Schemas['TaskCreate'] = { input: 'Say hello.', budget: 'low', stream: false, taskId: 'client-check' };
  for (const body of [bare, full]) {
    const run = await runTask(body);
    assert.equal(run.status, 'completed');
    assert.equal(run.error, null);
  }
  // @ts-expect-error: the instruction is required
  const none: Schemas['TaskCreate'] = {};
  // @ts-expect-error: there is no such budget
  const huge: Schemas['TaskCreate'] = { input: 'x', budget: 'huge' };
  for (const body of [none, huge]) {
    const { error, response } = await client.POST('/api/tasks', { body });
    assert.equal(response.status, 400);
    assert.equal(error?.code, 'invalid_request');
    assert.ok(error.details && error.details.length > 0);
  }
});

test('a worker is made, read, changed, run and deleted', async () => {
  const worker = await newWorker({ title: 'Clerk', instructions: 'Be brief.', outputSchema: { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } } });
  const path = { workerId: worker.id };
  const template = must(await client.GET('/api/workers/{workerId}/template', { params: { path } }));
  assert.equal(template.title, 'Clerk');
  const changed = must(await client.PATCH('/api/workers/{workerId}', { params: { path }, body: { summary: 'Counts.' } }));
  assert.equal(changed.summary, 'Counts.');
  const run = await runTask({ input: 'n: 7', workerId: worker.id });
  assert.deepEqual(run.structured_output, { n: 7 });
  const listed = must(await client.GET('/api/workers', { params: { query: { limit: 100 } } }));
  assert.ok(listed.items.some((w) => w.id === worker.id));
  must(await client.POST('/api/workers/{workerId}', { params: { path, header: { Prefer: 'wait=60' } }, body: { input: 'n: 8' } }));
  must(await client.DELETE('/api/workers/{workerId}', { params: { path } }));
  const gone = await client.GET('/api/workers/{workerId}', { params: { path } });
  assert.equal(gone.response.status, 404);
  assert.equal(gone.error?.code, 'not_found');
});

test('a schema that no object meets is refused with its place', async () => {
  const { error, response } = await client.POST('/api/workers', { body: { outputSchema: { type: 'string' } } });
  assert.equal(response.status, 400);
  assert.equal(error?.details?.[0]?.path, 'outputSchema');
  assert.match(error.details[0].message, /\/type: allows string where only object is possible/);
});

test('tasks are listed, read, turned through and cancelled', async () => {
  const worker = await newWorker();
  const run = await runTask({ input: 'Say hello.', workerId: worker.id });
  const list = must(await client.GET('/api/tasks', { params: { query: { workerId: worker.id, status: 'completed' } } }));
  const [first] = list.items;
  assert.ok(first && list.items.length === 1 && list.nextCursor === null);
  assert.equal(first.id, run.metadata.taskId);
  const path = { taskId: first.id };
  const one = must(await client.GET('/api/tasks/{taskId}', { params: { path } }));
  const status: Schemas['TaskStatus'] = one.task.status;
  assert.equal(status, 'completed');
  const { items } = must(await client.GET('/api/tasks/{taskId}/turns', { params: { path } }));
  assert.equal(items[0]?.input, 'Say hello.');
  const cancelled = must(await client.POST('/api/tasks/{taskId}/cancel', { params: { path } }));
  assert.equal(cancelled.task.status, 'completed'); // the task had ended
});

test('a task takes files as multipart', async () => {
  const form = new FormData();
  form.set('input', 'Read note.txt.');
  form.set('file', new Blob(['The harbour is closed.']), 'note.txt');
  const run = must(
    await client.POST('/api/tasks', {
      body: { input: 'Read note.txt.' }, // for the types; the form is sent instead
      bodySerializer: () => form,
    }),
  );
  assert.ok(typeof run !== 'string');
  assert.match(run.output_text ?? '', /harbour/);
});

test('schedules of every kind', async () => {
  const { id: workerId } = await newWorker();
  const whens: Schemas['ScheduleWhen'][] = [
    { type: 'cron', cron: '0 9 * * 1' },
    { type: 'interval', intervalSeconds: 3600 },
    { type: 'delayed', delayInSeconds: 3600 },
    { type: 'scheduled', date: new Date(Date.now() + 3_600_000).toISOString() },
  ];
  for (const when of whens) {
    must(await client.POST('/api/workers/{workerId}/schedules', { params: { path: { workerId } }, body: { input: 'Report.', when } }));
  }
  const { schedules } = must(await client.GET('/api/workers/{workerId}/schedules', { params: { path: { workerId } } }));
  assert.equal(schedules.length, whens.length);
});

test('a webhook and its executions', async (t) => {
  const server = createServer((_, response) => response.writeHead(204).end()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { id: workerId } = await newWorker();
  const params = { path: { workerId } };
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const hook = must(await client.PUT('/api/workers/{workerId}/webhook', { params, body: { url } }));
  assert.equal(hook.url, url);
  const sample = must(await client.POST('/api/workers/{workerId}/webhook/test', { params }));
  assert.equal(sample.requestStatus, 'success');
  const list = must(await client.GET('/api/workers/{workerId}/webhook/executions', { params }));
  const answered: (number | null)[] = list.logs.map((l) => l.responseStatus);
  const reasons: (string | null)[] = list.logs.map((l) => l.errorMessage);
  assert.deepEqual([answered, reasons, list.totalCount], [[204], [null], 1]);
});

test('the rest that a client begins with', async () => {
  const me = must(await client.GET('/api/me'));
  assert.ok(me.user.email);
  const approvals = must(await client.GET('/api/approvals'));
  assert.deepEqual(approvals.items, []);
  const document = must(await client.GET('/api/openapi.json'));
  assert.equal(document.openapi, '3.1.0');
});
