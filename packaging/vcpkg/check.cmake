# SPDX-License-Identifier: Apache-2.0
#
# Runs the port's steps without vcpkg, whose functions are stood in for by what the port needs of
# them: a release build, installed into a folder. tools/package.sh vcpkg calls it:
#
#   cmake -DWORK=FOLDER [-DFEATURES=openmp;command] [-DOPTIONS=-DNAME=VALUE;...] -P check.cmake
#
# -DCONFIGURE_ONLY=ON builds nothing, and looks at the options of the features alone.

cmake_minimum_required(VERSION 3.20)
set(PORT encore)
set(CURRENT_PACKAGES_DIR "${WORK}/installed")
file(REMOVE_RECURSE "${WORK}")

# The version is in one place, and here as vcpkg wants it.
file(READ "${CMAKE_CURRENT_LIST_DIR}/encore/vcpkg.json" manifest)
string(JSON port_version GET "${manifest}" version)
file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/../../include/encore/version.h" lines
     REGEX "^#define ENCORE_VERSION_(MAJOR|MINOR|PATCH) [0-9]+$")
string(REGEX REPLACE "[^;0-9]+" "" version "${lines}")
string(REPLACE ";" "." version "${version}")
if(NOT port_version STREQUAL version)
  message(FATAL_ERROR "vcpkg.json has version ${port_version}, version.h ${version}")
endif()

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed: ${ARGV}")
  endif()
endfunction()

function(vcpkg_check_features)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT_FEATURE_OPTIONS" "FEATURES")
  set(found "")
  while(arg_FEATURES)
    list(POP_FRONT arg_FEATURES feature option)
    string(JSON described ERROR_VARIABLE error GET "${manifest}" features "${feature}")
    if(error)
      message(FATAL_ERROR "vcpkg.json has no feature ${feature}")
    endif()
    if("${feature}" IN_LIST FEATURES)
      list(APPEND found "-D${option}=ON")
    else()
      list(APPEND found "-D${option}=OFF")
    endif()
  endwhile()
  set(${arg_OUT_FEATURE_OPTIONS} "${found}" PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  run("${CMAKE_COMMAND}" -S "${arg_SOURCE_PATH}" -B "${WORK}/build" -DCMAKE_BUILD_TYPE=Release
      -DCMAKE_INSTALL_LIBDIR=lib ${arg_OPTIONS} ${OPTIONS})
  load_cache("${WORK}/build" READ_WITH_PREFIX had_ ENCORE_OPENMP ENCORE_BUILD_TOOLS)
  foreach(pair IN ITEMS openmp/ENCORE_OPENMP command/ENCORE_BUILD_TOOLS)
    get_filename_component(feature ${pair} DIRECTORY)
    get_filename_component(option ${pair} NAME)
    set(wanted OFF)
    if("${feature}" IN_LIST FEATURES)
      set(wanted ON)
    endif()
    if(NOT had_${option} STREQUAL wanted)
      message(FATAL_ERROR "${option} is '${had_${option}}' with the features '${FEATURES}'; "
                          "wanted ${wanted}")
    endif()
  endforeach()
endfunction()

function(vcpkg_cmake_install)
  if(CONFIGURE_ONLY)
    return()
  endif()
  run("${CMAKE_COMMAND}" --build "${WORK}/build")
  run("${CMAKE_COMMAND}" --install "${WORK}/build" --prefix "${CURRENT_PACKAGES_DIR}")
endfunction()

function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "CONFIG_PATH" "")
  if(NOT CONFIGURE_ONLY AND
     NOT EXISTS "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}/encoreConfig.cmake")
    message(FATAL_ERROR "no encoreConfig.cmake in ${arg_CONFIG_PATH}")
  endif()
endfunction()

function(vcpkg_fixup_pkgconfig)
endfunction()

function(vcpkg_copy_tools)
  cmake_parse_arguments(PARSE_ARGV 0 arg "AUTO_CLEAN" "" "TOOL_NAMES")
  foreach(tool IN LISTS arg_TOOL_NAMES)
    if(NOT CONFIGURE_ONLY AND NOT EXISTS "${CURRENT_PACKAGES_DIR}/bin/${tool}")
      message(FATAL_ERROR "no bin/${tool}")
    endif()
  endforeach()
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  file(INSTALL ${arg_FILE_LIST} DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}"
       RENAME copyright)
endfunction()

include("${CMAKE_CURRENT_LIST_DIR}/encore/portfile.cmake")
