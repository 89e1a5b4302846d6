// Runs tasks of the built program against an independent mock of the providers (aimock), in
// each of their wire formats: with calls of tools, reasoning, streams and failed tries.
//
//   node --test providers-check.mjs PROGRAM

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { LLMock } from '@copilotkit/aimock';

const program = process.env.PROGRAM;
assert.ok(program, 'PROGRAM names the built program');

// The mock implements only Ollama's chat: this server answers the other requests.
const show = {
  async handleRequest(req, res) {
    req.resume();
    res.setHeader('Content-Type', 'application/json');
    res.end(JSON.stringify({ capabilities: ['completion', 'tools'], model_info: { 'general.architecture': 'mock', 'mock.context_length': 65536 }, models: [] }));
    return true;
  },
};

let mock;
before(async () => {
  mock = new LLMock({ port: 0 });
  for (const path of ['/api/show', '/api/ps', '/api/tags', '/api/version']) mock.mount(path, show);
  await mock.start();
});
after(() => mock.stop());

const key = 'sk-mock-key-of-the-check';
const wires = {
  chat: () => ['openai:gpt-4o', { OPENAI_BASE_URL: `${mock.url}/v1`, OPENAI_API_KEY: key }],
  responses: () => ['openai:gpt-5', { OPENAI_BASE_URL: `${mock.url}/v1`, OPENAI_API_KEY: key, JOURNEYMAN_OPENAI_API: 'responses' }],
  openrouter: () => ['openai:anthropic/claude-sonnet-4.5', { OPENAI_BASE_URL: `${mock.url}/api/v1`, OPENAI_API_KEY: key, JOURNEYMAN_OPENAI_API: 'openrouter' }],
  anthropic: () => ['anthropic:claude-sonnet-4-5', { ANTHROPIC_BASE_URL: mock.url, ANTHROPIC_API_KEY: key }],
  ollama: () => ['ollama:qwen3:8b', { OLLAMA_HOST: mock.url }],
};

// run runs one task and returns the output of the program, and its exit status.
async function run(wire, instruction) {
  const [model, env] = wires[wire]();
  const data = mkdtempSync(join(tmpdir(), 'providers-'));
  try {
    const child = spawn(program, ['run', instruction, '--data', data, '--model', model, '--log-format', 'json'],
      { env: { PATH: process.env.PATH, HOME: data, NO_COLOR: '1', ...env }, stdio: ['ignore', 'pipe', 'pipe'], cwd: data, timeout: 30_000 });
    let out = '', log = '';
    child.stdout.on('data', (d) => (out += d));
    child.stderr.on('data', (d) => (log += d));
    const status = await new Promise((done) => child.on('close', done));
    assert.ok(!(out + log).includes(key), 'the key is nowhere');
    return { out, log, status };
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
}

// bodies returns the bodies of the requests whose conversation contains the instruction.
const bodies = (instruction) => mock.getRequests().map((r) => r.body).filter((b) => JSON.stringify(b ?? '').includes(instruction));

for (const wire of Object.keys(wires)) {
  test(`${wire}: a task writes and publishes a file`, async () => {
    const instruction = `Write the file for ${wire}.`;
    const call = (name, args) => [{ name, arguments: JSON.stringify(args) }];
    mock.on({ userMessage: instruction, turnIndex: 0 }, { toolCalls: call('write_file', { path: 'hello.txt', content: 'Hello äöü' }), reasoning: 'A file, then.' });
    mock.on({ userMessage: instruction, turnIndex: 1 }, { toolCalls: call('publish_file', { path: 'hello.txt' }) });
    mock.on({ userMessage: instruction, turnIndex: 2 }, { content: 'The file is **published**.' });
    const { out, log, status } = await run(wire, instruction);
    assert.equal(status, 0, out + log);
    assert.match(out, /The file is \*\*published\*\*\./);
    assert.match(out + log, /hello\.txt/);
    assert.equal(bodies(instruction).length, 3, 'no call is made twice');
  });

  test(`${wire}: calls side by side get their own results`, async () => {
    const instruction = `Look at both for ${wire}.`;
    mock.on({ userMessage: instruction, turnIndex: 0 }, { content: 'I look.', toolCalls: [
      { name: 'list_files', arguments: '{}' }, { name: 'read_file', arguments: '{"path":"missing.txt"}' }] });
    mock.on({ userMessage: instruction, turnIndex: 1 }, { content: 'One of them is missing.' });
    const { out, log, status } = await run(wire, instruction);
    assert.equal(status, 0, out + log);
    assert.match(out, /One of them is missing\./);
    const last = JSON.stringify(bodies(instruction).at(-1));
    assert.match(last, /missing\.txt/);
  });

  test(`${wire}: a server that is busy is asked again`, async () => {
    const instruction = `Try again for ${wire}.`;
    mock.on({ userMessage: instruction, sequenceIndex: 0 }, { error: { message: 'Overloaded', type: 'server_error' }, status: 503 });
    mock.on({ userMessage: instruction, sequenceIndex: 1 }, { error: { message: 'Slow down', type: 'rate_limit_error' }, status: 429 });
    mock.on({ userMessage: instruction }, { content: 'Here at last.' });
    const { out, log, status } = await run(wire, instruction);
    assert.equal(status, 0, out + log);
    assert.match(out, /Here at last\./);
  });

  test(`${wire}: an answer that breaks off is asked for again`, async () => {
    const instruction = `Break off for ${wire}.`;
    mock.on({ userMessage: instruction, sequenceIndex: 0 }, { content: 'This never comes to its end.' }, { chunkSize: 4, truncateAfterChunks: 3 });
    mock.on({ userMessage: instruction }, { content: 'This does.' });
    const { out, log, status } = await run(wire, instruction);
    assert.equal(status, 0, out + log);
    assert.match(out, /This does\./);
    assert.doesNotMatch(out, /never/);
  });

  test(`${wire}: an error of the request ends the task`, async () => {
    const instruction = `Be refused for ${wire}.`;
    mock.on({ userMessage: instruction }, { error: { message: 'No such thing here', type: 'invalid_request_error' }, status: 400 });
    const { out, log, status } = await run(wire, instruction);
    assert.notEqual(status, 0, out + log);
    assert.match(out + log, /No such thing here/);
  });
}

test('openrouter: the stated cost is what is charged', async () => {
  const instruction = 'Cost something.';
  mock.on({ userMessage: instruction }, { content: 'Done.', usage: { prompt_tokens: 3000, completion_tokens: 20, total_tokens: 3020, cost: 0.0123 } });
  const { out, log, status } = await run('openrouter', instruction);
  assert.equal(status, 0, out + log);
  assert.match(out + log, /3020 tokens, 1\.2300 credits/);
  const body = bodies(instruction)[0];
  assert.match(JSON.stringify(body), /"cache_control":\{"type":"ephemeral"\}/);
});
