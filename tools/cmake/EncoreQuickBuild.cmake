# SPDX-License-Identifier: Apache-2.0
#
# How tests and the command line are compiled, whose own speed hardly counts: what they measure is
# in the libraries. And what ENCORE_QUICK_BUILD changes: not the kernels.

# encore_compile_level(<target> <level>): its optimisation in Release builds, e.g. -O1.
function(encore_compile_level target level)
  if(NOT MSVC)
    target_compile_options(${target} PRIVATE
                           "$<$<CONFIG:Release>:${level};${encore_options_of${level}}>")
  endif()
endfunction()

# encore_cached_headers(<target>): through ccache, Clang's precompiled headers say nothing of when a
# header was written. Otherwise no second build could take them from the cache, nor what is compiled
# with them. CMake names them by their absolute path, so it must be a build at the same path.
function(encore_cached_headers target)
  if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache")
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()

# encore_quick_build(<target> <level> <header>...): with ENCORE_QUICK_BUILD not optimised and with
# those headers precompiled, else with <level> and without. A precompiled header hides an #include
# that is missing, so one build of all files has to do without. Clang's halve the time of a test;
# GCC's save a tenth, and are left out.
function(encore_quick_build target level)
  if(NOT ENCORE_QUICK_BUILD)
    encore_compile_level(${target} ${level})
    return()
  endif()
  encore_compile_level(${target} -O0)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    return()
  endif()
  # One for all targets with the same headers and options.
  string(MD5 digest "${ARGN}")
  set(owner "encore_precompiled_${digest}")
  if(NOT TARGET ${owner})
    set(source "${PROJECT_BINARY_DIR}/${owner}.cc")
    file(GENERATE OUTPUT "${source}" CONTENT "")
    add_library(${owner} OBJECT "${source}")
    encore_compile_options(${owner})
    encore_compile_level(${owner} -O0)
    encore_cached_headers(${owner})
    foreach(library nlohmann_json::nlohmann_json GTest::gtest)
      if(TARGET ${library})
        target_link_libraries(${owner} PRIVATE ${library})
      endif()
    endforeach()
    target_precompile_headers(${owner} PRIVATE ${ARGN})
  endif()
  encore_cached_headers(${target})
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()

# encore_quick_engine(<target>): the same for objects of the libraries, as optimised as ever.
function(encore_quick_engine target)
  if(ENCORE_QUICK_BUILD AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    encore_cached_headers(${target})
    target_precompile_headers(${target} PRIVATE ${encore_standard_headers} <nlohmann/json.hpp>)
  endif()
endfunction()

# encore_unity(<target> [EXCEPT <file>...] [APART <file>...]): with ENCORE_UNITY, the files of each
# folder are compiled as one: headers are read once, templates made once. Folders named kernels are
# not, whose files include themselves; nor files with options of their own, nor EXCEPT. APART are
# one file more a folder: others there have a name of theirs. This hides an #include that is
# missing, so other builds do without.
function(encore_unity target)
  if(NOT ENCORE_UNITY)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "EXCEPT;APART")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # By pragmas, so that kernels keep their options, and ccache what it has of them. A name may hide
  # one of another file. And to GCC each file is a header, whose structures others could see.
  set(before "")
  if(NOT MSVC)
    string(APPEND before "#pragma GCC diagnostic ignored \"-Wshadow\"\n")
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    string(APPEND before "#pragma GCC diagnostic ignored \"-Wsubobject-linkage\"\n")
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_CODE_BEFORE_INCLUDE "${before}")
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    get_filename_component(name "${source}" NAME_WE)
    get_filename_component(folder "${source}" DIRECTORY)
    get_filename_component(folder "${folder}" NAME)
    if(folder AND NOT folder STREQUAL "kernels" AND NOT name IN_LIST arg_EXCEPT)
      if(name IN_LIST arg_APART)
        string(APPEND folder "_apart")
      endif()
      set_property(SOURCE "${source}" PROPERTY UNITY_GROUP "${folder}")
    endif()
  endforeach()
endfunction()

set(encore_standard_headers
    <algorithm> <array> <atomic> <bit> <cmath> <cstddef> <cstdint> <cstring> <filesystem> <fstream>
    <functional> <iterator> <limits> <map> <memory> <numeric> <optional> <random> <set> <span>
    <sstream> <stdexcept> <string> <string_view> <thread> <tuple> <unordered_map> <utility>
    <variant> <vector>)
set(encore_test_headers ${encore_standard_headers} <gtest/gtest.h> <nlohmann/json.hpp>)
set(encore_tool_headers ${encore_standard_headers} <nlohmann/json.hpp>)
