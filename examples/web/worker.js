// SPDX-License-Identifier: Apache-2.0
//
// The page's worker: opens a model and embeds texts while the page goes on. It reads the chosen
// files piece by piece. Messages have a kind: open {files}, encode {texts, id}; answers are ready,
// opened, vectors and failed.

import { Encore } from "./encore.js";

const reader = new FileReaderSync();
const chosenFile = (file) => ({
  size: file.size,
  read: (offset, size) =>
    new Uint8Array(reader.readAsArrayBuffer(file.slice(offset, offset + size))),
});

let encore = null;
let model = null;

const requests = {
  async start() {
    encore = await Encore.load(fetch(new URL("encore.wasm", import.meta.url)));
    return { kind: "ready", version: encore.version };
  },
  open({ files }) {
    model?.free();
    model = null;
    const started = performance.now();
    model = encore.open(Object.fromEntries(files.map(([path, file]) => [path, chosenFile(file)])));
    return { kind: "opened", dimensions: model.dimensions, description: model.description,
             milliseconds: performance.now() - started };
  },
  encode({ texts, id }) {
    const started = performance.now();
    const vectors = model.encode(texts, { normalize: true });
    return { kind: "vectors", id, vectors, milliseconds: performance.now() - started };
  },
};

onmessage = async ({ data }) => {
  try {
    postMessage(await requests[data.kind](data));
  } catch (error) {
    postMessage({ kind: "failed", during: data.kind, id: data.id, message: error.message });
  }
};
