// Tests a running server with the official MCP software: the TypeScript client lists and calls its
// workers, and they use the tools of the reference server.
//
//   node mcp-check.mjs BASE_URL API_KEY [PASSWORD]
//
// The server must have the offline model, no rate limit, and the reference server
// under the name "everything" (JOURNEYMAN_MODEL, JOURNEYMAN_RATE_LIMIT, JOURNEYMAN_MCP).
// PASSWORD is that of the owner (JOURNEYMAN_ADMIN_PASSWORD): with it the client also signs in
// by OAuth.

import assert from 'node:assert/strict';
import test from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [base, key, password] = process.argv.slice(2);
assert.ok(base && key, 'usage: node mcp-check.mjs BASE_URL API_KEY [PASSWORD]');

// json returns the answer to a request that must succeed.
async function json(method, path, body) {
  const response = await fetch(new URL(path, base), {
    method,
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(60_000),
  });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text);
}

// connect returns a client.
async function connect(t, authorization = `Bearer ${key}`) {
  const client = new Client({ name: 'mcp-check', version: '1.0.0' });
  await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', base), { requestInit: { headers: { Authorization: authorization } } }));
  t.after(() => client.close());
  return client;
}

const script = (...lines) => ['```offline', ...lines, '```'].join('\n');
const texts = (result) => result.content.filter((part) => part.type === 'text').map((part) => part.text).join('\n');

test('the client lists the tools, and one for each public worker', async (t) => {
  const worker = await json('POST', '/api/workers', { title: 'Weekly report', summary: 'Sums the week up.' });
  const client = await connect(t);
  const { tools } = await client.listTools();
  for (const name of ['run_worker', 'get_task', 'list_workers', `weekly_report_${worker.id.slice(4)}`]) {
    assert.ok(tools.some((tool) => tool.name === name), `${name} is missing of ${tools.map((tool) => tool.name)}`);
  }
});

test('the client runs a worker, with progress, and gets its files', async (t) => {
  const worker = await json('POST', '/api/workers', { title: 'Writer' });
  const client = await connect(t);
  const progress = [];
  const input = script('tool write_file {"path": "a.txt", "content": "hi"}', 'tool publish_file {"path": "a.txt"}', 'say Done.');
  const result = await client.callTool({ name: 'run_worker', arguments: { worker: worker.id, input } }, undefined,
    { onprogress: (p) => progress.push(p), resetTimeoutOnProgress: true });
  assert.ok(!result.isError, texts(result));
  assert.match(texts(result), /^Done\./);
  assert.equal(result.structuredContent.status, 'completed');
  assert.ok(progress.length > 0 && progress[0].message.includes(result.structuredContent.taskId));
  const link = result.content.find((part) => part.type === 'resource_link');
  const file = await fetch(link.uri, { headers: { Authorization: `Bearer ${key}` } });
  assert.equal(await file.text(), 'hi');
  const task = await client.callTool({ name: 'get_task', arguments: { task: result.structuredContent.taskId } });
  assert.equal(task.structuredContent.turnId, result.structuredContent.turnId);
});

test('a call that the client gives up goes on', async (t) => {
  const worker = await json('POST', '/api/workers', { title: 'Slow' });
  const client = await connect(t);
  const args = { worker: worker.id, task: `t-${Date.now()}`, input: script('wait 2s', 'say At last.') };
  await assert.rejects(client.callTool({ name: 'run_worker', arguments: args }, undefined, { timeout: 500 }), /timed out/i);
  const task = await client.callTool({ name: 'get_task', arguments: { task: args.task, waitSeconds: 30 } });
  assert.match(texts(task), /^At last\./);
});

test('what is wrong is told', async (t) => {
  const client = await connect(t);
  const missing = await client.callTool({ name: 'run_worker', arguments: { worker: 'wrk_none', input: 'x' } });
  assert.ok(missing.isError);
  await assert.rejects(client.callTool({ name: 'nothing', arguments: {} }), /unknown tool/);
  await assert.rejects(connect(t, 'Bearer jm_live_wrong_wrong_wrong_wrong'), /unauthorized|401|key/i);
});

test('a worker uses the tools of the reference server', async () => {
  const call = async (lines, mcpTools = ['everything']) => {
    const worker = await json('POST', '/api/workers', { title: 'Caller', mcpTools });
    const { output_text: text } = await json('POST', '/api/tasks', { workerId: worker.id, input: script(...lines, 'say {{last}}') });
    return text;
  };
  assert.match(await call(['tool everything__get-sum {"a": 2, "b": 40}']), /42/);
  assert.match(await call(['tool everything__echo {"message": "hi"}'], ['everything.echo']), /hi/);
  assert.match(await call(['tool everything__echo {"message": "hi"}'], []), /no tool/);
  assert.match(await call(['tool everything__get-sum {"a": 2, "b": 40}'], ['everything.echo']), /no tool/);
  assert.match(await call(['tool everything__get-structured-content {"location": "Chicago"}']), /"temperature"/);
  assert.match(await call(['tool everything__get-tiny-image {}']), /mcp\/everything\/get-tiny-image-[0-9a-f]+\.png/);
  assert.match(await call(['tool everything__trigger-long-running-operation {"duration": 1, "steps": 2}']), /completed/i);
  const env = await call(['tool everything__get-env {}']);
  assert.match(env, /PATH/);
  assert.doesNotMatch(env, /JOURNEYMAN/);
});

// post sends a form as a page of the dashboard does, and returns the address of the redirect.
async function post(path, cookie, form) {
  const response = await fetch(new URL(path, base), { method: 'POST', redirect: 'manual', body: new URLSearchParams(form),
    headers: { Cookie: cookie, 'Sec-Fetch-Site': 'same-origin', Accept: 'text/html' } });
  assert.equal(response.status, 303, `${path}: ${response.status} ${await response.text()}`);
  return { location: response.headers.get('location'), cookie: response.headers.get('set-cookie')?.split(';')[0] };
}

// A user signs in with a browser, and allows the client's request.
async function allow(url) {
  const { cookie } = await post('/sign-in', '', { email: 'owner@localhost', password });
  const page = await (await fetch(url, { headers: { Cookie: cookie, Accept: 'text/html' } })).text();
  const form = [...page.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)]
    .map(([, name, value]) => [name, value.replaceAll('&#43;', '+').replaceAll('&amp;', '&')]);
  assert.match(page, /mcp-check/);
  const { location } = await post('/oauth/authorize', cookie, [...form, ['decision', 'allow']]);
  return new URL(location).searchParams;
}

test('the client gets access by OAuth, renews it, and is refused when it is revoked', { skip: !password }, async (t) => {
  const known = {};
  const provider = {
    redirectUrl: 'http://127.0.0.1:9/callback',
    clientMetadata: { client_name: 'mcp-check', redirect_uris: ['http://127.0.0.1:9/callback'], token_endpoint_auth_method: 'none' },
    state: () => 'a state',
    clientInformation: () => known.client,
    saveClientInformation: (client) => { known.client = client; },
    tokens: () => known.tokens,
    saveTokens: (tokens) => { known.tokens = tokens; },
    redirectToAuthorization: (url) => { known.url = url; },
    saveCodeVerifier: (verifier) => { known.verifier = verifier; },
    codeVerifier: () => known.verifier,
  };
  const endpoint = new URL('/mcp', base);
  const open = async () => {
    const client = new Client({ name: 'mcp-check', version: '1.0.0' });
    const transport = new StreamableHTTPClientTransport(endpoint, { authProvider: provider });
    t.after(() => client.close());
    await client.connect(transport);
    return client;
  };
  await assert.rejects(open(), /unauthorized/i);
  const answer = await allow(known.url);
  assert.equal(answer.get('state'), 'a state');
  await new StreamableHTTPClientTransport(endpoint, { authProvider: provider }).finishAuth(answer.get('code'));
  const client = await open();
  const worker = await json('POST', '/api/workers', { title: 'By OAuth' });
  const result = await client.callTool({ name: 'run_worker', arguments: { worker: worker.id, input: script('say Hello.') } });
  assert.match(texts(result), /^Hello\./);

  const first = known.tokens;
  known.tokens = { ...first, access_token: 'jm_oauth_expired' }; // an expired token
  await open();
  assert.notEqual(known.tokens.refresh_token, first.refresh_token);
  assert.equal((await fetch(new URL('/api/me', base), { headers: { Authorization: `Bearer ${known.tokens.access_token}` } })).status, 401);

  const revoked = await fetch(new URL('/oauth/revoke', base), { method: 'POST',
    body: new URLSearchParams({ client_id: known.client.client_id, token: known.tokens.refresh_token }) });
  assert.equal(revoked.status, 200);
  await assert.rejects(open(), /revoked|unauthorized/i);
});
