// SPDX-License-Identifier: Apache-2.0
//
// encore in JavaScript, in a page, a worker or Node:
//
//   const encore = await Encore.load(bytes);               // of encore.wasm
//   const model = encore.open({"config.json": file, ...}); // a model's folder, by relative paths
//   const [a, b] = model.encode(["Hello", "Good morning"]); // a Float32Array each
//   model.free();
//
// A file has a size and read(offset, size), which gives at most so many bytes as a Uint8Array, at
// once: in a worker FileReaderSync does so (worker.js), and bytesFile() of what is in memory. The
// module sees these files alone. What goes wrong is an Error whose message says what was found and
// what was wanted.

import { Files } from "./files.js";

export const bytesFile = (bytes) => ({
  size: bytes.length,
  read: (offset, size) => bytes.subarray(offset, offset + size),
});

export class Encore {
  #files;
  #wasm;  // what the module exports: encore/c_api.h, malloc and free
  #models = 0;

  // The bytes of encore.wasm, or what fetch() gives of it.
  static async load(source) {
    let bytes = await source;
    if (typeof Response !== "undefined" && bytes instanceof Response) {
      if (!bytes.ok) {
        throw new Error(`encore.wasm is not there: found the status ${bytes.status} at ` +
                        `${bytes.url}; tools/cross.sh wasm32 builds it`);
      }
      bytes = await bytes.arrayBuffer();
    }
    const module = await WebAssembly.compile(bytes);
    const files = new Files();
    const instance = await WebAssembly.instantiate(module, files.imports(module));
    return new Encore(files, instance.exports);
  }

  constructor(files, exports) {
    this.#files = files;
    this.#wasm = exports;
    files.memory = exports.memory;
    exports._initialize();
  }

  get version() { return this.text(this.#wasm.encore_version()); }

  open(files) {
    if (Object.keys(files).length === 0) {
      throw new Error("the folder is empty, wanted a model's with config.json");
    }
    const name = `model${++this.#models}`;
    this.#files.add(name, files);
    const pointers = [];
    try {
      const folder = this.keep(new TextEncoder().encode(`/${name}\0`), pointers);
      const model = this.keep(new Uint8Array(4), pointers);
      this.check(() => this.#wasm.encore_open(folder, 0, model), `/${name}/`);
      const handle = new DataView(this.#wasm.memory.buffer).getUint32(model, true);
      return new Model(this, this.#wasm, handle, () => this.#files.remove(name));
    } catch (error) {
      this.#files.remove(name);
      throw error;
    } finally {
      for (const pointer of pointers) this.#wasm.free(pointer);
    }
  }

  // The rest is for Model.

  // The address of a copy, which the caller frees.
  keep(bytes, pointers) {
    const at = this.#wasm.malloc(Math.max(bytes.length, 1));
    if (at === 0) throw new Error("out of memory: a page has at most 4 GiB");
    pointers.push(at);
    new Uint8Array(this.#wasm.memory.buffer, at, bytes.length).set(bytes);
    return at;
  }

  text(at) {
    const memory = new Uint8Array(this.#wasm.memory.buffer);
    return new TextDecoder().decode(memory.slice(at, memory.indexOf(0, at)));
  }

  check(call, folder) {
    if (call() === 0) return;
    let message = this.text(this.#wasm.encore_last_error());
    if (folder !== undefined) {
      message = message.replaceAll(folder, "").replaceAll(folder.slice(0, -1), "the folder");
    }
    const reason = this.#files.takeError();
    throw new Error(reason === "" ? message : `${message} (${reason})`);
  }
}

class Model {
  #encore;
  #wasm;
  #handle;
  #release;

  constructor(encore, wasm, handle, release) {
    this.#encore = encore;
    this.#wasm = wasm;
    this.#handle = handle;
    this.#release = release;
  }

  get dimensions() { return this.#wasm.encore_dimensions(this.#handle); }
  // Every decision that was taken at opening, a line each.
  get description() { return this.#encore.text(this.#wasm.encore_describe(this.#handle)); }

  // normalize: whether vectors get the length 1. prompt: put before each text. undefined: as the
  // folder says.
  encode(texts, { normalize = undefined, prompt = undefined } = {}) {
    if (this.#handle === 0) throw new Error("the model was freed");
    const dimensions = this.dimensions;
    if (dimensions === 0) throw new Error("this model gives no vectors of texts");
    const pointers = [];
    try {
      const table = new Uint32Array(2 * texts.length);  // of encore_text
      texts.forEach((text, i) => {
        const bytes = new TextEncoder().encode(text);
        table[2 * i] = this.#encore.keep(bytes, pointers);
        table[2 * i + 1] = bytes.length;
      });
      const at = this.#encore.keep(new Uint8Array(table.buffer), pointers);
      const options = new Int32Array(14);  // encore_encode_options: its size, prompt, normalize
      options[0] = options.byteLength;
      if (prompt !== undefined) {
        options[2] = this.#encore.keep(new TextEncoder().encode(`${prompt}\0`), pointers);
      }
      options[7] = normalize === undefined ? 0 : normalize ? 1 : 2;
      const how = this.#encore.keep(new Uint8Array(options.buffer), pointers);
      const count = texts.length * dimensions;
      const vectors = this.#encore.keep(new Uint8Array(4 * count), pointers);
      this.#encore.check(() => this.#wasm.encore_encode(this.#handle, at, texts.length, how, vectors,
                                                        count, 0, 0));
      const all = new Float32Array(this.#wasm.memory.buffer, vectors, count);
      return texts.map((_, i) => all.slice(i * dimensions, (i + 1) * dimensions));
    } finally {
      for (const pointer of pointers) this.#wasm.free(pointer);
    }
  }

  free() {
    this.#wasm.encore_free(this.#handle);
    this.#handle = 0;
    this.#release();
  }
}
