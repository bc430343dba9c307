# SPDX-License-Identifier: Apache-2.0
#
# How encore's own targets are compiled: encore_compile_options(<target>), for the library, tests,
# tools and benchmarks alike. Everything is PRIVATE: users inherit nothing from here.

# One list of SIMD targets for the whole build, because build time is files times targets. On x86
# this leaves SSE2, SSE4, AVX2, AVX3 (AVX-512), AVX3_DL (with the int8 dot product: Intel from Ice
# Lake on) and AVX3_ZEN4 (with the bf16 dot product; AMD). Left out: SSSE3, and AVX3_SPR, whose bf16
# dot product takes longer than two FMAs on the machines that have it; SVE and RVV, whose vectors
# have no size at compile time and cannot stand in arrays. ENCORE_SIMD=every has the first two as
# well, to show that they give the same bits; widths leaves one target of 4, 8 and 16 lanes each on
# x86, for builds in which kernels compile slowly.
set(encore_disabled_targets "HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128|HWY_RVV")
if(NOT ENCORE_SIMD STREQUAL "every")
  string(PREPEND encore_disabled_targets "HWY_SSSE3|HWY_AVX3_SPR|")
endif()
if(ENCORE_SIMD STREQUAL "widths")
  string(PREPEND encore_disabled_targets "HWY_SSE4|HWY_AVX3|HWY_AVX3_ZEN4|")
endif()
set(encore_simd_definitions "HWY_DISABLED_TARGETS=(${encore_disabled_targets})" HWY_WANT_AVX3_DL)
if(NOT ENCORE_SIMD STREQUAL "widths")
  # For kernels that are the same on some of AVX-512 (engine/kernels/fewer_avx3.h).
  list(APPEND encore_simd_definitions "ENCORE_DISABLED_TARGETS=(${encore_disabled_targets})")
endif()
if(ENCORE_SIMD STREQUAL "emu128")
  # Highway takes EMU128 away from GCC before 14, which compiles it wrongly, and puts SCALAR in its
  # place, which lacks operations.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
    message(FATAL_ERROR "ENCORE_SIMD=emu128 needs Clang, or GCC 14 or newer.")
  endif()
  set(encore_simd_definitions HWY_COMPILE_ONLY_EMU128)
elseif(NOT ENCORE_SIMD MATCHES "^(all|every|widths)$")
  message(FATAL_ERROR "ENCORE_SIMD is '${ENCORE_SIMD}'; it must be 'all', 'every', 'widths' or "
                      "'emu128'.")
endif()
if(ENCORE_FEW_TILES)
  list(APPEND encore_simd_definitions ENCORE_FEW_TILES)
endif()

if(WIN32 AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  message(FATAL_ERROR
          "encore needs Clang on Windows: GCC does not align the stack there for vectors of 32 and "
          "64 bytes (https://gcc.gnu.org/bugzilla/show_bug.cgi?id=54412), and what it builds stops. "
          "tools/cross.sh x86_64-windows-gnu builds with Clang.")
endif()

if(NOT CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang|MSVC")
  message(FATAL_ERROR
          "encore knows GCC, Clang and MSVC, and which of their options keep its results the same "
          "on every machine; CMAKE_CXX_COMPILER is ${CMAKE_CXX_COMPILER} "
          "(${CMAKE_CXX_COMPILER_ID}).")
endif()

# The numeric contract: compilers must not fuse a*b+c of their own accord (GCC does so even across
# intrinsics), or the same source gives different bits on different targets. And whatever a project
# around encore has in CMAKE_CXX_FLAGS: -ffast-math changes bits, and without exceptions memory that
# cannot be had would end the process. Nor is encore a part of a host's link-time optimisation:
# kernels are reached through pointers, so there is nothing to gain, and each of the host's programs
# would compile all of them anew, for every target and by the linker's options.
if(NOT MSVC)
  set(encore_numeric_options -fno-fast-math -ffp-contract=off -fexceptions -fno-lto)
  set(encore_warning_options -Wall -Wextra -Wpedantic -Wshadow)
  set(encore_werror_options -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 sees overlapping copies in every "literal" + std::string (its bug 105651).
    list(APPEND encore_warning_options -Wno-restrict)
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 13 and 14 take any reference for dangling that comes from a function with a temporary
    # argument, whatever the function returns.
    list(APPEND encore_warning_options -Wno-dangling-reference)
  endif()
else()  # cl and clang-cl, which ignores the options above; cl has a pragma in base/strict_math.h
  set(encore_numeric_options /fp:precise /EHsc /permissive- /utf-8)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    set(encore_numeric_options /clang:-fno-fast-math /clang:-ffp-contract=off /EHsc)
  endif()
  set(encore_warning_options /W4)
  set(encore_werror_options /WX)
endif()

set(encore_sanitize_options "")
if(ENCORE_SANITIZE)
  # Of debug information the lines alone: stacks show no more, and the rest takes long to write.
  set(encore_sanitize_options -fsanitize=${ENCORE_SANITIZE} -fno-sanitize-recover=all
      -fno-omit-frame-pointer -g1)
endif()
# Of kernels on top of that. With both of these sanitizers their functions, which are thousands of
# inlined operations, compile for minutes; two thirds of it are lines and one check, which is left
# out: what a wrong pointer touches is seen all the same.
set(encore_sanitize_kernel_options "")
if(ENCORE_SANITIZE MATCHES "address" AND ENCORE_SANITIZE MATCHES "undefined")
  set(encore_sanitize_kernel_options -fno-sanitize=pointer-overflow -g0)
endif()

function(encore_compile_options target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  # Kernels are compiled once for each target by including themselves: not in one file with others.
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF UNITY_BUILD OFF
                        INTERPROCEDURAL_OPTIMIZATION OFF)
  target_compile_definitions(${target} PRIVATE ${encore_simd_definitions})
  if(WIN32)
    target_compile_definitions(${target} PRIVATE NOMINMAX UNICODE)
  endif()
  target_compile_options(${target} PRIVATE ${encore_numeric_options} ${encore_sanitize_options})
  target_link_options(${target} PRIVATE ${encore_sanitize_options})
  if(ENCORE_IS_TOP_LEVEL)
    target_compile_options(${target} PRIVATE ${encore_warning_options})
  elseif(NOT MSVC)
    # Its warnings are for those who work on encore; a host's -Werror must not stop at them.
    target_compile_options(${target} PRIVATE -w)
  endif()
  if(ENCORE_WERROR)
    target_compile_options(${target} PRIVATE ${encore_werror_options})
  endif()
endfunction()

# encore_optimize(<target>): the library's objects are optimised whatever the project around it
# chose, because kernels at -O0 take 40 times as long and nobody is told. The last -O of the flags
# decides: none at all, and those for debugging or size (-O0, -Og, -Os, -Oz), become -O3. -O1 and
# more stay as they are, and so does everything with ENCORE_UNOPTIMIZED. MSVC's flags are left
# alone, as /RTC1 of its Debug builds excludes /O2.
function(encore_optimize target)
  if(ENCORE_UNOPTIMIZED OR MSVC)
    return()
  endif()
  set(configs "${CMAKE_CONFIGURATION_TYPES}")
  if(NOT configs)
    set(configs "${CMAKE_BUILD_TYPE}")
  endif()
  if(NOT configs)
    set(configs "None")  # has no flags of its own
  endif()
  get_directory_property(directory_options COMPILE_OPTIONS)
  foreach(config IN LISTS configs)
    string(TOUPPER "CMAKE_CXX_FLAGS_${config}" flags_of_config)
    set(flags "${CMAKE_CXX_FLAGS} ${${flags_of_config}} ${directory_options}")
    string(REGEX MATCHALL "(^|[ ;:>])-O[a-z0-9]*" levels "${flags}")
    list(POP_BACK levels level)
    if(level MATCHES "-O([1-9]|fast)?$")
      continue()
    endif()
    message(VERBOSE "encore: ${target} is compiled with -O3 in the configuration ${config}")
    if(CMAKE_CONFIGURATION_TYPES)
      target_compile_options(${target} PRIVATE "$<$<CONFIG:${config}>:-O3>")
    else()
      target_compile_options(${target} PRIVATE -O3)
    endif()
  endforeach()
endfunction()
