# SPDX-License-Identifier: Apache-2.0
#
# Libraries that break the numeric contract on purpose, for the test that `encore verify` sees it
# (.ci/run broken). Never for use: ENCORE_TEST_BREAK is empty in every other build.
#
#   split_accumulator  a product sums its even and its odd k apart
#   contraction        LayerNorm fuses a multiplication and a subtraction, on AVX2 alone (the
#                      kernels leave a compiler that may contract nothing to fuse)
#   reduction_order    softmax and LayerNorm add their 16 lanes one after another
#
# The kernels' sources see ENCORE_TEST_BREAK_ and the name in capitals: gemm_tile-inl.h,
# norm.cc, reduce-inl.h.

set(ENCORE_TEST_BREAK "" CACHE STRING "Break the contract, for a test of `encore verify`")
set_property(CACHE ENCORE_TEST_BREAK PROPERTY STRINGS "" split_accumulator contraction
             reduction_order)

# encore_test_break(): called where the kernels are compiled.
function(encore_test_break)
  if(NOT ENCORE_TEST_BREAK)
    return()
  endif()
  message(WARNING "encore: this library breaks its contract (${ENCORE_TEST_BREAK})")
  get_property(known CACHE ENCORE_TEST_BREAK PROPERTY STRINGS)
  if(NOT ENCORE_TEST_BREAK IN_LIST known)
    message(FATAL_ERROR "ENCORE_TEST_BREAK is '${ENCORE_TEST_BREAK}'; it must be empty, "
                        "split_accumulator, contraction or reduction_order.")
  endif()
  string(TOUPPER "ENCORE_TEST_BREAK_${ENCORE_TEST_BREAK}" definition)
  # These sources alone, so that another value compiles few files anew.
  set(sources gemm_f32.cc)
  if(ENCORE_TEST_BREAK STREQUAL "contraction")
    set(sources norm.cc)
  elseif(ENCORE_TEST_BREAK STREQUAL "reduction_order")
    set(sources norm.cc softmax.cc)
  endif()
  list(TRANSFORM sources PREPEND "${PROJECT_SOURCE_DIR}/engine/kernels/")
  set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_DEFINITIONS "${definition}=1")
endfunction()
