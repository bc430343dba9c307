# SPDX-License-Identifier: Apache-2.0
#
# An overlay port of the tree that it is in:
#
#   vcpkg install encore --overlay-ports=packaging/vcpkg

get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS options FEATURES
  openmp ENCORE_OPENMP
  command ENCORE_BUILD_TOOLS)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}" OPTIONS ${options}
  -DENCORE_BUILD_TESTS=OFF -DENCORE_BUILD_BENCHMARKS=OFF -DENCORE_BUILD_SERVER=OFF
  -DENCORE_BUILD_IMAGES=OFF -DENCORE_FETCH_DEPENDENCIES=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/encore)
vcpkg_fixup_pkgconfig()
if("command" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES encore AUTO_CLEAN)
endif()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
