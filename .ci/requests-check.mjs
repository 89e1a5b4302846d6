// Compiles the bodies of requests against the types of the providers' official SDKs.
//
//   node requests-check.mjs FOLDER
//
// FOLDER holds the bodies that TestRequestBodies and TestToolBodies keep, as WIRE-NAME.json. Each becomes an object
// literal that must satisfy the SDK's type of a streaming request, so that a misspelt, missing or
// unknown field, or one of another type, fails. The invalid bodies at the end must not compile:
// they check that the types are not too loose.

import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const types = {
  chat: 'OpenAI.ChatCompletionCreateParamsStreaming',
  responses: 'OpenAI.Responses.ResponseCreateParamsStreaming',
  anthropic: 'Anthropic.MessageCreateParamsStreaming',
};

// Changes that make a body invalid, with the wires whose type must refuse it.
const wrongs = {
  'no model': [(b) => delete b.model, ['chat', 'anthropic']],
  'an unknown field': [(b) => (b.max_token = 5), ['chat', 'responses', 'anthropic']],
  'a limit that is text': [(b) => (b[b.max_output_tokens ? 'max_output_tokens' : 'max_tokens'] = '5'), ['chat', 'responses', 'anthropic']],
  'a misspelt part': [(b) => JSON.stringify(b, (_, v) => (v?.type === 'input_text' ? ((v.txt = v.text), delete v.text, v) : v)), ['responses']],
  'a call without an id': [(b) => b.input.forEach((i) => delete i.call_id), ['responses']],
  'a tool without a name': [(b) => b.tools.forEach((t) => delete (t.function ?? t).name), ['chat', 'responses', 'anthropic']],
};

const here = dirname(fileURLToPath(import.meta.url));
const [folder] = process.argv.slice(2);
const out = join(here, 'node_modules', '.requests');
mkdirSync(out, { recursive: true });

let source = "import type OpenAI from 'openai';\nimport type Anthropic from '@anthropic-ai/sdk';\n\n";
let count = 0;
const literal = (body) => JSON.stringify(body, null, 2);
const bodies = readdirSync(folder).filter((f) => f.endsWith('.json')).sort();
for (const file of bodies) {
  const wire = file.split('-')[0];
  if (!types[wire]) throw new Error(`${file}: no type for ${wire}`);
  source += `export const request${count++} = /* ${file} */ ${literal(JSON.parse(readFileSync(join(folder, file), 'utf8')))} satisfies ${types[wire]};\n`;
}
for (const wire of Object.keys(types)) {
  if (!bodies.some((f) => f.startsWith(`${wire}-`))) throw new Error(`no body of ${wire} in ${folder}`);
}
writeFileSync(join(out, 'requests.ts'), source);

// Each invalid body is on one line, after its mark.
let wrong = "import type OpenAI from 'openai';\nimport type Anthropic from '@anthropic-ai/sdk';\n\n";
for (const [what, [change, wires]] of Object.entries(wrongs)) {
  for (const wire of wires) {
    const body = JSON.parse(readFileSync(join(folder, `${wire}-tools.json`), 'utf8'));
    change(body);
    wrong += `// @ts-expect-error: ${what}\nexport const wrong${count++}: ${types[wire]} = ${JSON.stringify(body)};\n`;
  }
}
writeFileSync(join(out, 'wrong.ts'), wrong);

const tsc = spawnSync(process.execPath, [
  join(here, 'node_modules/typescript/bin/tsc'), '--noEmit', '--strict', '--skipLibCheck', '--target', 'es2022',
  '--module', 'nodenext', '--types', 'node', join(out, 'requests.ts'), join(out, 'wrong.ts'),
], { stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8', cwd: here });
if (tsc.status !== 0) {
  console.log(tsc.stdout.slice(0, 20000), tsc.stderr);
  console.log('the bodies do not have the types of the official SDKs');
  process.exit(1);
}
console.log(`${bodies.length} bodies have the types of the official SDKs; ${count - bodies.length} wrong ones are refused`);
