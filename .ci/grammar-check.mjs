// Compiles the schemas in the bodies of requests with the grammar engine of llama.cpp.
//
//   node grammar-check.mjs FOLDER
//
// FOLDER holds the bodies that TestRequestBodies and TestToolBodies keep, as WIRE-NAME.json. The schemas of all tools of a
// body, and that of its answer, become a grammar as in llama.cpp's server, with the smallest model that the engine loads. The schemas at
// the end must be refused: they check that the engine compiles at all.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [folder, verdict] = process.argv.slice(2);
if (!verdict) { // the engine writes thousands of lines: another process runs it, and leaves its verdict in a file
  const scratch = mkdtempSync(join(tmpdir(), 'grammar-'));
  const file = join(scratch, 'verdict');
  writeFileSync(file, 'the engine did not end\n');
  const { status } = spawnSync(process.execPath, [process.argv[1], folder, file], { stdio: 'ignore' });
  process.stdout.write(readFileSync(file, 'utf8'));
  rmSync(scratch, { recursive: true });
  process.exit(status ?? 1);
}

const { LlamaContext } = createRequire(import.meta.url)('@fugood/node-llama-linux-x64/index.node');

const template = `{%- for t in tools %}{{ t | tojson }}\n{%- endfor %}{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}
{%- for c in m.tool_calls or [] %}<tool_call>\n{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>
{%- endfor %}<|im_end|>\n{%- endfor %}{%- if add_generation_prompt %}<|im_start|>assistant\n{%- endif %}`;

// model returns a file in the format GGUF: one layer of 32 numbers, and a token for each byte.
function model() {
  const parts = [];
  const put = (bytes) => parts.push(bytes);
  const u32 = (n) => { const b = Buffer.alloc(4); b.writeUInt32LE(n); put(b); };
  const u64 = (n) => { const b = Buffer.alloc(8); b.writeBigUInt64LE(BigInt(n)); put(b); };
  const f32 = (n) => { const b = Buffer.alloc(4); b.writeFloatLE(n); put(b); };
  const text = (s) => { const b = Buffer.from(s); u64(b.length); put(b); };
  const types = { u32: [4, u32], f32: [6, f32], text: [8, text] };
  const list = (code, write, values) => { u32(code); u64(values.length); values.forEach(write); };

  const bytes = Array.from({ length: 256 }, (_, i) => `<0x${i.toString(16).toUpperCase().padStart(2, '0')}>`);
  const tokens = ['<unk>', '<s>', '</s>', ...bytes];
  const width = 32;
  const fields = [
    ['general.architecture', 'text', 'llama'], ['llama.block_count', 'u32', 1], ['llama.context_length', 'u32', 512],
    ['llama.embedding_length', 'u32', width], ['llama.feed_forward_length', 'u32', width], ['llama.attention.head_count', 'u32', 1],
    ['llama.attention.layer_norm_rms_epsilon', 'f32', 1e-5], ['llama.rope.dimension_count', 'u32', width],
    ['tokenizer.ggml.model', 'text', 'llama'], ['tokenizer.ggml.bos_token_id', 'u32', 1], ['tokenizer.ggml.eos_token_id', 'u32', 2],
    ['tokenizer.chat_template', 'text', template],
    ['tokenizer.ggml.tokens', 8, text, tokens], ['tokenizer.ggml.scores', 6, f32, tokens.map(() => 0)],
    ['tokenizer.ggml.token_type', 5, u32, tokens.map((_, i) => (i === 0 ? 2 : i < 3 ? 3 : 6))], // unknown, control, byte
  ];
  const square = ['attn_q', 'attn_k', 'attn_v', 'attn_output', 'ffn_gate', 'ffn_up', 'ffn_down'];
  const tensors = [
    ['token_embd', [width, tokens.length]], ['output_norm', [width]], ['blk.0.attn_norm', [width]], ['blk.0.ffn_norm', [width]],
    ...square.map((name) => [`blk.0.${name}`, [width, width]]),
  ];
  put(Buffer.from('GGUF')); u32(3); u64(tensors.length); u64(fields.length);
  for (const [name, type, write, values] of fields) {
    text(name);
    if (values) { u32(9); list(type, write, values); } else { u32(types[type][0]); types[type][1](write); }
  }
  let offset = 0;
  for (const [name, sides] of tensors) {
    text(`${name}.weight`); u32(sides.length); sides.forEach(u64); u32(0); u64(offset);
    offset += sides.reduce((a, b) => a * b) * 4;
  }
  const length = parts.reduce((n, b) => n + b.length, 0);
  put(Buffer.alloc((32 - (length % 32)) % 32)); // tensors begin at a multiple of 32
  put(Buffer.alloc(offset, Buffer.from(new Float32Array([0.01, -0.02, 0.03, 0.005]).buffer)));
  return Buffer.concat(parts);
}

const modelFile = `${verdict}.gguf`;
writeFileSync(modelFile, model());

// compile makes a grammar of tools or of an answer, and begins an answer with it. It throws what the server would answer.
async function compile(params) {
  const engine = new LlamaContext({ model: modelFile, n_ctx: 512, n_gpu_layers: 0, n_threads: 1, use_mmap: false }, () => {});
  const { grammar } = engine.getFormattedChat([{ role: 'user', content: 'x' }], undefined, { jinja: true, ...params });
  if (!grammar) throw new Error('no grammar');
  await engine.completion({ prompt: 'x', n_predict: 1, temperature: 0, grammar, grammar_lazy: false }, () => {});
  await engine.release();
}

const withTool = (parameters) => ({ tools: [{ type: 'function', function: { name: 'f', description: 'F.', parameters } }], tool_choice: 'required' });
const withField = (schema) => withTool({ type: 'object', properties: { a: schema } });

const faults = [];
const fails = (what, why) => faults.push(`${what}: ${String(why).slice(-500)}`);

let count = 0;
for (const file of readdirSync(folder).filter((f) => /^chat-.*\.json$/.test(f)).sort()) {
  const body = JSON.parse(readFileSync(join(folder, file), 'utf8'));
  for (const tool of body.tools ?? []) {
    count++;
    await compile(withTool(tool.function.parameters)).catch((e) => fails(`${file}: ${tool.function.name} (${tool.function.description})`, e));
  }
  if (body.tools?.length > 1) await compile({ tools: body.tools, tool_choice: 'required' }).catch((e) => fails(`${file}: all tools`, e));
  if (body.response_format) {
    count++;
    await compile({ response_format: body.response_format }).catch((e) => fails(`${file}: the answer`, e));
  }
}
if (count < 60) fails(folder, `only ${count} schemas`);

for (const [what, schema] of Object.entries({
  'a long text': { type: 'string', maxLength: 2000 },
  'a pattern without anchors': { type: 'string', pattern: 'x' },
  'an unknown type': { type: 'str' },
  'a reference to nothing': { $ref: '#/$defs/none' },
})) {
  await compile(withField(schema)).then(() => fails(what, 'was not refused'), () => {});
}
await compile(withField({ type: 'string', maxLength: 1999 })).catch((e) => fails('a shorter text', e));

writeFileSync(verdict, `${faults.join('\n') || `llama.cpp compiles all ${count} schemas, and refuses the wrong ones`}\n`);
process.exit(faults.length ? 1 : 0); // at once: an engine that refused a grammar does not end by itself
