# SPDX-License-Identifier: Apache-2.0
#
# cmake --install: headers, libraries, command line, find_package(encore), and encore.pc and
# encore-text.pc for pkg-config.
#
# A static libencore needs Highway's few run-time functions and the OpenMP runtime when a program is
# linked, and the program's author has not asked for either. So an installed encore brings what the
# machine might lack: where Highway was a static library (built by tools/setup.sh, or fetched), a
# copy of it is installed beside libencore.a as libencore_highway.a. Where it was a shared library,
# it belongs to the system, and encore refers to it as any package does. The CMake package calls
# either of them encore::highway. A shared libencore has all of this inside or in its own list of
# needed libraries, and asks nothing of users.

include(CMakePackageConfigHelpers)

set(encore_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/encore")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/encore" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.h")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(TARGETS encore encore_text EXPORT encoreTargets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
if(TARGET encore_tool)
  install(TARGETS encore_tool RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

# What users of the installed library link besides libencore, for CMake and for pkg-config.
set(encore_config_highway "")
set(encore_pc_requires "")
set(encore_pc_libs "")
set(encore_pc_cflags "")
set(encore_pc_cxx_libs "")
if(BUILD_SHARED_LIBS)
  set(encore_pc_cflags "-DENCORE_SHARED")
else()
  get_target_property(highway_type hwy::hwy TYPE)
  if(highway_type STREQUAL "SHARED_LIBRARY")
    set(encore_config_highway "find_dependency(hwy 1.2.0 CONFIG)
add_library(encore::highway INTERFACE IMPORTED)
target_link_libraries(encore::highway INTERFACE hwy::hwy)")
    set(encore_pc_requires "libhwy >= 1.2.0")
  else()
    set(highway_file
        "${CMAKE_STATIC_LIBRARY_PREFIX}encore_highway${CMAKE_STATIC_LIBRARY_SUFFIX}")
    install(FILES "$<TARGET_FILE:hwy::hwy>" DESTINATION "${CMAKE_INSTALL_LIBDIR}"
            RENAME "${highway_file}")
    set(encore_config_highway "add_library(encore::highway STATIC IMPORTED)
set_target_properties(encore::highway PROPERTIES
  IMPORTED_LOCATION \"\${PACKAGE_PREFIX_DIR}/${CMAKE_INSTALL_LIBDIR}/${highway_file}\")")
    set(encore_pc_libs " -lencore_highway")
  endif()
  foreach(library IN LISTS encore_openmp_libraries)
    if(IS_ABSOLUTE "${library}")
      string(APPEND encore_pc_libs " ${library}")
    else()
      string(APPEND encore_pc_libs " -l${library}")
    endif()
  endforeach()
  foreach(library IN LISTS CMAKE_CXX_IMPLICIT_LINK_LIBRARIES)
    if(library MATCHES "^(stdc\\+\\+|c\\+\\+|c\\+\\+abi|m)$")
      string(APPEND encore_pc_cxx_libs " -l${library}")
    endif()
  endforeach()
endif()

install(EXPORT encoreTargets NAMESPACE encore:: DESTINATION "${encore_cmake_dir}")
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/encoreConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/encoreConfig.cmake" INSTALL_DESTINATION "${encore_cmake_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/encoreConfigVersion.cmake"
  VERSION "${PROJECT_VERSION}" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/encoreConfig.cmake"
              "${PROJECT_BINARY_DIR}/encoreConfigVersion.cmake"
        DESTINATION "${encore_cmake_dir}")

# They find their prefix from where they lie, so that --prefix at install time is enough.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(encore_pc_prefix "${CMAKE_INSTALL_PREFIX}")
  set(encore_pc_libdir "${CMAKE_INSTALL_FULL_LIBDIR}")
  set(encore_pc_includedir "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
else()
  file(RELATIVE_PATH up "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
  string(REGEX REPLACE "/$" "" up "${up}")
  set(encore_pc_prefix "\${pcfiledir}/${up}")
  set(encore_pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
  set(encore_pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
foreach(name encore encore-text)
  configure_file("${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in" "${PROJECT_BINARY_DIR}/${name}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()
