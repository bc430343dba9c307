// SPDX-License-Identifier: Apache-2.0
//
// Whether this process is another than the one in which something was made: a child made by fork()
// has a copy of all memory and only the thread that called fork().

#ifndef ENCORE_ENGINE_PLATFORM_FORK_H_
#define ENCORE_ENGINE_PLATFORM_FORK_H_

#include "engine/base/once.h"  // ProcessNumber

namespace encore::inline v0_1::internal {

// Notes that the OpenMP runtime has threads from now on; and whether a parent of this process noted
// that, so that the runtime counts on threads which are not there.
void NoteOpenMPThreads();
bool OpenMPThreadsAreLost();

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_FORK_H_
