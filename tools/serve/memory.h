// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a thread that finds no memory. A request's texts, vectors and answer throw, and
// the request is answered with status 503. What all requests share (scheduling, and an answer's way
// out) waits: a reserve is freed for it, and other requests end. So does JSON, whose destructors
// allocate.

#ifndef ENCORE_TOOLS_SERVE_MEMORY_H_
#define ENCORE_TOOLS_SERVE_MEMORY_H_

namespace encore::serve {

enum class NoMemory { kThrow, kWait };  // kThrow: of threads that say nothing

// What operator new does on this thread, to the end of the block.
class MemoryScope {
 public:
  explicit MemoryScope(NoMemory then);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

 private:
  NoMemory before_;
};

// Makes scopes work, for the whole process.
void InstallNoMemoryHandler();

}  // namespace encore::serve

#endif  // ENCORE_TOOLS_SERVE_MEMORY_H_
