// SPDX-License-Identifier: Apache-2.0
//
// Whether this process is another than the one in which something was made: a child made by fork()
// has a copy of all memory and only the thread that called fork().

#ifndef ENCORE_ENGINE_PLATFORM_FORK_H_
#define ENCORE_ENGINE_PLATFORM_FORK_H_

#include <cstdint>

namespace encore::inline v0_1::internal {

// Differs from the number of any other process with a copy of this memory: it changes in the child
// at each fork() after the library was loaded. Cheap; any thread.
uint32_t ProcessNumber();

// Notes that the OpenMP runtime has threads from now on; and whether a parent of this process noted
// that, so that the runtime counts on threads which are not there.
void NoteOpenMPThreads();
bool OpenMPThreadsAreLost();

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_FORK_H_
