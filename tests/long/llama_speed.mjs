// The speed of llama.cpp, through npm's node-llama-cpp, on one GGUF file, one measurement a line of standard input:
//   node llama_speed.mjs NODE_MODULES MODEL.gguf THREADS LONGEST
// Requests and answers are those of tests/support/generation_probe.cpp. The cache of keys and values has llama.cpp's default
// precision, which is its fastest.
import path from "node:path";
import readline from "node:readline";
import {pathToFileURL} from "node:url";

const [modules, modelPath, threadsText, longestText] = process.argv.slice(2);
const threads = Number(threadsText);
const {getLlama} = await import(pathToFileURL(path.join(modules, "node-llama-cpp", "dist", "index.js")));
const llama = await getLlama({gpu: false, build: "never", skipDownload: true, maxThreads: threads, logLevel: "error"});
const model = await llama.loadModel({modelPath, gpuLayers: 0});
const context = await model.createContext({contextSize: Number(longestText), batchSize: 512, sequences: 1, threads: {ideal: threads, min: threads}});
const sequence = context.getSequence();

// Ordinary tokens, no two prompts alike: a cached one would cost nothing.
let prompts = 0;
function promptOf(count) {
  let state = ++prompts;
  return Array.from({length: count}, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return 300 + (state >>> 8) % 3000;
  });
}

async function measure({tokens, context: before = 0}, isPrompt) {
  await sequence.clearHistory();
  const prompt = promptOf(isPrompt ? tokens : before);
  const wanted = isPrompt ? 1 : tokens + 1;
  let first = 0, count = 0;
  const began = performance.now();
  for await (const _ of sequence.evaluate(prompt, {temperature: 0, yieldEogToken: true})) {
    if (++count === 1) first = performance.now();
    if (count === wanted) break;
  }
  if (count !== wanted) throw new Error(`llama.cpp ended its text after ${count} tokens`);
  return {seconds: ((isPrompt ? first - began : performance.now() - first)) / 1000, tokens};
}

console.log(JSON.stringify({threads: context.currentThreads, flash: context.flashAttention}));
for await (const line of readline.createInterface({input: process.stdin})) {
  const request = JSON.parse(line);
  console.log(JSON.stringify(await measure(request, request.do === "prompt")));
}
process.exit(0);
