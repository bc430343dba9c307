# SPDX-License-Identifier: Apache-2.0
#
# Configures the project of a user (tests/consumer) with encore's source tree inside, builds
# nothing, and reads from the compiler's commands how the library would be optimised:
#   cmake -DROOT=<the source tree> -DWORK=<folder of its own> -P check.cmake

cmake_policy(VERSION 3.20)
file(REMOVE_RECURSE "${WORK}")
find_program(ninja ninja)
set(single "Unix Makefiles")
if(ninja)
  set(single Ninja)
endif()

# expect_level(<name> <wanted> <generator> <config> <arguments>...): <wanted> is the last -O in the
# command of every object of the library; empty for none.
function(expect_level name wanted generator config)
  set(folder "${WORK}/${name}")
  if(NOT EXISTS "${folder}/compile_commands.json")
    execute_process(
      COMMAND "${CMAKE_COMMAND}" -G "${generator}" -S "${ROOT}/tests/consumer" -B "${folder}"
              "-DENCORE_SOURCE_DIR=${ROOT}"
              "-DCMAKE_PREFIX_PATH=${ROOT}/.deps/highway"
              -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DENCORE_OPENMP=OFF ${ARGN}
      RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT result EQUAL 0)
      message(FATAL_ERROR "${name}: configuring failed: ${output}")
    endif()
  endif()
  # Else bytes that are not ASCII, as in the name of a folder, would end a line.
  file(STRINGS "${folder}/compile_commands.json" commands ENCODING UTF-8
       REGEX "\"command\".*/encore_objects\\.dir/")
  if(NOT config STREQUAL "")
    list(FILTER commands INCLUDE REGEX "/encore_objects\\.dir/${config}/")
  endif()
  # A room is a file of its own (ENCORE_UNITY), the kernels are many.
  foreach(room base io kernels nn ops platform)
    set(found "${commands}")
    list(FILTER found INCLUDE REGEX "(unity_${room}_cxx|engine/${room}/)")
    if(NOT found)
      message(SEND_ERROR
              "${name} ${config}: no command for engine/${room}, wanted the whole engine")
    endif()
  endforeach()
  # Without unity files the library has some 70. A room that lost most of its own would pass above.
  if(NOT "${commands}" MATCHES "unity_")
    list(LENGTH commands count)
    if(count LESS 50)
      message(SEND_ERROR "${name} ${config}: found ${count} commands, wanted at least 50")
    endif()
  endif()
  foreach(command IN LISTS commands)
    string(REGEX MATCHALL " -O[a-z0-9]*" levels "${command}")
    list(POP_BACK levels level)
    string(STRIP "${level}" level)
    if(NOT level STREQUAL wanted)
      message(SEND_ERROR "${name} ${config}: found '${level}', wanted '${wanted}' in ${command}")
      return()
    endif()
  endforeach()
endfunction()

expect_level(none -O3 ${single} "")
expect_level(debug -O3 ${single} "" -DCMAKE_BUILD_TYPE=Debug)
expect_level(release -O3 ${single} "" -DCMAKE_BUILD_TYPE=Release)
expect_level(small -O3 ${single} "" -DCMAKE_BUILD_TYPE=MinSizeRel)
expect_level(debian -O3 ${single} "" -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-O0)

# What a host, or .ci/run, chose on purpose.
expect_level(with_debug_info -O2 ${single} "" -DCMAKE_BUILD_TYPE=RelWithDebInfo)
expect_level(quick -O1 ${single} "" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1)
expect_level(unoptimized "" ${single} "" -DCMAKE_BUILD_TYPE=Debug -DENCORE_UNOPTIMIZED=ON)

# A Release build's command is what it was: its -O3 stands there once, from CMake.
file(STRINGS "${WORK}/release/compile_commands.json" command LIMIT_COUNT 1
     ENCODING UTF-8 REGEX "\"command\".*/encore_objects\\.dir/")
string(REGEX MATCHALL " -O[a-z0-9]*" levels "${command}")
if(NOT levels STREQUAL " -O3")
  message(SEND_ERROR "release: found '${levels}', wanted one -O3")
endif()

if(ninja)
  foreach(pair Debug:-O3 Release:-O3 MinSizeRel:-O3 RelWithDebInfo:-O2)
    string(REPLACE ":" ";" pair "${pair}")
    list(GET pair 0 config)
    list(GET pair 1 level)
    expect_level(several "${level}" "Ninja Multi-Config" ${config}
      "-DCMAKE_CONFIGURATION_TYPES=Debug\\;Release\\;MinSizeRel\\;RelWithDebInfo")
  endforeach()
endif()
