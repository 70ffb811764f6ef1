// Exports in packages that nobody here wrote:
//   node formats.mjs MODULES tokens FOLDER REQUEST.json ANSWER.json   Hugging Face's tokenizers.js on an exported folder
//   node formats.mjs MODULES events FILE ANSWER.json                  a TFRecord package's checksums, protobuf.js for the events
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";

const [modules, what, source, ...files] = process.argv.slice(2);
const load = createRequire(path.join(path.resolve(modules), "../package.json"));

function tokens(folder, request, answer) {
  const { Tokenizer } = load("@huggingface/tokenizers");
  const read = (name) => JSON.parse(fs.readFileSync(path.join(folder, name), "utf8"));
  const tokenizer = new Tokenizer(read("tokenizer.json"), read("tokenizer_config.json"));
  const { texts } = JSON.parse(fs.readFileSync(request, "utf8"));
  const ids = texts.map((text) => Array.from(tokenizer.encode(text, { add_special_tokens: false }).ids, Number));
  fs.writeFileSync(answer, JSON.stringify({ ids }));
}

// The fields of TensorFlow's event.proto and summary.proto that scalars have.
const SCHEMA = `syntax = "proto3"; package t;
message Value { string tag = 1; float simple_value = 2; }
message Summary { repeated Value value = 1; }
message Event { double wall_time = 1; int64 step = 2; oneof what { string file_version = 3; Summary summary = 5; } }`;

function events(file, answer) {
  const { crc32c, maskCrc } = load("@roboflow/tfrecords/src/tensorFlowHelpers.js");
  const Event = load("protobufjs").parse(SCHEMA).root.lookupType("t.Event");
  const data = fs.readFileSync(file);
  const found = { version: null, records: 0, scalars: [] };
  for (let at = 0; at < data.length;) {
    const length = Number(data.readBigUInt64LE(at));
    const body = data.subarray(at + 12, at + 12 + length);
    const good = maskCrc(crc32c(data.subarray(at, at + 8))) === data.readUInt32LE(at + 8) &&
      maskCrc(crc32c(body)) === data.readUInt32LE(at + 12 + length);
    if (!good) throw new Error(`a checksum of the record at ${at}`);
    const event = Event.toObject(Event.decode(body), { longs: Number, defaults: false });
    if (event.fileVersion) found.version = event.fileVersion;
    for (const value of event.summary?.value ?? []) found.scalars.push([value.tag, event.step, value.simpleValue]);
    found.records += 1;
    at += 16 + length;
  }
  fs.writeFileSync(answer, JSON.stringify(found));
}

if (what === "tokens") tokens(source, ...files);
else events(source, ...files);
