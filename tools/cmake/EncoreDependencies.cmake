# SPDX-License-Identifier: Apache-2.0
#
# Everything encore needs from elsewhere: an installed package first, else a pinned release with its
# hash, where downloads are allowed (ENCORE_FETCH_DEPENDENCIES; off when encore is a part of another
# project). How one is found or fetched is in EncoreDependency.cmake. Knows nothing of how encore
# uses them.

include(EncoreDependency)

encore_dependency(hwy 1.2.0 TARGET hwy::hwy
  APT "libhwy-dev of Debian 13, Ubuntu 25.04 or newer"
  URL https://github.com/google/highway/archive/refs/tags/1.2.0.tar.gz
  SHA256 7e0be78b8318e8bdbf6fa545d2ecb4c90f947df03f7aadc42c1967f019e63343
  OPTIONS HWY_ENABLE_TESTS=OFF HWY_ENABLE_EXAMPLES=OFF HWY_ENABLE_CONTRIB=OFF
          HWY_ENABLE_INSTALL=OFF)

encore_dependency(nlohmann_json 3.7.3 TARGET nlohmann_json::nlohmann_json APT nlohmann-json3-dev
  URL https://github.com/nlohmann/json/archive/refs/tags/v3.11.3.tar.gz
  SHA256 0d8ef5af7f9794e3263480193c491549b2ba6cc74bb018906202ada498a79406
  OPTIONS JSON_BuildTests=OFF JSON_Install=OFF)

if(ENCORE_BUILD_TOOLS OR ENCORE_BUILD_TESTS OR ENCORE_BUILD_BENCHMARKS)
  encore_dependency(CLI11 2.1.2 TARGET CLI11::CLI11 APT libcli11-dev
    URL https://github.com/CLIUtils/CLI11/archive/refs/tags/v2.4.2.tar.gz
    SHA256 f2d893a65c3b1324c50d4e682c0cdc021dd0477ae2c048544f39eed6654b699a
    OPTIONS CLI11_BUILD_TESTS=OFF CLI11_BUILD_EXAMPLES=OFF CLI11_BUILD_DOCS=OFF CLI11_INSTALL=OFF)
endif()

if(ENCORE_BUILD_TESTS)
  encore_dependency(GTest 1.11 TARGET GTest::gtest_main APT libgtest-dev
    URL https://github.com/google/googletest/archive/refs/tags/v1.14.0.tar.gz
    SHA256 8ad598c73ad796e0d8280b082cebd82a630d73e73cd3c70057938a6501bba5d7
    OPTIONS BUILD_GMOCK=OFF INSTALL_GTEST=OFF)
endif()

if(ENCORE_BUILD_BENCHMARKS)
  encore_dependency(benchmark 1.6 TARGET benchmark::benchmark APT libbenchmark-dev
    URL https://github.com/google/benchmark/archive/refs/tags/v1.9.1.tar.gz
    SHA256 32131c08ee31eeff2c8968d7e874f3cb648034377dfc32a4c377fa8796d84981
    OPTIONS BENCHMARK_ENABLE_TESTING=OFF BENCHMARK_ENABLE_INSTALL=OFF
            BENCHMARK_ENABLE_GTEST_TESTS=OFF BENCHMARK_ENABLE_WERROR=OFF)
endif()

# Part of the toolchain, so never fetched. Tests and tools start threads of their own.
if(ENCORE_BUILD_TESTS OR ENCORE_BUILD_TOOLS OR ENCORE_BUILD_BENCHMARKS OR ENCORE_BUILD_FUZZERS)
  find_package(Threads REQUIRED)
endif()

# Part of the toolchain as well. encore_openmp_libraries are the runtime's own libraries: one file
# compiles with OpenMP, and whoever links a static encore, with whatever compiler, needs that
# runtime and no OpenMP flags. Every compiler finds GCC's by its plain name, and LLVM's only its
# own.
set(encore_openmp_libraries "")
if(ENCORE_OPENMP)
  find_package(OpenMP COMPONENTS CXX QUIET)
  if(OpenMP_CXX_FOUND)
    message(STATUS "encore: OpenMP ${OpenMP_CXX_VERSION}")
    foreach(name IN LISTS OpenMP_CXX_LIB_NAMES)
      if(name MATCHES "^(gomp|pthread)$")
        list(APPEND encore_openmp_libraries "${name}")
      else()
        list(APPEND encore_openmp_libraries "${OpenMP_${name}_LIBRARY}")
      endif()
    endforeach()
  else()
    message(STATUS "encore: no OpenMP for this compiler; the OpenMP executor will run inline")
  endif()
endif()
