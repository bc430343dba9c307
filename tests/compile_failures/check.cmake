# SPDX-License-Identifier: Apache-2.0
#
# Compiles misuse.cc as it is and with each kind of misuse in turn:
#   cmake -DCXX=<compiler> -DROOT=<source tree> -DWORK=<folder> -P check.cmake
# Compilers of the GCC and Clang kind.

cmake_policy(SET CMP0057 NEW)
set(file "${ROOT}/tests/compile_failures/misuse.cc")
set(options -std=c++20 -Werror=unused-result "-I${ROOT}/include")

# What all of them include, once: it is most of the time.
set(header "${WORK}/included.h")
file(STRINGS "${file}" includes REGEX "^#include ")
list(JOIN includes "\n" includes)
file(WRITE "${header}" "#pragma once\n${includes}\n")
execute_process(COMMAND "${CXX}" ${options} -x c++-header "${header}" -o "${header}.gch"
                RESULT_VARIABLE result ERROR_VARIABLE errors)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "encore's headers do not compile:\n${errors}")
endif()
set(command "${CXX}" ${options} -include "${header}" -fsyntax-only "${file}")

execute_process(COMMAND ${command} RESULT_VARIABLE result ERROR_VARIABLE errors)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "correct use does not compile:\n${errors}")
endif()

file(STRINGS "${file}" lines REGEX "defined\\(ENCORE_MISUSE_")
set(count 0)
foreach(line IN LISTS lines)
  string(REGEX MATCH "ENCORE_MISUSE_[A-Z_]+" name "${line}")
  math(EXPR count "${count} + 1")
  execute_process(COMMAND ${command} "-D${name}" RESULT_VARIABLE result ERROR_VARIABLE errors)
  if(result EQUAL 0)
    message(SEND_ERROR "${name} compiles")
  elseif(NOT errors MATCHES "misuse.cc:[0-9]+:[0-9]+: error")
    message(SEND_ERROR "${name} fails elsewhere than in misuse.cc:\n${errors}")
  endif()
endforeach()
if(count LESS 30)
  message(SEND_ERROR "only ${count} kinds of misuse were found in ${file}")
endif()

# An older C++ gets one sentence, and nothing about concepts.
list(TRANSFORM options REPLACE "-std=c\\+\\+20" "-std=c++17" OUTPUT_VARIABLE older)
list(PREPEND older "${CXX}")
list(APPEND older -fsyntax-only "${file}")
execute_process(COMMAND ${older} RESULT_VARIABLE result ERROR_VARIABLE errors)
string(REGEX MATCHALL "error:" found "${errors}")
list(LENGTH found found)
if(result EQUAL 0 OR found GREATER 2 OR NOT errors MATCHES "encore's C.. headers need C..20")
  message(SEND_ERROR "as C++17 it ends with ${result} and ${found} errors, not one sentence:\n"
                     "${errors}")
endif()

# Kernels refuse options that change what floating-point operations give, unless they are undone.
set(strict "${ROOT}/engine/base/strict_math.h")
foreach(options -ffast-math -Ofast -ffinite-math-only)
  execute_process(COMMAND "${CXX}" ${options} -fsyntax-only -x c++ "${strict}"
                  RESULT_VARIABLE result ERROR_VARIABLE errors)
  if(result EQUAL 0 OR NOT errors MATCHES "the same bits everywhere")
    message(SEND_ERROR "strict_math.h accepts ${options}:\n${errors}")
  endif()
  execute_process(COMMAND "${CXX}" ${options} -fno-fast-math -fsyntax-only -x c++ "${strict}"
                  RESULT_VARIABLE result ERROR_VARIABLE errors)
  if(NOT result EQUAL 0)
    message(SEND_ERROR "strict_math.h refuses ${options} -fno-fast-math:\n${errors}")
  endif()
endforeach()
message(STATUS "${count} kinds of misuse do not compile")
