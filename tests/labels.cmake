# SPDX-License-Identifier: Apache-2.0
#
# The labels of tests, by which .ci/run and `ctest -L` choose them. A folder stands for all tests in
# it, those of tomorrow too; EXCEPT takes some back. A name that is not there is an error.

# encore_label(<label> <folder or folder/test>... [EXCEPT <folder/test>...])
function(encore_label label)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "EXCEPT")
  set(files "")
  foreach(name IN LISTS arg_UNPARSED_ARGUMENTS)
    file(GLOB found RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}"
         "${name}/*_test.cc" "${name}_test.cc")
    if(NOT found)
      message(FATAL_ERROR "tests/labels.cmake: ${label} names ${name}, which is not in tests/")
    endif()
    list(APPEND files ${found})
  endforeach()
  foreach(name IN LISTS arg_EXCEPT)
    if(NOT "${name}_test.cc" IN_LIST files)
      message(FATAL_ERROR "tests/labels.cmake: ${label} excepts ${name}, which it does not have")
    endif()
    list(REMOVE_ITEM files "${name}_test.cc")
  endforeach()
  foreach(file IN LISTS files)
    set_property(GLOBAL APPEND PROPERTY "encore_labels_${file}" ${label})
  endforeach()
endfunction()

# A minute's worth: all but the tests that take more than two seconds.
encore_label(quick base kernels ops platform io nn images tokenizer models text contract api process
                   fuzz support serve cli
  EXCEPT kernels/gemm_tile kernels/gemm_types_tile ops/attention_window nn/encoder_switches
         nn/encoder_workspace nn/packed_cache_damage tokenizer/tokenizer_growth
         contract/contract_property contract/encoder_contract contract/encoder_plans
         contract/encoder_switch_plans contract/text_property process/encoder_alloc process/soak
         process/text_process text/damaged_files cli/cli_resume cli/cli_written
         cli/bench_measure cli/cli_bench cli/cli_bench_model cli/cli_bench_output
         cli/cli_broken cli/cli_verify)

# What looks at numbers, for another compiler: sums and kernels. Not what depends on plans and sizes
# alone.
encore_label(numeric kernels ops nn contract api/moved_from process
                     text/precision_accuracy text/text_families text/text_stack
  EXCEPT contract/encoder_plans contract/encoder_switch_plans contract/text_bits
         contract/text_property nn/encoder_workspace process/text_process process/tokenizer_alloc
         kernels/conversion kernels/exhaustive)

# What starts threads, by itself or through what takes an executor, for the thread sanitizer.
encore_label(threads platform contract process serve api/c_api
                     ops/attention ops/attention_bits ops/gemm ops/gemm_types ops/matmul
                     ops/multi_head_attention ops/packed_linear
                     nn/encoder_amx_bf16 nn/encoder_many_rows nn/encoder_precision nn/encoder_rows
                     text/text_families text/text_minilm text/text_precision tokenizer/tokenizer
  EXCEPT contract/encoder_switch_plans contract/family_golden contract/golden_bits
         contract/text_bits)

# Kernels and whole encoders, for portable code: what lies between is the same for every target.
encore_label(portable kernels ops nn/encoder nn/encoder_precision process/resident_memory
  EXCEPT kernels/conversion kernels/exhaustive ops/attention_bits ops/attention_layout
         ops/attention_window ops/error_bounds ops/multi_head_attention ops/packed_linear
         ops/weight_source)

# What depends on the target, the compiler or the sign of char, for an emulated AArch64. Not how a
# pass is planned, and other models than it has anyway, which are the same everywhere.
encore_label(emulated base/bf16 kernels ops contract
                      nn/encoder nn/padded_batch nn/thread_plan
                      platform/cpu_info platform/thread_pool platform/thread_team
                      text/text_families tokenizer/tokenizer_fixture
  EXCEPT kernels/conversion kernels/exhaustive ops/attention_layout ops/attention_window
         ops/element_type ops/error_bounds ops/gemm_types ops/matmul ops/multi_head_attention
         ops/weight_source contract/contract_property contract/encoder_plans
         contract/encoder_switch_plans contract/text_bits contract/text_property)

# What tools/cross.sh runs for Windows, under wine: files, cores, threads and bits. Left out is what
# asks for things that Windows lacks:
#   POSIX's processes   process, nn/packed_cache, nn/packed_cache_damage, io/folder_files
#   users, modes, limits, umasks, links   io/safetensors, platform/file_writer,
#                       platform/temporary_name, platform/thread_pool_options, text/text_cache
#   sysfs, /proc, masks of processes      platform/core_domains, platform/cpu_info,
#                       platform/thread_pool
#   a POSIX shell       cli
#   guard pages by mmap contract/guard_pages
#   shortening a file that is mapped      models/touched_files
# or wine 8, which does not replace a file that is mapped: models/model_config,
# tokenizer/packed_tokenizer. And, as nothing in it is the system's, what takes long to compile or
# to run: kernels, ops, nn, most of models, contract, text and tokenizer. `encore verify` has the
# bits of kernels.
encore_label(windows base platform support images
                     io/json_tree io/torch_file io/safetensors_hostile
                     tokenizer/tokenizer_fixture api/c_api api/c_api_calls contract/golden_bits
                     contract/text_bits text/text_prepare
  EXCEPT platform/core_domains platform/cpu_info platform/file_writer platform/temporary_name
         platform/thread_pool platform/thread_pool_options)

# The published bits of encoders.
encore_label(bits contract/golden_bits)
