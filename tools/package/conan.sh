# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# For package.sh: Conan's package.

# With Highway and nlohmann/json of this machine, as a registry of Conan's may be out of reach.
package_conan() {
  local conan="$out/conan-venv/bin/conan" count
  local variables='{"ENCORE_SIMD": "widths", "ENCORE_FEW_TILES": "ON"}'
  if [[ ! -x "$conan" ]]; then
    python3 -m venv "$out/conan-venv"
    "$out/conan-venv/bin/pip" install -q 'conan>=2.8,<3' ||
      { echo "left out: pip has no Conan here"; exit 3; }
  fi
  export CONAN_HOME="$out/conan" CMAKE_PREFIX_PATH="$PWD/.deps/highway"
  rm -rf "$CONAN_HOME"
  logged conan-profile "$conan" profile detect
  logged conan-create "$conan" create packaging/conan --no-remote -s compiler.cppstd=20 \
    -o 'encore/*:system_dependencies=True' \
    -c "tools.cmake.cmake_layout:test_folder=$out/conan-test" \
    -c "tools.cmake.cmaketoolchain:extra_variables=$variables"
  grep 'encore .* says: ' "$out/conan-create.log" ||
    fail "the test program said nothing (all of it: $out/conan-create.log)"
  logged conan-remove "$conan" remove --confirm 'encore/*'
  count=$("$conan" list 'encore/*' --format=json | grep -c '"encore/' || true)
  [[ $count -eq 0 ]] || fail "Conan still has $count packages of encore"
  echo "conan: a static package was made, used and removed"
}

