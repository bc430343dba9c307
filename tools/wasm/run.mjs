// SPDX-License-Identifier: Apache-2.0
//
// Runs a program for WASI in Node, with all files, the environment and the working folder:
//
//   node --no-warnings tools/wasm/run.mjs PROGRAM.wasm ARGUMENTS...

import { readFile } from "node:fs/promises";
import { WASI } from "node:wasi";

const wasi = new WASI({
  version: "preview1",
  args: process.argv.slice(2),
  env: { ...process.env, PWD: process.cwd() },
  preopens: { "/": "/" },
});
const module = await WebAssembly.compile(await readFile(process.argv[2]));
process.exit(wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject())));
