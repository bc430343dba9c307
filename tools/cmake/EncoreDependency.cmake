# SPDX-License-Identifier: Apache-2.0
#
# encore_dependency(): an installed package, or a pinned release with its hash from elsewhere. Which
# ones encore needs is in EncoreDependencies.cmake.

include(FetchContent)

# Where FetchContent is to get the archive from: a copy on disk that this downloads, or the address
# itself. `problem` becomes empty, or why it cannot be had: FetchContent would try again for more
# than a minute and end with a page of text.
function(encore_dependency_archive package address hash url problem)
  set(${problem} "" PARENT_SCOPE)
  set(${url} "${address}" PARENT_SCOPE)
  set(base "${FETCHCONTENT_BASE_DIR}")
  if(NOT base)
    set(base "${CMAKE_BINARY_DIR}/_deps")
  endif()
  set(archive "${base}/${package}.tar.gz")
  if(NOT EXISTS "${archive}")
    # What is here already, or is to be used as it is.
    string(TOUPPER "${package}" upper)
    string(TOLOWER "${package}" lower)
    if(FETCHCONTENT_SOURCE_DIR_${upper} OR FETCHCONTENT_FULLY_DISCONNECTED
       OR EXISTS "${base}/${lower}-src")
      return()
    endif()
    # A surrounding project may have said where it comes from.
    get_property(declared GLOBAL PROPERTY "_FetchContent_${lower}_savedDetails" DEFINED)
    if(declared)
      return()
    endif()
    # Without a network a name is not found, which takes no time; ten seconds without a byte are a
    # network that swallows everything.
    file(DOWNLOAD "${address}" "${archive}.part" INACTIVITY_TIMEOUT 10 STATUS status)
    list(GET status 0 code)
    if(NOT code EQUAL 0)
      file(REMOVE "${archive}.part")
      list(GET status 1 words)
      string(REPLACE "\"" "" words "${words}")
      set(${problem} "${address}: ${words}" PARENT_SCOPE)
      return()
    endif()
    file(RENAME "${archive}.part" "${archive}")
  endif()
  file(SHA256 "${archive}" found)
  if(NOT found STREQUAL hash)
    file(REMOVE "${archive}")
    set(${problem} "${address}: its SHA256 is ${found}, wanted ${hash}" PARENT_SCOPE)
    return()
  endif()
  set(${url} "${archive}" PARENT_SCOPE)
endfunction()

# encore_dependency(<package> <version> TARGET <target> URL <url> SHA256 <hash> APT <package>
#                   [OPTIONS <name>=<value>...])
#
# APT says which package of Debian and Ubuntu it is, and of which releases where not of all. Makes
# <target> available. A target of that name that the surrounding project has already is taken
# as it is, so that a project may bring its own. OPTIONS are cache variables set before a fetched
# project is configured.
function(encore_dependency package version)
  cmake_parse_arguments(arg "" "TARGET;URL;SHA256;APT" "OPTIONS" ${ARGN})
  if(TARGET ${arg_TARGET})
    return()
  endif()
  find_package(${package} ${version} CONFIG QUIET)
  if(TARGET ${arg_TARGET})
    message(STATUS "encore: ${package} ${${package}_VERSION} in ${${package}_DIR}")
    # Whoever links a static encore, in whatever folder, links this too.
    set_target_properties(${arg_TARGET} PROPERTIES IMPORTED_GLOBAL TRUE)
    return()
  endif()
  set(found "found none")
  if(${package}_CONSIDERED_VERSIONS)
    list(JOIN ${package}_CONSIDERED_VERSIONS " and " versions)
    set(found "found ${versions}")
  endif()
  if(NOT ENCORE_FETCH_DEPENDENCIES)
    message(FATAL_ERROR
      "encore needs ${package} ${version} or newer, ${found}. Install it (Debian and Ubuntu: "
      "${arg_APT}), or add its folder to CMAKE_PREFIX_PATH, or define the target ${arg_TARGET} "
      "before adding encore, or set ENCORE_FETCH_DEPENDENCIES=ON to let encore download it.")
  endif()
  message(STATUS "encore: ${package} from ${arg_URL}")
  encore_dependency_archive(${package} "${arg_URL}" "${arg_SHA256}" url problem)
  if(problem)
    message(FATAL_ERROR
      "encore needs ${package} ${version} or newer, ${found}, and cannot download it (${problem}): "
      "run tools/setup.sh, or install it (Debian and Ubuntu: ${arg_APT}), or add its folder to "
      "CMAKE_PREFIX_PATH.")
  endif()
  foreach(option IN LISTS arg_OPTIONS)
    string(REGEX MATCH "^([^=]+)=(.*)$" matched "${option}")
    set(${CMAKE_MATCH_1} "${CMAKE_MATCH_2}" CACHE INTERNAL "set by encore")
  endforeach()
  # Static and relocatable, so that both kinds of libencore can take them in; options as given above
  # even in projects with old policies.
  set(BUILD_SHARED_LIBS OFF)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  set(CMAKE_POLICY_DEFAULT_CMP0077 NEW)
  if(POLICY CMP0135)
    cmake_policy(SET CMP0135 NEW)
  endif()
  FetchContent_Declare(${package} URL "${url}" URL_HASH "SHA256=${arg_SHA256}")
  FetchContent_MakeAvailable(${package})
  string(REGEX REPLACE "^.*::" "" plain_target "${arg_TARGET}")
  if(NOT TARGET ${arg_TARGET})
    add_library(${arg_TARGET} ALIAS ${plain_target})
  endif()
  # Other people's headers are system headers: their warnings are not ours.
  get_target_property(includes ${plain_target} INTERFACE_INCLUDE_DIRECTORIES)
  set_target_properties(${plain_target} PROPERTIES
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${includes}")
endfunction()
