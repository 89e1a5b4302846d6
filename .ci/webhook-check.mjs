// Checks the webhook deliveries of a running server with the Standard Webhooks library: it must
// verify each delivery, and no other.
//
//   node webhook-check.mjs BASE_URL API_KEY
//
// The server must have the offline model, no rate limit, and permission to reach this machine
// (JOURNEYMAN_MODEL, JOURNEYMAN_RATE_LIMIT, JOURNEYMAN_ALLOW_PRIVATE_NETWORK).

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import test from 'node:test';
import { Webhook } from 'standardwebhooks';

const [base, key] = process.argv.slice(2);
assert.ok(base && key, 'usage: node webhook-check.mjs BASE_URL API_KEY');
const seconds = 60; // for each request

// json returns the answer to a request that must succeed.
async function json(method, path, body) {
  const response = await fetch(new URL(path, base), {
    method,
    headers: { Authorization: `Bearer ${key}`, ...(body && { 'Content-Type': 'application/json' }) },
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(seconds * 1000),
  });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text);
}

// receive starts an endpoint that answers with the statuses in order, the last one repeatedly. Each
// call of next() returns the next delivery.
async function receive(t, ...statuses) {
  const got = [];
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    got.push({ headers: request.headers, body: Buffer.concat(chunks).toString() });
    response.writeHead(statuses.length > 1 ? statuses.shift() : statuses[0]).end();
    server.emit('delivery');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close().closeAllConnections());
  let read = 0;
  const next = async () => {
    while (got.length <= read) await once(server, 'delivery', { signal: AbortSignal.timeout(seconds * 1000) });
    return got[read++];
  };
  return { url: `http://127.0.0.1:${server.address().port}/hook`, next };
}

// hooked creates a worker with the webhook url.
async function hooked(url) {
  const { id } = await json('POST', '/api/workers', {});
  return { path: `/api/workers/${id}`, id, hook: await json('PUT', `/api/workers/${id}/webhook`, { url }) };
}

test('the library verifies a delivery', async (t) => {
  const { url, next } = await receive(t, 204);
  const { id, hook } = await hooked(url);
  const run = await json('POST', '/api/tasks', { workerId: id, input: '```offline\nsay Grüße, "quoted" \\ and 日本.\n```' });
  const { headers, body } = await next();
  assert.equal(headers['x-service-token'], hook.token);
  assert.match(headers['user-agent'], /^Journeyman\/\d/);
  assert.equal(headers['content-type'], 'application/json');
  const event = new Webhook(hook.signingSecret).verify(body, headers); // throws unless the delivery is genuine
  assert.equal(event.id, headers['webhook-id']);
  assert.equal(event.type, 'task.completed');
  assert.equal(event.task.id, run.metadata.taskId);
  assert.equal(event.turn.outputText, 'Grüße, "quoted" \\ and 日本.');
  assert.deepEqual(event.worker, run);
});

test('the library verifies that a turn waits for a person', async (t) => {
  const { url, next } = await receive(t, 204);
  const { id, hook } = await hooked(url);
  const asked = json('POST', '/api/tasks', {
    workerId: id, input: '```offline\ntool ask_user {"question": "Which?", "choices": ["red", "blue"]}\nsay It is {{last}}\n```',
  });
  const verified = async () => {
    const { headers, body } = await next();
    return new Webhook(hook.signingSecret).verify(body, headers);
  };
  const event = await verified();
  assert.equal(event.type, 'task.waiting');
  assert.deepEqual([event.task.status, event.turn.status, event.worker.status], ['running', 'running', 'running']);
  assert.equal(event.task.waitingFor.for, 'person');
  const [question] = event.waiting.approvals;
  assert.deepEqual([question.kind, question.question, question.choices], ['question', 'Which?', ['red', 'blue']]);
  await json('POST', `/api/tasks/${event.task.id}/approvals/${question.id}`, { answer: 'blue' });
  assert.equal((await asked).output_text, 'It is {"answer":"blue"}');
  assert.equal((await verified()).type, 'task.completed');
});

test('the library refuses what is not genuine', async (t) => {
  const { url, next } = await receive(t, 200);
  const { id, path, hook } = await hooked(url);
  await json('POST', '/api/tasks', { workerId: id, input: 'Hello' });
  const { headers, body } = await next();
  const library = new Webhook(hook.signingSecret);
  library.verify(body, headers);
  assert.throws(() => library.verify(body.replace('completed', 'fulfilled'), headers));
  assert.throws(() => library.verify(body, { ...headers, 'webhook-id': 'evt_another' }));
  assert.throws(() => library.verify(body, { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) + 1) }));
  const renewed = await json('POST', `${path}/webhook/regenerate-token`);
  assert.throws(() => new Webhook(renewed.signingSecret).verify(body, headers));
  await json('POST', `${path}/webhook/test`);
  const sample = await next();
  assert.equal(sample.headers['x-service-token'], renewed.token);
  assert.equal(new Webhook(renewed.signingSecret).verify(sample.body, sample.headers).test, true);
  assert.throws(() => library.verify(sample.body, sample.headers));
});

test('a retry and a redelivery have the same id and their own signature', async (t) => {
  const { url, next } = await receive(t, 503, 200);
  const { id, path, hook } = await hooked(url);
  await json('POST', '/api/tasks', { workerId: id, input: 'Hello' });
  const first = await next();
  const again = await next(); // about five seconds later
  const { logs } = await json('GET', `${path}/webhook/executions`);
  await json('POST', `${path}/webhook/executions/${logs.at(-1).id}/redeliver`);
  const third = await next();
  const library = new Webhook(hook.signingSecret);
  for (const { headers, body } of [first, again, third]) {
    assert.equal(library.verify(body, headers).id, first.headers['webhook-id']);
  }
  assert.notEqual(first.headers['webhook-signature'], again.headers['webhook-signature']);
  const { logs: all, totalCount } = await json('GET', `${path}/webhook/executions`);
  assert.equal(totalCount, 3);
  assert.deepEqual(all.map((e) => e.requestStatus), ['success', 'success', 'error']);
});
