// SPDX-License-Identifier: Apache-2.0
//
// What a WebAssembly module sees of the system: the calls of WASI (preview 1) that a program makes
// which reads files of one tree. All others are refused.

const kDirectory = 3, kRegular = 4, kCharacters = 2;  // types of files in WASI
const kOk = 0, kBadFile = 8, kInvalid = 28, kIo = 29, kNoEntry = 44, kNotSupported = 52,
  kNotDirectory = 54, kReadOnly = 69;  // its errors
const kRoot = 3;  // the first descriptor that is not a standard file: the folder "/"

export class Files {
  #tree = new Map([["", null]]);  // path without the first slash: a file, or null for a folder
  #open = new Map([[kRoot, { path: "", at: 0n }]]);  // by descriptor
  #lastError = "";
  memory;  // the module's

  // Puts the files into the folder /name.
  add(name, files) {
    this.#tree.set(name, null);
    for (const [path, file] of Object.entries(files)) {
      const parts = path.split("/");
      for (let i = 1; i < parts.length; ++i) {
        this.#tree.set([name, ...parts.slice(0, i)].join("/"), null);
      }
      this.#tree.set(`${name}/${path}`, file);
    }
  }

  remove(name) {
    for (const path of [...this.#tree.keys()]) {
      if (path === name || path.startsWith(name + "/")) this.#tree.delete(path);
    }
  }

  // What reading a file threw last, which the module knows as an I/O error.
  takeError() {
    const error = this.#lastError;
    this.#lastError = "";
    return error;
  }

  get #view() { return new DataView(this.memory.buffer); }
  #bytes(at, size) { return new Uint8Array(this.memory.buffer, at, size); }
  #text(at, size) { return new TextDecoder().decode(this.#bytes(at, size).slice()); }

  #path(folder, at, size) {
    const parts = [];
    for (const part of `${this.#open.get(folder).path}/${this.#text(at, size)}`.split("/")) {
      if (part === "..") parts.pop();
      else if (part !== "" && part !== ".") parts.push(part);
    }
    return parts.join("/");
  }

  #stat(path, at) {
    const file = this.#tree.get(path);
    this.#bytes(at, 64).fill(0);
    this.#view.setBigUint64(at + 8, BigInt([...this.#tree.keys()].indexOf(path) + 1), true);
    this.#view.setUint8(at + 16, file === null ? kDirectory : kRegular);
    this.#view.setBigUint64(at + 24, 1n, true);
    this.#view.setBigUint64(at + 32, BigInt(file === null ? 0 : file.size), true);
    return kOk;
  }

  // Into `count` pieces of memory, whose addresses and sizes are at `pieces`.
  #read(file, pieces, count, offset, got) {
    let total = 0;
    try {
      for (let i = 0; i < count; ++i) {
        const at = this.#view.getUint32(pieces + 8 * i, true);
        let left = Math.min(this.#view.getUint32(pieces + 8 * i + 4, true),
                            Math.max(file.size - offset - total, 0));
        for (let done = 0; left > 0;) {
          const bytes = file.read(offset + total, Math.min(left, 1 << 24));
          if (bytes.length === 0) return kIo;
          this.#bytes(at + done, bytes.length).set(bytes);
          done += bytes.length;
          total += bytes.length;
          left -= bytes.length;
        }
      }
    } catch (error) {
      this.#lastError = String(error.message ?? error);
      return kIo;
    }
    this.#view.setUint32(got, total, true);
    return kOk;
  }

  imports(module) {
    const calls = {
      fd_prestat_get: (fd, at) => {
        if (fd !== kRoot) return kBadFile;
        this.#view.setUint32(at, 0, true);
        this.#view.setUint32(at + 4, 1, true);
        return kOk;
      },
      fd_prestat_dir_name: (fd, at) => (this.#bytes(at, 1)[0] = 0x2f, kOk),
      fd_fdstat_get: (fd, at) => {
        const open = this.#open.get(fd);
        if (open === undefined && fd > 2) return kBadFile;
        this.#bytes(at, 24).fill(0);
        this.#view.setUint8(at, fd <= 2 ? kCharacters
                                        : this.#tree.get(open.path) === null ? kDirectory : kRegular);
        this.#view.setBigUint64(at + 8, ~0n & 0x1fffffffn, true);
        this.#view.setBigUint64(at + 16, ~0n & 0x1fffffffn, true);
        return kOk;
      },
      path_open: (folder, _follow, at, size, create, _rights, _inherited, _flags, fd) => {
        if (!this.#open.has(folder)) return kBadFile;
        const path = this.#path(folder, at, size);
        if (!this.#tree.has(path)) return (create & 1) !== 0 ? kReadOnly : kNoEntry;
        if ((create & 2) !== 0 && this.#tree.get(path) !== null) return kNotDirectory;
        let number = kRoot + 1;
        while (this.#open.has(number)) ++number;
        this.#open.set(number, { path, at: 0n });
        this.#view.setUint32(fd, number, true);
        return kOk;
      },
      fd_close: (fd) => this.#open.delete(fd) ? kOk : kBadFile,
      fd_filestat_get: (fd, at) =>
        this.#open.has(fd) ? this.#stat(this.#open.get(fd).path, at) : kBadFile,
      path_filestat_get: (folder, _follow, at, size, to) => {
        const path = this.#path(folder, at, size);
        return this.#tree.has(path) ? this.#stat(path, to) : kNoEntry;
      },
      path_readlink: () => kInvalid,  // there are no links
      fd_pread: (fd, pieces, count, offset, got) => {
        const file = this.#open.has(fd) ? this.#tree.get(this.#open.get(fd).path) : undefined;
        return file ? this.#read(file, pieces, count, Number(offset), got) : kBadFile;
      },
      fd_read: (fd, pieces, count, got) => {
        const open = this.#open.get(fd);
        const file = open && this.#tree.get(open.path);
        if (!file) return kBadFile;
        const error = this.#read(file, pieces, count, Number(open.at), got);
        if (error === kOk) open.at += BigInt(this.#view.getUint32(got, true));
        return error;
      },
      fd_seek: (fd, offset, from, at) => {
        const open = this.#open.get(fd);
        const file = open && this.#tree.get(open.path);
        if (!file) return kBadFile;
        open.at = offset + (from === 0 ? 0n : from === 1 ? open.at : BigInt(file.size));
        this.#view.setBigUint64(at, open.at, true);
        return kOk;
      },
      fd_readdir: (fd, at, size, cookie, used) => {
        const folder = this.#open.get(fd)?.path;
        if (folder === undefined || this.#tree.get(folder) !== null) return kNotDirectory;
        const start = folder === "" ? "" : folder + "/";
        const names = [...this.#tree.keys()].filter(
          (path) => path !== "" && path.startsWith(start) && !path.slice(start.length).includes("/"));
        let to = 0;
        for (let i = Number(cookie); i < names.length && to < size; ++i) {
          const name = new TextEncoder().encode(names[i].slice(start.length));
          const entry = new Uint8Array(24 + name.length);
          const view = new DataView(entry.buffer);
          view.setBigUint64(0, BigInt(i + 1), true);
          view.setBigUint64(8, BigInt(i + 1), true);
          view.setUint32(16, name.length, true);
          view.setUint8(20, this.#tree.get(names[i]) === null ? kDirectory : kRegular);
          entry.set(name, 24);
          const part = entry.subarray(0, size - to);
          this.#bytes(at + to, part.length).set(part);
          to += part.length;
        }
        this.#view.setUint32(used, to, true);
        return kOk;
      },
      fd_write: (fd, pieces, count, written) => {
        let text = "", total = 0;
        for (let i = 0; i < count; ++i) {
          const size = this.#view.getUint32(pieces + 8 * i + 4, true);
          text += this.#text(this.#view.getUint32(pieces + 8 * i, true), size);
          total += size;
        }
        console.error(text);
        this.#view.setUint32(written, total, true);
        return kOk;
      },
      clock_time_get: (clock, _precision, at) => {
        const ms = clock === 0 ? Date.now() : performance.now();
        this.#view.setBigUint64(at, BigInt(Math.round(ms * 1e6)), true);
        return kOk;
      },
      random_get: (at, size) => {
        const bytes = new Uint8Array(size);
        for (let i = 0; i < size; i += 65536) crypto.getRandomValues(bytes.subarray(i, i + 65536));
        this.#bytes(at, size).set(bytes);
        return kOk;
      },
      environ_sizes_get: (count, size) => {
        this.#view.setUint32(count, 0, true);
        this.#view.setUint32(size, 0, true);
        return kOk;
      },
      environ_get: () => kOk,
      proc_exit: (status) => { throw new Error(`encore.wasm ended with the status ${status}`); },
    };
    const imports = {};
    for (const { module: from, name } of WebAssembly.Module.imports(module)) {
      (imports[from] ??= {})[name] = calls[name] ?? (() => kNotSupported);
    }
    return imports;
  }
}
