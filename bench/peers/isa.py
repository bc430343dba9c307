# SPDX-License-Identifier: Apache-2.0
"""Instruction sets that a peer's process may use: a limit set before its engine is loaded.

oneDNN, alone or inside OpenVINO and PyTorch, reads ONEDNN_MAX_CPU_ISA. MLAS, which ONNX Runtime
multiplies with, has no switch. Every engine needs the kernel's permission before its first AMX
instruction, so a limit without AMX also makes the kernel refuse that permission to this process.
"""

import ctypes
import errno
import os
import platform
import struct

# What oneDNN calls its limits, largest last; a later oneDNN may know more.
NAMES = ("AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI", "AVX512_CORE_BF16",
         "AVX10_1_512", "AVX10_1_512_AMX", "DEFAULT")

# Linux, x86-64: asm/unistd_64.h, asm/prctl.h, linux/prctl.h, linux/seccomp.h, linux/audit.h.
SYS_ARCH_PRCTL = 158
ARCH_GET_XCOMP_PERM, ARCH_REQ_XCOMP_PERM = 0x1022, 0x1023
XTILEDATA = 18
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
AUDIT_ARCH_X86_64 = 0xC000003E
RET_ALLOW, RET_ERRNO = 0x7FFF0000, 0x00050000
# Classic BPF: load a 32-bit word of the call's description; compare with a constant; return.
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
OFFSET_NR, OFFSET_ARCH, OFFSET_ARGUMENT_0 = 0, 4, 16


def has_limits():
    return platform.system() == "Linux" and platform.machine() == "x86_64"


def deny_amx():
    """From now on the kernel refuses AMX to this process and its threads to come."""
    # struct sock_filter: code, jump if true, jump if false, constant.
    filters = b"".join(struct.pack("=HBBI", *instruction) for instruction in (
        (LOAD, 0, 0, OFFSET_ARCH), (JUMP_IF_EQUAL, 0, 5, AUDIT_ARCH_X86_64),
        (LOAD, 0, 0, OFFSET_NR), (JUMP_IF_EQUAL, 0, 3, SYS_ARCH_PRCTL),
        (LOAD, 0, 0, OFFSET_ARGUMENT_0), (JUMP_IF_EQUAL, 0, 1, ARCH_REQ_XCOMP_PERM),
        (RETURN, 0, 0, RET_ERRNO | errno.EPERM), (RETURN, 0, 0, RET_ALLOW)))
    code = ctypes.create_string_buffer(filters)
    program = struct.pack("@HP", len(filters) // 8, ctypes.addressof(code))  # struct sock_fprog
    libc = ctypes.CDLL(None, use_errno=True)
    if (libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or
            libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0) != 0):
        raise OSError(ctypes.get_errno(), "cannot deny AMX to this process")


def is_without_amx(name):
    """Whether this limit, "" for none, takes AMX away."""
    return name not in ("", "DEFAULT") and "AMX" not in name


def limit(name):
    """Before any engine is imported: this process uses no more than that."""
    if not name:
        return
    os.environ["ONEDNN_MAX_CPU_ISA"] = name
    if has_limits() and is_without_amx(name):
        deny_amx()


def has_amx():
    """Whether something in this process has asked for AMX, and the kernel granted it."""
    if not has_limits():
        return False
    permitted = ctypes.c_uint64()
    libc = ctypes.CDLL(None)
    failed = libc.syscall(SYS_ARCH_PRCTL, ARCH_GET_XCOMP_PERM, ctypes.byref(permitted))
    return failed == 0 and bool(permitted.value >> XTILEDATA & 1)


def in_force(name):
    """For a table: the limit, and whether AMX may be used."""
    return (name or "no limit") + (", AMX" if has_amx() else "")
