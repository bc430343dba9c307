# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# For package.sh: the steps of vcpkg's port with stand-ins for vcpkg's functions, and a C program
# built by find_package against what they install. Without features they are configured alone.

package_vcpkg() {
  local work="$out/vcpkg" options file
  [[ $# -eq 0 ]] || usage
  tools/setup.sh
  printf -v options '%s;' -DCMAKE_PREFIX_PATH="$PWD/.deps/highway" -DENCORE_FEW_TILES=ON \
    -DCMAKE_CXX_FLAGS=-DHWY_COMPILE_ONLY_STATIC '-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG'
  logged vcpkg-bare cmake -DWORK="$work" -DOPTIONS="${options%;}" -DCONFIGURE_ONLY=ON \
    -P packaging/vcpkg/check.cmake
  logged vcpkg cmake -DWORK="$work" -DFEATURES='openmp;command' -DOPTIONS="${options%;}" \
    -P packaging/vcpkg/check.cmake

  rm -rf "$out/use"
  logged vcpkg-use-configure cmake -S packaging/conan/test_package -B "$out/use" \
    -DCMAKE_PREFIX_PATH="$work/installed"
  logged vcpkg-use-build cmake --build "$out/use"
  "$out/use/text"
  "$work/installed/bin/encore" --version
  for file in usage copyright; do
    [[ -s "$work/installed/share/encore/$file" ]] || fail "no share/encore/$file was installed"
  done
  rm -rf "$work" "$out/use"
  echo "vcpkg: stand-ins for vcpkg's functions ran the port's steps, as vcpkg itself is not here"
}
