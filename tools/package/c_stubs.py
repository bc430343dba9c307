#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A C file that defines every function of include/encore/c_api.h with an empty body, and an enum of
its constants. Compiled with debug information it has the binary interface of the C library, which
itself takes minutes to compile and has C++ beside it.

    tools/package/c_stubs.py < include/encore/c_api.h > stubs.c
"""

import re
import sys

BODY = "{ __builtin_trap(); }"


def main():
    header = re.sub(r"//[^\n]*|/\*.*?\*/", "", sys.stdin.read(), flags=re.S)
    functions = re.findall(r"^ENCORE_API ([^;{}]+\));", header, re.M)
    if not functions or len(functions) != header.count("ENCORE_API "):
        sys.exit(f"c_stubs: {len(functions)} functions were found; wanted the "
                 f"{header.count('ENCORE_API ')} after ENCORE_API in the header on standard input")
    # The version is to change.
    constants = [name for name in re.findall(r"^#define (ENCORE_\w+) +\S", header, re.M)
                 if name != "ENCORE_C_API_VERSION"]
    print('#include "encore/c_api.h"')
    for function in functions:
        print(function, BODY)
    print("enum encore_constants {")
    for name in constants:
        print(f"  value_of_{name} = {name},")
    print("};\nenum encore_constants encore_constants(void)", BODY)


if __name__ == "__main__":
    main()
