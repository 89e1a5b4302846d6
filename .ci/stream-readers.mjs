// The clients of the event stream: a reader by the rules of server-sent events, and the AI SDK in
// each supported version. Used by stream-check.mjs.

import assert from 'node:assert/strict';
import * as ai5 from 'ai5';
import * as ai6 from 'ai6';
import * as strict from 'ai6strict';
import * as ai7 from 'ai7';

// The versions whose readers must build the messages of `messages`.
export const readers = { 'ai 5.0.277': ai5, 'ai 6.0.326': ai6, 'ai 7.0.173': ai7 };

// These versions refuse fields that the protocol does not name. Their readers build other messages
// (without ids of reasoning), so they only check chunks.
export const strictReaders = { 'ai 6.0.0': strict };

// The versions by the aiSdk that their readers send. The first one of each must build the messages of
// `messages`, all must accept the chunks and the messages.
export const bySdk = { 5: [ai5], 6: [ai6, strict], 7: [ai7] };

// The headers of the AI SDK's own servers.
const headers = {
  'content-type': /^text\/event-stream(; ?charset=utf-8)?$/,
  'cache-control': /no-cache|no-store/,
  'x-vercel-ai-ui-message-stream': /^v1$/,
};

export function checkHeaders(response) {
  assert.equal(response.status, 200, `status of ${response.url}`);
  for (const [name, pattern] of Object.entries(headers)) {
    assert.match(response.headers.get(name) ?? '(none)', pattern, `header ${name}`);
  }
}

// parse returns the events of a stream. It refuses anything that an EventSource or another reader
// could read differently: event names, several data lines, an incomplete end.
export function parse(text) {
  assert.ok(!text.includes('\r'), 'lines end with LF');
  assert.ok(text.endsWith('\n\n'), 'the last event is complete');
  const events = [];
  for (const block of text.slice(0, -2).split('\n\n')) {
    const lines = block.split('\n').filter((line) => !line.startsWith(':'));
    if (lines.length === 0) continue; // a heartbeat
    const fields = lines.map((line) => line.match(/^(id|data): ([^]*)$/) ?? assert.fail(`not an id or data line: ${line}`));
    const names = fields.map(([, name]) => name).join();
    const event = Object.fromEntries(fields.map(([, name, value]) => [name, value]));
    assert.ok(names === 'id,data' || (names === 'data' && event.data === '[DONE]'), `lines of an event: ${names}`);
    events.push(event);
  }
  return events;
}

// finished returns the events of a closed stream without [DONE], each with its chunk.
export function finished(text) {
  const events = parse(text);
  assert.equal(events.pop()?.data, '[DONE]', 'the last event');
  return withChunks(events);
}

export function withChunks(events) {
  const ids = events.map((event) => event.id);
  assert.equal(new Set(ids).size, ids.length, 'each event has an id of its own');
  return events.map((event) => ({ ...event, chunk: JSON.parse(event.data) }));
}

const body = (text) => new Response(text).body;

export const sse = (events) => events.map(({ id, data }) => `id: ${id}\ndata: ${data}\n\n`).join('') + 'data: [DONE]\n\n';

// checkSchema validates each chunk with a version's schema.
export async function checkSchema(ai, text) {
  const results = ai.parseJsonEventStream({ stream: body(text), schema: ai.uiMessageChunkSchema });
  for await (const result of iterate(results)) {
    assert.ok(result.success, `refused: ${JSON.stringify(result.rawValue)}: ${result.error}`);
  }
}

// transported returns the chunks of useChat's transport. It throws at the first one that the
// version's schema refuses.
export async function transported(ai, text) {
  const transport = new ai.DefaultChatTransport({ api: 'http://localhost/', fetch: async () => new Response(text) });
  const stream = await transport.sendMessages({ chatId: 'c', messages: [], trigger: 'submit-message' });
  const chunks = [];
  for await (const chunk of iterate(stream)) chunks.push(chunk);
  return chunks;
}

// build returns the messages that a version's readUIMessageStream builds from a stream, in the
// order of their beginnings, and the errors that it received.
export async function build(ai, text) {
  const results = ai.parseJsonEventStream({ stream: body(text), schema: ai.uiMessageChunkSchema });
  const chunks = results.pipeThrough(new TransformStream({ transform: (result, out) => out.enqueue(result.value) }));
  const errors = [];
  const messages = new Map();
  for await (const message of ai.readUIMessageStream({ stream: chunks, onError: (error) => errors.push(error.message) })) {
    messages.set(message.id, message);
  }
  return { messages: [...messages.values()].map(plain), errors };
}

// chat is the class of useChat with a plain state, without React.
export function chat(ai, transport) {
  class State {
    messages = [];
    status = 'ready';
    error = undefined;
    pushMessage = (message) => { this.messages = [...this.messages, message]; };
    popMessage = () => { this.messages = this.messages.slice(0, -1); };
    replaceMessage = (index, message) => { this.messages = this.messages.with(index, structuredClone(message)); };
    snapshot = (value) => structuredClone(value);
  }
  class Chat extends ai.AbstractChat {
    constructor() {
      super({ id: 'chat', transport: new ai.DefaultChatTransport(transport), state: new State() });
    }
  }
  return new Chat();
}

// plain returns a value as JSON has it: without undefined members.
export const plain = (value) => JSON.parse(JSON.stringify(value));

export async function* iterate(stream) {
  const reader = stream.getReader();
  try {
    for (let item = await reader.read(); !item.done; item = await reader.read()) yield item.value;
  } finally {
    await reader.cancel().catch(() => {});
  }
}
