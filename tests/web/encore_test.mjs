// SPDX-License-Identifier: Apache-2.0
//
// examples/web/encore.js in Node; tools/cross.sh wasm32 --test runs it:
//
//   node tests/web/encore_test.mjs encore.wasm FOLDER TEXTS VECTORS
//
// The module gives the vectors that `encore embed` wrote of the folder and the file of texts, byte
// for byte, and says in a sentence what is wrong with a folder, a text or a file.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";

import { Encore, bytesFile } from "../../examples/web/encore.js";

const [wasm, folder, textFile, vectorFile] = process.argv.slice(2);

// Gives fewer bytes at once than are asked for.
const slowFile = (bytes) => ({
  size: bytes.length,
  read: (offset, size) => bytes.subarray(offset, offset + Math.min(size, 10007)),
});

const filesOf = (root) => Object.fromEntries(
  fs.readdirSync(root, { recursive: true }).map((name) => [name, path.join(root, name)])
    .filter(([, file]) => fs.statSync(file).isFile())
    .map(([name, file]) => [name.split(path.sep).join("/"), slowFile(fs.readFileSync(file))]));

const encore = await Encore.load(fs.readFileSync(wasm));
assert.match(encore.version, /^\d+\.\d+\.\d+/);

const files = filesOf(folder);
const model = encore.open(files);
const texts = fs.readFileSync(textFile, "utf8").split("\n").slice(0, -1);
const npy = fs.readFileSync(vectorFile);
const wanted = npy.subarray(10 + npy.readUInt16LE(8));
const vectors = model.encode(texts);
assert.equal(vectors.length, texts.length);
const found = Buffer.concat(vectors.map((v) => Buffer.from(v.buffer, v.byteOffset, v.byteLength)));
assert.ok(found.equals(wanted), "the vectors differ from those of encore embed");
assert.match(model.description, /config\.json/);

// Of length 1, and with a prompt of its own.
const [unit] = model.encode(["a cat"], { normalize: true });
assert.ok(Math.abs(Math.hypot(...unit) - 1) < 1e-6);
assert.deepEqual(model.encode(["a cat"], { normalize: true, prompt: "" })[0], unit);
assert.notDeepEqual(model.encode(["a cat"], { normalize: true, prompt: "the " })[0], unit);
assert.deepEqual(model.encode([]), []);

// Two models at once; one that is freed is refused.
const second = encore.open(files);
model.free();
assert.throws(() => model.encode(["a"]), /was freed/);
assert.deepEqual(second.encode(["a cat"], { normalize: true })[0], unit);
second.free();

// Errors name the file and what is wrong with it.
assert.throws(() => encore.open({}), /the folder is empty, wanted a model's/);
assert.throws(() => encore.open({ "read.me": bytesFile(new Uint8Array(3)) }), /config\.json/);
assert.throws(
  () => encore.open({ ...files, "config.json": bytesFile(Buffer.from("{\"model_type\": 7")) }),
  /config\.json/);
const weights = Object.keys(files).find((name) => name.endsWith(".safetensors"));
assert.throws(
  () => encore.open({ ...files, [weights]: { size: 1000, read: () => { throw new Error("gone"); } } }),
  (error) => error.message.includes(weights) && error.message.includes("(gone)"));
// It goes on after all of them.
assert.equal(encore.open(files).encode(["a cat"]).length, 1);
await assert.rejects(Encore.load(new Response(null, { status: 404 })), /found the status 404/);

console.log(`${texts.length} vectors of encore.js have the bytes of encore embed, errors are sentences`);
