# SPDX-License-Identifier: Apache-2.0
#
# encore_page_example(<page> <output> <language> <header>): writes the program of a Markdown file
# that includes a header, the first ```<language> block that does, to a source file. Also a script:
# cmake -DPAGE=... -DOUTPUT=... -DBLOCK=<language> -DHEADER=... -P page_example.cmake

cmake_policy(VERSION 3.20)

function(encore_page_example page output language header)
  file(READ "${page}" rest)
  set(fence "\n```${language}\n")
  string(LENGTH "${fence}" fence_length)
  set(text "")
  while(NOT text MATCHES "#include \"${header}\"")
    string(FIND "${rest}" "${fence}" begin)
    if(begin EQUAL -1)
      message(FATAL_ERROR "${page} has no ```${language} block that includes ${header}.")
    endif()
    math(EXPR begin "${begin} + ${fence_length}")
    string(SUBSTRING "${rest}" ${begin} -1 rest)
    string(FIND "${rest}" "\n```" end)
    if(end EQUAL -1)
      message(FATAL_ERROR "A ```${language} block of ${page} has no end.")
    endif()
    string(SUBSTRING "${rest}" 0 ${end} text)
  endwhile()
  if(NOT text MATCHES "int main\\(")
    message(FATAL_ERROR "The block of ${page} with ${header} has no int main(.")
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

if(CMAKE_SCRIPT_MODE_FILE AND DEFINED PAGE AND DEFINED OUTPUT)
  encore_page_example("${PAGE}" "${OUTPUT}" "${BLOCK}" "${HEADER}")
endif()
