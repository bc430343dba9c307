// SPDX-License-Identifier: Apache-2.0
//
// Intel's Advanced Matrix Extensions: whether this machine has them, and the system's permission,
// which a process must ask for once.

#ifndef ENCORE_ENGINE_PLATFORM_AMX_H_
#define ENCORE_ENGINE_PLATFORM_AMX_H_

namespace encore::inline v0_1::internal {

// Whether processor and system have AMX for int8. Asks for nothing. Linux on x86-64 only.
bool MachineHasAmx();
// And for bf16: all processors that have it for int8 do so far.
bool MachineHasAmxBf16();

// Whether this process may use it. The first call asks the system, which then saves 8 KiB more of
// each thread that uses it, and refuses where a thread has an alternate signal stack too small for
// that; the first answer stays. Thread-safe.
bool MayUseAmx();

// Whether the system was asked and refused.
bool AmxWasRefused();

// Whether new encoders' products of int8 use it: the active target is "AMX" (SetTarget), and
// MayUseAmx(). Defined beside the targets (cpu_info.cc).
bool UseAmx();
// The same of products of bf16 where an encoder's options want it.
inline bool UseAmxBf16() { return UseAmx() && MachineHasAmxBf16(); }

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_AMX_H_
