// SPDX-License-Identifier: Apache-2.0
//
// The page's worker: opens a model and embeds texts while the page goes on. It reads the chosen
// files piece by piece. Requests have a kind: open {files}, encode {texts, id}. What it says is of
// the kinds ready, opened, vectors and failed.

import { Encore } from "./encore.js";

const reader = new FileReaderSync();
const chosenFile = (file) => ({
  size: file.size,
  read: (offset, size) =>
    new Uint8Array(reader.readAsArrayBuffer(file.slice(offset, offset + size))),
});

const loading = Encore.load(fetch(new URL("encore.wasm", import.meta.url)));
let model = null;

const requests = {
  async open({ files }) {
    model?.free();
    model = null;
    const encore = await loading;
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

loading.then(
  ({ version }) => postMessage({ kind: "ready", version }),
  ({ message }) => postMessage({ kind: "failed", during: "start", message }));
