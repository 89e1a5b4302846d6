// Checks the event stream of a running server: the AI SDK's readers must accept it unchanged, and
// build the messages of `messages` from it.
//
//   node stream-check.mjs BASE_URL API_KEY
//
// The server must have the offline model and no rate limit (JOURNEYMAN_MODEL,
// JOURNEYMAN_RATE_LIMIT): the tasks are scripts.

import assert from 'node:assert/strict';
import test from 'node:test';
import * as read from './stream-readers.mjs';

const [base, key] = process.argv.slice(2);
assert.ok(base && key, 'usage: node stream-check.mjs BASE_URL API_KEY');
const seconds = 60; // for each request
const authorization = { Authorization: `Bearer ${key}` };

// call sends a request and returns the response, with any status.
function call(method, path, body, headers = {}) {
  const form = body instanceof FormData;
  return fetch(new URL(path, base), {
    method,
    headers: { ...authorization, ...(body && !form && { 'Content-Type': 'application/json' }), ...headers },
    body: form ? body : body && JSON.stringify(body),
    signal: AbortSignal.timeout(seconds * 1000),
  });
}

// json returns the answer to a request that must succeed.
async function json(method, path, body) {
  const response = await call(method, path, body);
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text);
}

// stream returns a whole event stream that the server must end.
async function stream(method, path, body, headers) {
  const response = await call(method, path, body, headers);
  if (!response.ok) assert.fail(`${method} ${path}: ${response.status} ${await response.text()}`);
  read.checkHeaders(response);
  return response.text();
}

const script = (...lines) => ['```offline', ...lines, '```'].join('\n');

// found returns the ids and the run of the turn in a stream.
async function found(events) {
  const { taskId, turnId } = events.find(({ chunk }) => chunk.type === 'start').chunk.messageMetadata;
  const { task } = await json('GET', `/api/tasks/${taskId}`);
  const run = await json('GET', `/api/workers/${task.workerId}?taskId=${taskId}`);
  return { taskId, turnId, task, run, path: `/api/workers/${task.workerId}` };
}

const types = (events) => events.map(({ chunk }) => chunk.type);
const only = (events, type) => events.map(({ chunk }) => chunk).filter((chunk) => chunk.type === type);

// checkProtocol checks the rules that the schemas do not express, in the stream of one turn.
function checkProtocol(events) {
  const plain = types(events).filter((type) => !type.startsWith('data-'));
  assert.equal(plain[0], 'start');
  assert.equal(plain.at(-1), 'finish');
  assert.equal(plain.filter((type) => type === 'start').length, 1, 'one start');
  assert.equal(plain.filter((type) => type === 'start-step').length, plain.filter((type) => type === 'finish-step').length, 'each step ends');
  for (const { chunk } of events) {
    if (chunk.type.startsWith('data-')) assert.equal(chunk.transient, true, `${chunk.type} is transient`);
    if (/^tool-.*(start|available|error)$/.test(chunk.type)) assert.equal(chunk.dynamic, true, `${chunk.type} is dynamic`);
  }
}

// checkTurn checks the stream of one turn, and returns the facts about the turn.
async function checkTurn(text, { errors = [] } = {}) {
  const events = read.finished(text);
  checkProtocol(events);
  assert.ok(!types(events).includes('data-user-message'), 'a sender is not told its own message');
  for (const ai of [...Object.values(read.readers), ...Object.values(read.strictReaders)]) {
    await read.checkSchema(ai, text);
    assert.deepEqual(read.plain(await read.transported(ai, text)), events.map(({ chunk }) => chunk), 'what the transport gives');
  }
  const turn = await found(events);
  const stored = turn.run.messages.filter((message) => message.metadata.turnId === turn.turnId);
  assert.deepEqual(stored.map((message) => message.role), ['user', 'assistant']);
  for (const [name, ai] of Object.entries(read.readers)) {
    const built = await read.build(ai, text);
    assert.deepEqual(built.errors, errors, `errors told by ${name}`);
    assert.deepEqual(built.messages, [stored[1]], `what ${name} builds`);
  }
  await checkMessages(turn.run.messages);
  return { ...turn, events, message: stored[1] };
}

// checkMessages checks that the versions accept the stored messages as a conversation that another
// model could continue.
async function checkMessages(messages) {
  for (const [name, ai] of Object.entries({ ...read.readers, ...read.strictReaders })) {
    const valid = await ai.validateUIMessages({ messages: structuredClone(messages) });
    if (name in read.readers) assert.deepEqual(read.plain(valid), messages, `${name} keeps every field`);
    const converted = await ai.convertToModelMessages(messages);
    const calls = converted.flatMap(({ role, content }) => (role === 'assistant' ? content.filter(({ type }) => type === 'tool-call') : []));
    const results = converted.flatMap(({ role, content }) => (role === 'tool' ? content : []));
    assert.deepEqual(results.map((part) => part.toolCallId), calls.map((part) => part.toolCallId), 'every tool call has its result');
  }
}

// turnOf runs an input on a new worker and checks its stream.
const turnOf = async (body, expected) => checkTurn(await stream('POST', '/api/workers', { stream: true, ...body }), expected);

const partTypes = (message) => message.parts.map((part) => part.type);
const textOf = (message) => message.parts.filter(({ type }) => type === 'text').map(({ text }) => text).join('\n');

test('text comes in pieces', async () => {
  const { events, message } = await turnOf({ input: script('say one two three') });
  assert.ok(only(events, 'text-delta').length > 1);
  assert.deepEqual(partTypes(message), ['step-start', 'text']);
  assert.equal(textOf(message), 'one two three');
  const [finish] = only(events, 'finish');
  assert.equal(finish.finishReason, 'stop');
  assert.ok(finish.messageMetadata.usage.outputTokens > 0);
});

test('an input without a script', async () => {
  const { message } = await turnOf({ input: 'Say something about lighthouses.', instructions: 'You are brief.' });
  assert.notEqual(textOf(message), '');
});

test('reasoning, tools, a published file', async () => {
  const { events, message } = await turnOf({
    input: script('think first this', 'say writing', 'tool write_file {"path":"notes/a.txt","content":"hello"}',
      'think then that', 'tool publish_file {"path":"notes/a.txt"}', 'say done'),
  });
  assert.deepEqual(partTypes(message), ['step-start', 'reasoning', 'text', 'dynamic-tool', 'step-start', 'reasoning', 'dynamic-tool', 'step-start', 'text', 'file']);
  assert.ok(message.parts.every((part) => part.type !== 'dynamic-tool' || part.state === 'output-available'));
  const reasoning = message.parts.filter(({ type }) => type === 'reasoning').map(({ id }) => id);
  assert.equal(new Set(reasoning).size, 2, 'reasoning ids differ');
  assert.equal(only(events, 'file').length, 1);
});

test('tools that fail', async () => {
  const { message } = await turnOf({
    input: script('tool read_file {"path":"nowhere.txt"}', 'tool no_such_tool {"a":1}', 'tool read_file {"path":"../../etc/passwd"}', 'say still here'),
  });
  const states = message.parts.filter(({ type }) => type === 'dynamic-tool').map(({ state }) => state);
  assert.deepEqual(states, ['output-error', 'output-error', 'output-error']);
});

test('arguments and text made to break readers', async () => {
  const { message } = await turnOf({
    input: script('tool write_file {"path":"a.txt","content":"x","__proto__":{"polluted":true}}',
      'tool write_file {"path":"b.txt","content":"x","constructor":{"prototype":{"polluted":true}}}',
      'tool write_file {"path":"c.txt","content":"{\\"__proto__\\":1}\\u2028\\u0000\\n\\ndata: [DONE]\\n\\n"}',
      'say data: [DONE] \u2028 id: 7 🚀🏴󠁧󠁢󠁥󠁮󠁧󠁿 e\u0301 漢字 </script>'),
  });
  assert.match(textOf(message), /data: \[DONE\] \u2028 id: 7 🚀🏴󠁧󠁢󠁥󠁮󠁧󠁿 e\u0301 漢字 <\/script>/u);
  assert.equal({}.polluted, undefined);
});

test('a structured answer', async () => {
  const { run } = await turnOf({
    input: script('json {"name":"Ada","age":36}'),
    outputSchema: { type: 'object', properties: { name: { type: 'string' }, age: { type: 'integer' } }, required: ['name', 'age'] },
  });
  assert.deepEqual(run.structured_output, { name: 'Ada', age: 36 });
});

test('a model that fails in the middle of a text', async () => {
  const { events, run } = await turnOf({ input: script('say half of it', 'fail bad_request no such luck') }, { errors: ['no such luck'] });
  assert.equal(run.error.message, 'no such luck');
  assert.equal(only(events, 'finish')[0].finishReason, 'error');
});

test('a script that cannot be read', async () => {
  const text = await stream('POST', '/api/workers', { input: script('dance'), stream: true });
  const [error] = only(read.finished(text), 'error');
  await checkTurn(text, { errors: [error.errorText] });
});

test('a turn that is cancelled while it streams', async () => {
  const response = await call('POST', '/api/workers', { input: script('say before', 'tool list_files {}', 'say some words', 'wait 50s', 'say never'), stream: true });
  read.checkHeaders(response);
  let text = '';
  let cancelled = false;
  for await (const piece of read.iterate(response.body.pipeThrough(new TextDecoderStream()))) {
    text += piece;
    if (cancelled || !text.includes('"finish-step"')) continue;
    cancelled = true;
    const begun = text.slice(0, text.lastIndexOf('\n\n') + 2);
    const { taskId, run } = await found(read.withChunks(read.parse(begun)));
    assert.equal(run.running, true, 'events come while the turn runs');
    await json('POST', `/api/tasks/${taskId}/cancel`);
  }
  assert.ok(cancelled, text);
  const { events, run } = await checkTurn(text);
  assert.equal(only(events, 'abort').length, 1);
  assert.equal(run.metadata.taskStatus, 'aborted');
});

test('an attachment', async () => {
  const form = new FormData();
  form.set('input', script('say seen'));
  form.set('stream', 'true');
  form.set('attachment', new Blob(['a,b\n1,2\n'], { type: 'text/csv' }), 'table.csv');
  const { run } = await checkTurn(await stream('POST', '/api/tasks', form));
  assert.deepEqual(partTypes(run.messages[0]), ['text', 'file']);
});

test('two turns of a task, replayed', async () => {
  const first = await turnOf({ input: script('say one', 'tool list_files {}', 'say two') });
  const second = await checkTurn(await stream('POST', first.path, { input: script('say three'), stream: true }));
  assert.equal(second.taskId, first.taskId, 'the same task goes on');
  const messages = second.run.messages;
  for (const [query, headers] of [['?stream=true', {}], [`?taskId=${first.taskId}`, { Accept: 'text/event-stream' }]]) {
    const text = await stream('GET', first.path + query, undefined, headers);
    const events = read.finished(text);
    assert.deepEqual(only(events, 'data-user-message').map(({ data }) => data), messages.filter(({ role }) => role === 'user'));
    for (const ai of Object.values(read.strictReaders)) await read.checkSchema(ai, text);
    for (const [name, ai] of Object.entries(read.readers)) {
      const built = await read.build(ai, text);
      assert.deepEqual(built, { messages: messages.filter(({ role }) => role === 'assistant'), errors: [] }, `what ${name} builds`);
    }
  }
});

test('a reader that comes back after any event', async () => {
  const turn = await turnOf({ input: script('think hm', 'say one two three', 'tool write_file {"path":"a.txt","content":"x"}', 'say four five') });
  const path = `${turn.path}?stream=true&taskId=${turn.taskId}`;
  for (const [index, { id }] of turn.events.entries()) {
    const rest = read.finished(await stream('GET', path, undefined, { 'Last-Event-ID': id }));
    const whole = read.sse([...turn.events.slice(0, index + 1), ...rest]);
    read.finished(whole); // no id occurs twice
    for (const [name, ai] of Object.entries(read.readers)) {
      const built = await read.build(ai, whole);
      assert.deepEqual(built, { messages: [turn.message], errors: [] }, `what ${name} builds after coming back at event ${index}`);
    }
  }
  const last = turn.events.at(-1).id;
  assert.deepEqual(read.finished(await stream('GET', path, undefined, { 'Last-Event-ID': last })), [], 'nothing is left');
  assert.deepEqual(read.finished(await stream('GET', `${path}&lastEventId=${encodeURIComponent(last)}`)), [], 'nothing is left, by the query');
  const all = await stream('GET', path);
  assert.equal(await stream('GET', path, undefined, { 'Last-Event-ID': 'no-such-id' }), all, 'an unknown id replays everything');
});

// wideEvents reads the worker-wide stream of a response until enough returns true.
async function wideEvents(response, enough) {
  read.checkHeaders(response);
  let text = '';
  for await (const piece of read.iterate(response.body.pipeThrough(new TextDecoderStream()))) {
    text += piece;
    const events = read.withChunks(read.parse(text.slice(0, text.lastIndexOf('\n\n') + 2) || ':\n\n'));
    if (enough(events)) return events;
  }
  return assert.fail(`the stream ended: ${text}`);
}

test('the stream of all of a worker', async () => {
  const worker = await json('POST', '/api/workers', { title: 'Watched' });
  const path = `/api/workers/${worker.id}`;
  const ended = (events) => types(events).includes('finish');
  const open = await call('GET', `${path}/stream`);
  const watching = wideEvents(open, ended);
  const run = await json('POST', '/api/tasks', { workerId: worker.id, input: script('say one two', 'tool list_files {}', 'say three') });
  const events = await watching;
  const { taskId, turnId } = run.metadata;
  for (const { chunk } of events) assert.deepEqual([chunk.taskId, chunk.turnId], [taskId, turnId], JSON.stringify(chunk));
  assert.equal(only(events, 'data-user-message').length, 1);
  const message = run.messages.at(-1);
  for (const [name, ai] of Object.entries(read.readers)) {
    assert.deepEqual(await read.build(ai, read.sse(events)), { messages: [message], errors: [] }, `what ${name} builds`);
  }
  const middle = Math.floor(events.length / 2);
  const back = await call('GET', `${path}/stream`, undefined, { 'Last-Event-ID': events[middle].id });
  const rest = await wideEvents(back, ended);
  for (const ai of Object.values(read.readers)) {
    const built = await read.build(ai, read.sse([...events.slice(0, middle + 1), ...rest]));
    assert.deepEqual(built, { messages: [message], errors: [] }, 'after coming back');
  }
});

// pendingApprovals returns the waiting approvals of a task, once there are as many as expected.
async function pendingApprovals(path, count) {
  for (const begun = Date.now(); Date.now() - begun < seconds * 1000; await new Promise((next) => setTimeout(next, 20))) {
    const run = await json('GET', path);
    const pending = run.metadata.pendingApprovals ?? [];
    if (pending.length === count) return { run, pending, taskId: run.metadata.taskId };
  }
  return assert.fail(`${count} calls never waited for an approval`);
}

const decide = (taskId, { id }, approved, reason) => json('POST', `/api/tasks/${taskId}/approvals/${id}`, { approved, reason });

// careful creates a worker whose writes need approval, and returns its path.
async function careful() {
  const worker = await json('POST', '/api/workers', { approvalTools: ['write_file'] });
  return `/api/workers/${worker.id}`;
}

const twoWrites = script('tool write_file {"path":"a.txt","content":"x"}', 'say and', 'tool write_file {"path":"b.txt","content":"y"}', 'say done');

test('a turn that rests for approvals, read by those who do not know them', async () => {
  const path = await careful();
  const reading = stream('POST', path, { input: twoWrites, stream: true });
  const first = await pendingApprovals(path, 1);
  assert.equal(first.run.messages[1].parts[1].state, 'input-available');
  await checkSchemaOf(first.run.messages);
  await decide(first.taskId, first.pending[0], true, 'fine');
  const { taskId, pending } = await pendingApprovals(path, 1);
  assert.notEqual(pending[0].id, first.pending[0].id);
  await decide(taskId, pending[0], false, 'not that');
  const { events, message } = await checkTurn(await reading);
  assert.deepEqual(only(events, 'data-approval').map(({ data }) => [data.approvalId, data.status, data.reason]), [
    [first.pending[0].id, 'pending', undefined], [first.pending[0].id, 'approved', 'fine'],
    [pending[0].id, 'pending', undefined], [pending[0].id, 'denied', 'not that'],
  ]);
  assert.deepEqual(message.parts.filter(({ type }) => type === 'dynamic-tool').map(({ state }) => state), ['output-available', 'output-error']);
});

// checkSchemaOf makes the versions validate the messages of a suspended turn.
async function checkSchemaOf(messages, versions = { ...read.readers, ...read.strictReaders }) {
  for (const ai of Object.values(versions)) await ai.validateUIMessages({ messages: structuredClone(messages) });
}

// The decisions on two calls: each outcome with and without a reason.
const decisions = [[[true, 'fine'], [false, 'not that']], [[false, undefined], [true, undefined]]];

// approvalsOf returns what the assistant's message in a version's form tells about approvals.
const approvalsOf = {
  5: () => [],
  6: (message) => message.parts.filter(({ type }) => type === 'data-approval').map(({ data }) => [data.approvalId, data.status === 'approved', data.reason]),
  7: (message) => message.parts.filter(({ approval }) => approval).map(({ approval }) => [approval.id, approval.approved, approval.reason]),
};

// checkBuilt checks that a version builds exactly a message from a stream, and accepts it.
async function checkBuilt(ai, text, message, what) {
  const built = await read.build(ai, text);
  assert.deepEqual(built, { messages: [message], errors: [] }, what);
  const valid = await ai.validateUIMessages({ messages: structuredClone(built.messages) });
  assert.deepEqual(read.plain(valid), [message], `${what}, validated`);
}

for (const [sdk, versions] of Object.entries(read.bySdk)) {
  for (const decided of decisions) {
    test(`approvals for a reader with aiSdk=${sdk}, decided ${JSON.stringify(decided)}`, async () => {
      const [newest] = versions;
      const path = await careful();
      const asked = `${path}?aiSdk=${sdk}`;
      const reading = stream('POST', asked, { input: twoWrites, stream: true });
      const expected = [];
      let taskId;
      for (const [approved, reason] of decided) {
        const waiting = await pendingApprovals(asked, 1);
        taskId = waiting.taskId;
        await checkSchemaOf(waiting.run.messages, versions);
        expected.push([waiting.pending[0].id, approved, reason]);
        await decide(taskId, waiting.pending[0], approved, reason);
      }
      const text = await reading;
      const events = read.finished(text);
      const stored = (await json('GET', asked)).messages;
      await checkSchemaOf(stored, versions);
      assert.deepEqual(approvalsOf[sdk](stored[1]), sdk === '5' ? [] : expected);
      for (const ai of versions) {
        await read.checkSchema(ai, text);
        assert.equal((await read.transported(ai, text)).length, events.length, 'all chunks are transported');
        const converted = await ai.convertToModelMessages(stored);
        const results = converted.flatMap(({ role, content }) => (role === 'tool' ? content.filter(({ type }) => type === 'tool-result') : []));
        const calls = stored[1].parts.filter(({ type }) => type === 'dynamic-tool');
        assert.deepEqual(results.map(({ toolCallId }) => toolCallId), calls.map(({ toolCallId }) => toolCallId), 'every tool call has its result');
      }
      await checkBuilt(newest, text, stored[1], 'live');
      const whole = `${asked}&stream=true&taskId=${taskId}`;
      await checkBuilt(newest, await stream('GET', whole), stored[1], 'a replay');
      for (const [index, { id }] of events.entries()) { // reconnecting after any event, also during suspensions
        const rest = read.finished(await stream('GET', whole, undefined, { 'Last-Event-ID': id }));
        await checkBuilt(newest, read.sse([...events.slice(0, index + 1), ...rest]), stored[1], `after event ${index}`);
      }
    });
  }
}

test('a call whose turn is cancelled before its decision', async () => {
  for (const [sdk, versions] of Object.entries(read.bySdk)) {
    const path = `${await careful()}?aiSdk=${sdk}`;
    const reading = stream('POST', path, { input: twoWrites, stream: true });
    const { taskId } = await pendingApprovals(path, 1);
    await json('POST', `/api/tasks/${taskId}/cancel`);
    const text = await reading;
    const { messages } = await json('GET', path);
    await checkSchemaOf(messages, versions);
    await checkBuilt(versions[0], text, messages[1], `aiSdk=${sdk}`);
    await checkBuilt(versions[0], await stream('GET', `${path}&stream=true&taskId=${taskId}`), messages[1], `aiSdk=${sdk}, a replay`);
  }
});

for (const [sdk, [ai]] of Object.entries(read.bySdk).filter(([sdk]) => sdk !== '5')) {
  test(`useChat of version ${sdk} shows approvals, which its user decides through the API`, async () => {
    const path = await careful();
    const chat = read.chat(ai, {
      api: new URL(`${path}?aiSdk=${sdk}`, base).href,
      headers: authorization,
      prepareSendMessagesRequest: ({ messages }) => ({ body: { input: messages.at(-1).parts[0].text, stream: true } }),
    });
    const waits = {
      6: (part, id) => part.type === 'data-approval' && part.id === id && part.data.status === 'pending',
      7: (part, id) => part.state === 'approval-requested' && part.approval.id === id,
    };
    const sending = chat.sendMessage({ text: twoWrites });
    for (const approved of [true, false]) {
      const { taskId, pending } = await pendingApprovals(path, 1);
      while (!chat.messages.at(-1)?.parts.some((part) => waits[sdk](part, pending[0].id))) await new Promise((next) => setTimeout(next, 10));
      await decide(taskId, pending[0], approved, 'because');
    }
    await sending;
    assert.equal(chat.status, 'ready', chat.error?.stack);
    const { messages } = await json('GET', `${path}?aiSdk=${sdk}`);
    assert.deepEqual(read.plain(chat.messages.at(-1)), messages.at(-1), 'the chat holds what is stored');
    await checkSchemaOf(read.plain(chat.messages), [ai]);
  });
}

for (const [name, ai] of Object.entries(read.readers)) {
  test(`useChat of ${name}, from its first message to a reload`, async () => {
    const worker = await json('POST', '/api/workers', {});
    const api = new URL(`/api/workers/${worker.id}`, base).href;
    const transport = {
      api,
      headers: authorization,
      prepareSendMessagesRequest: ({ messages }) => ({ body: { input: messages.at(-1).parts[0].text, stream: true } }),
      prepareReconnectToStreamRequest: () => ({ api: `${api}?stream=true` }),
    };
    const chat = read.chat(ai, transport);
    await chat.sendMessage({ text: script('think hm', 'say hello', 'tool list_files {}', 'say bye') });
    assert.equal(chat.status, 'ready', chat.error?.stack);
    const first = await json('GET', `/api/workers/${worker.id}`);
    assert.deepEqual(read.plain(chat.messages.at(-1)), first.messages.at(-1));

    const reloaded = read.chat(ai, transport);
    await reloaded.resumeStream();
    assert.equal(reloaded.status, 'ready', reloaded.error?.stack);
    assert.deepEqual(read.plain(reloaded.messages), [first.messages.at(-1)]);

    await chat.sendMessage({ text: script('say again') });
    assert.equal(chat.status, 'ready', chat.error?.stack);
    const second = await json('GET', `/api/workers/${worker.id}`);
    assert.deepEqual(chat.messages.filter(({ role }) => role === 'assistant').map(read.plain), second.messages.filter(({ role }) => role === 'assistant'));

    await chat.sendMessage({ text: script('fail bad_request no such luck') });
    assert.equal(chat.status, 'error');
    assert.equal(chat.error.message, 'no such luck');
  });
}
