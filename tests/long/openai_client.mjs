// npm's OpenAI client, unchanged, against a node: NS_URL, NS_KEY, NS_MODEL. Prints each check that held. With NS_RECORD, a file,
// keeps there what the client sent and what came back, without the key: tests/functional/openai_exchanges.json is such a file.
import assert from "node:assert";
import fs from "node:fs";
import OpenAI from "openai";

const model = process.env.NS_MODEL;
const exchanges = [];
const kept = ["accept", "content-type", "user-agent"];
let current = "";

async function recorded(url, init) {
  const answer = await fetch(url, init);
  if (!process.env.NS_RECORD || current === "abort") return answer;
  const sent = Object.entries(init.headers).filter(([name]) => kept.includes(name.toLowerCase()) || name.toLowerCase().startsWith("x-stainless"));
  exchanges.push({
    check: current, method: init.method.toUpperCase(), path: new URL(url).pathname, headers: Object.fromEntries(sent),
    body: init.body ? JSON.parse(init.body) : null, status: answer.status, type: answer.headers.get("content-type"),
    answer: await answer.clone().text(),
  });
  return answer;
}

const options = { baseURL: process.env.NS_URL, maxRetries: 0, fetch: recorded };
const client = new OpenAI({ ...options, apiKey: process.env.NS_KEY });
const prompt = "the license";
const seed = 5;
const messages = [{ role: "system", content: "Be brief." }, { role: "user", content: "Who are you?" }];

async function refused(name, status, code, call) {
  await assert.rejects(call, (error) => error instanceof OpenAI.APIError && error.status === status && error.code === code, name);
}

const checks = {
  async list() {
    const models = [];
    for await (const one of client.models.list()) models.push(one.id);
    assert.deepEqual(models, [model]);
  },
  async complete() {
    const answer = await client.completions.create({ model, prompt, max_tokens: 12, seed });
    assert.equal(answer.model, model);
    assert.equal(answer.choices[0].finish_reason, "length");
    assert.equal(answer.usage.completion_tokens, 12);
  },
  async chat() {
    const answer = await client.chat.completions.create({ model, messages, max_tokens: 8, seed });
    assert.equal(answer.choices[0].message.role, "assistant");
    assert.match(answer.system_fingerprint, /^\d+-[0-9a-f]{8}/);
  },
  async stream() {
    const whole = await client.completions.create({ model, prompt, max_tokens: 12, seed });
    let text = "", usage = null;
    const stream = await client.completions.create(
      { model, prompt, max_tokens: 12, seed, stream: true, stream_options: { include_usage: true } });
    for await (const event of stream) {
      text += event.choices[0]?.text ?? "";
      usage = event.usage ?? usage;
    }
    assert.equal(text, whole.choices[0].text);
    assert.deepEqual(usage, whole.usage);
  },
  async chat_stream() {
    const whole = await client.chat.completions.create({ model, messages, max_tokens: 8, seed });
    let text = "";
    const stream = await client.chat.completions.create({ model, messages, max_tokens: 8, seed, stream: true });
    for await (const event of stream) text += event.choices[0]?.delta?.content ?? "";
    assert.equal(text, whole.choices[0].message.content);
  },
  async stop() {
    const whole = await client.completions.create({ model, prompt, max_tokens: 12, seed });
    const stop = whole.choices[0].text.slice(4, 7);
    const cut = await client.completions.create({ model, prompt, max_tokens: 12, seed, stop });
    assert.equal(cut.choices[0].text, whole.choices[0].text.split(stop)[0]);
    assert.equal(cut.choices[0].finish_reason, "stop");
  },
  async logprobs() {
    const answer = await client.completions.create({ model, prompt, max_tokens: 4, logprobs: 3, temperature: 0 });
    const scores = answer.choices[0].logprobs;
    assert.equal(scores.tokens.length, 4);
    for (const [i, value] of scores.token_logprobs.entries())
      assert.equal(value, Math.max(...Object.values(scores.top_logprobs[i])));
    const chat = await client.chat.completions.create({ model, messages, max_tokens: 4, logprobs: true, top_logprobs: 2 });
    assert.ok(chat.choices[0].logprobs.content.every((token) => token.top_logprobs.length === 2 && token.logprob <= 0));
  },
  async embeddings() {
    const input = ["the license", "a copy of the Program"];
    const coded = await client.embeddings.create({ model, input });  // the client asks for base64 and decodes it
    const plain = await client.embeddings.create({ model, input, encoding_format: "float" });
    assert.equal(coded.data.length, 2);
    for (const [i, { embedding }] of coded.data.entries()) {
      assert.equal(embedding.length, plain.data[i].embedding.length);
      assert.ok(embedding.every((value, at) => Math.abs(value - plain.data[i].embedding[at]) < 1e-7));
      assert.ok(Math.abs(embedding.reduce((sum, value) => sum + value * value, 0) - 1) < 1e-5);
    }
    assert.ok(coded.usage.total_tokens > 0 && coded.usage.total_tokens === coded.usage.prompt_tokens);
    await refused("empty", 400, null, client.embeddings.create({ model, input: "" }));
    await refused("dimensions", 400, "unsupported_parameter", client.embeddings.create({ model, input, dimensions: 8 }));
  },
  async abort() {
    const stream = await client.completions.create({ model, prompt, max_tokens: 4096, stream: true, logit_bias: { 2: -100 } });
    let events = 0;
    for await (const _ of stream) if (++events === 3) stream.controller.abort();
    assert.ok(events >= 3 && events < 2000, `${events} events`);  // those that had arrived are still given
    await client.completions.create({ model, prompt, max_tokens: 1 });
  },
  async errors() {
    await refused("model", 404, "model_not_found", client.completions.create({ model: "gpt-4", prompt }));
    await refused("n", 400, "unsupported_parameter", client.completions.create({ model, prompt, n: 2 }));
    await refused("unknown", 400, "unknown_parameter", client.chat.completions.create({ model, messages, tools: [] }));
    await refused("context", 400, "context_length_exceeded", client.completions.create({ model, prompt: Array(5000).fill(76) }));
    await refused("unknown path", 404, "unknown_url", client.moderations.create({ input: "x" }));
    const stranger = new OpenAI({ ...options, apiKey: "wrong" });
    await refused("key", 401, "invalid_api_key", stranger.completions.create({ model, prompt }));
  },
};

for (const [name, check] of Object.entries(checks)) {
  current = name;
  await check();
  console.log(`held: ${name}`);
}
// Long prompts say no more than short ones.
const short = (one) => !Array.isArray(one.body?.prompt) || one.body.prompt.length < 100;
if (process.env.NS_RECORD) fs.writeFileSync(process.env.NS_RECORD, JSON.stringify(exchanges.filter(short), null, 1) + "\n");
