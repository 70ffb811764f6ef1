// llama.cpp, through npm's node-llama-cpp, on one GGUF file:   node llama_cpp.mjs NODE_MODULES MODEL.gguf REQUEST.json ANSWER.json
// Request and answer are those of tests/support/model_probe.cpp, so that the two can be compared. In fp32 throughout: the cache
// of keys and values, too, which is half precision otherwise.
import fs from "node:fs";
import path from "node:path";
import {pathToFileURL} from "node:url";

const [modules, modelPath, requestPath, answerPath] = process.argv.slice(2);
const {getLlama} = await import(pathToFileURL(path.join(modules, "node-llama-cpp", "dist", "index.js")));
const request = JSON.parse(fs.readFileSync(requestPath, "utf8"));

const llama = await getLlama({gpu: false, build: "never", skipDownload: true, maxThreads: 2, logLevel: "error"});
const model = await llama.loadModel({modelPath, gpuLayers: 0});
const longest = Math.max(8, ...request.tokens.map((list) => list.length));
const context = await model.createContext({
  contextSize: longest, batchSize: longest, sequences: 1, flashAttention: false,
  experimentalKvCacheKeyType: "F32", experimentalKvCacheValueType: "F32",
});
const sequence = context.getSequence();

function logSoftmax(logits) {
  let top = -Infinity, sum = 0;
  for (const value of logits.values()) top = Math.max(top, value);
  for (const value of logits.values()) sum += Math.exp(value - top);
  return (token) => logits.get(token) - top - Math.log(sum);
}

const answer = {ids: request.texts.map((text) => [...model.tokenize(text, false)]), scores: [], full: []};
for (const tokens of request.tokens) {
  await sequence.clearHistory();
  const results = await sequence.controlledEvaluate(tokens.map((token) => [token, {generateNext: {logits: true}}]));
  const scores = [], full = [];
  results.forEach((result, i) => {
    const row = logSoftmax(result.next.logits);
    if (i + 1 < tokens.length) scores.push(row(tokens[i + 1]));
    if (i < request.full) for (let token = 0; token < result.next.logits.size; ++token) full.push(row(token));
  });
  answer.scores.push(scores);
  answer.full.push(full);
}
fs.writeFileSync(answerPath, JSON.stringify(answer));
await model.dispose();
process.exit(0);
