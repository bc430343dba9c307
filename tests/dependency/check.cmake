# SPDX-License-Identifier: Apache-2.0
#
# Configures the project here with a dependency that can be fetched, and with some that cannot,
# which must end soon, with one sentence:
#   cmake -DWORK=<folder of its own> -P check.cmake

set(here "${CMAKE_CURRENT_LIST_DIR}")
file(REMOVE_RECURSE "${WORK}")

# Configures with these arguments; sets result, output and seconds.
macro(configure name)
  string(TIMESTAMP begin "%s")
  execute_process(COMMAND "${CMAKE_COMMAND}" -S "${here}" -B "${WORK}/${name}" ${ARGN}
                  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(TIMESTAMP end "%s")
  math(EXPR seconds "${end} - ${begin}")
  string(REGEX REPLACE "[ \n]+" " " output "${output}")  # CMake breaks lines
endmacro()

function(expect_sentence name)
  if(result EQUAL 0)
    message(SEND_ERROR "${name}: it succeeds")
  endif()
  foreach(part IN LISTS ARGN)
    string(FIND "${output}" "${part}" at)
    if(at EQUAL -1)
      message(SEND_ERROR "${name}: '${part}' is not in: ${output}")
    endif()
  endforeach()
  # FetchContent's own tries take 85 s.
  if(seconds GREATER 20)
    message(SEND_ERROR "${name}: it took ${seconds} s to fail")
  endif()
endfunction()

# A release of a package that has nothing but a target.
file(WRITE "${WORK}/release/thing/CMakeLists.txt" [[
add_library(thing INTERFACE)
set_target_properties(thing PROPERTIES IS fetched)
]])
execute_process(COMMAND "${CMAKE_COMMAND}" -E tar czf "${WORK}/thing.tar.gz" thing
                WORKING_DIRECTORY "${WORK}/release" COMMAND_ERROR_IS_FATAL ANY)
file(SHA256 "${WORK}/thing.tar.gz" hash)
configure_file("${WORK}/thing.tar.gz" "${WORK}/other.tar.gz" COPYONLY)
set(nowhere "https://encore.invalid/thing-1.2.tar.gz")  # RFC 2606: never resolves
set(thing -DPACKAGE=thing "-DHASH=${hash}")

foreach(times 1 2)  # the second time from what the first has left, without a network
  configure(fetched ${thing} "-DURL=file://${WORK}/thing.tar.gz")
  if(NOT result EQUAL 0 OR NOT output MATCHES "the dependency is fetched")
    message(SEND_ERROR "configured ${times} times: ${output}")
  endif()
  file(REMOVE "${WORK}/thing.tar.gz")
endforeach()

configure(unreachable ${thing} "-DURL=${nowhere}")
expect_sentence(unreachable "encore needs thing 1.2 or newer, found none, and cannot download it"
                "${nowhere}" "run tools/setup.sh" "libthing-dev" "CMAKE_PREFIX_PATH")

# One that is too old is named.
file(WRITE "${WORK}/old/lib/cmake/thing/thingConfig.cmake" "add_library(thing::thing INTERFACE)\n")
file(WRITE "${WORK}/old/lib/cmake/thing/thingConfigVersion.cmake" [[
set(PACKAGE_VERSION 0.9)
set(PACKAGE_VERSION_COMPATIBLE FALSE)
]])
configure(old ${thing} "-DURL=${nowhere}" "-DCMAKE_PREFIX_PATH=${WORK}/old")
expect_sentence(old "encore needs thing 1.2 or newer, found 0.9, and cannot download it")

# Another file than the pinned one is not used.
configure(other -DPACKAGE=thing -DHASH=00 "-DURL=file://${WORK}/other.tar.gz")
expect_sentence(other "its SHA256 is ${hash}, wanted 00")

# Where nothing may be fetched, as in a part of another project.
configure(old_alone ${thing} -DENCORE_FETCH_DEPENDENCIES=OFF "-DCMAKE_PREFIX_PATH=${WORK}/old")
expect_sentence(old_alone "encore needs thing 1.2 or newer, found 0.9" "libthing-dev"
                "ENCORE_FETCH_DEPENDENCIES=ON")
configure(none_alone ${thing} -DENCORE_FETCH_DEPENDENCIES=OFF)
expect_sentence(none_alone "encore needs thing 1.2 or newer, found none" "libthing-dev")

# Highway's package is too old in some releases, so the advice names those that suffice.
set(user "${here}/../consumer")
get_filename_component(root "${here}/../.." ABSOLUTE)
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${user}" -B "${WORK}/user"
                        "-DENCORE_SOURCE_DIR=${root}" -DCMAKE_DISABLE_FIND_PACKAGE_hwy=ON
                RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
string(REGEX REPLACE "[ \n]+" " " output "${output}")
set(seconds 0)
expect_sentence(user "libhwy-dev of Debian 13, Ubuntu 25.04 or newer")
