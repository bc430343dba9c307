# SPDX-License-Identifier: Apache-2.0
#
# encore_readme_example(<readme> <output>): writes the first ```cpp block of a Markdown file to a
# source file. Also a script: cmake -DREADME=<readme> -DOUTPUT=<output> -P readme_example.cmake

cmake_policy(VERSION 3.20)

function(encore_readme_example readme output)
  file(READ "${readme}" text)
  string(FIND "${text}" "\n```cpp\n" begin)
  if(begin EQUAL -1)
    message(FATAL_ERROR "${readme} has no ```cpp block.")
  endif()
  math(EXPR begin "${begin} + 8")
  string(SUBSTRING "${text}" ${begin} -1 text)
  string(FIND "${text}" "\n```" end)
  if(end EQUAL -1)
    message(FATAL_ERROR "The first ```cpp block of ${readme} has no end.")
  endif()
  string(SUBSTRING "${text}" 0 ${end} text)
  if(NOT text MATCHES "int main\\(")
    message(FATAL_ERROR "The first ```cpp block of ${readme} is no whole program: no 'int main('.")
  endif()
  # Written only when changed, so that nothing is compiled again in vain.
  if(EXISTS "${output}")
    file(READ "${output}" old)
    if("${old}" STREQUAL "${text}\n")
      return()
    endif()
  endif()
  file(WRITE "${output}" "${text}\n")
endfunction()

if(CMAKE_SCRIPT_MODE_FILE AND DEFINED README AND DEFINED OUTPUT)
  encore_readme_example("${README}" "${OUTPUT}")
endif()
