# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# For package.sh: Conan's package with Highway and nlohmann/json of this machine, as a registry of
# Conan's may be out of reach.

package_conan() {
  local conan="$out/conan-venv/bin/conan" shared kind count
  local variables='{"ENCORE_FEW_TILES": "ON", "CMAKE_CXX_FLAGS_RELEASE": {"value": "-O1 -DNDEBUG",
    "cache": True, "type": "STRING", "docstring": "quick to compile"}}'
  [[ $# -eq 0 ]] || usage
  if [[ ! -e "$out/conan-venv/complete" ]]; then
    rm -rf "$out/conan-venv"
    python3 -m venv "$out/conan-venv"
    "$out/conan-venv/bin/pip" install -q 'conan>=2.8,<3' || left_out "pip has no Conan here"
    touch "$out/conan-venv/complete"
  fi
  tools/setup.sh
  export CONAN_HOME="$out/conan" CMAKE_PREFIX_PATH="$PWD/.deps/highway"
  rm -rf "$CONAN_HOME"
  logged conan-profile "$conan" profile detect
  for shared in False True; do
    kind=$([[ $shared == True ]] && echo shared || echo static)
    rm -rf "$out/conan-test"
    logged conan-create "$conan" create packaging/conan --no-remote -s compiler.cppstd=20 \
      -o 'encore/*:system_dependencies=True' -o "encore/*:shared=$shared" \
      -c "tools.cmake.cmake_layout:test_folder=$out/conan-test" \
      -c "tools.cmake.cmaketoolchain:extra_variables=${variables//$'\n'/}" \
      -c 'tools.build:defines=["HWY_COMPILE_ONLY_STATIC"]' \
      -c "tools.build:jobs=$CMAKE_BUILD_PARALLEL_LEVEL"
    grep 'encore .* says: ' "$out/conan-create.log" ||
      fail "the test program said nothing (all of it: $out/conan-create.log)"
    # Whether the program has the library inside or needs it.
    local program needs=no
    program=$(find "$out/conan-test" -type f -name text -perm -u+x | head -n 1)
    [[ -n "$program" ]] || fail "there is no test program in $out/conan-test"
    ! readelf -d "$program" | grep -q 'NEEDED.*libencore_text' || needs=yes
    [[ $needs == "$([[ $shared == True ]] && echo yes || echo no)" ]] ||
      fail "the test program of the $kind package needs a shared library: $needs"
    logged conan-remove "$conan" remove --confirm 'encore/*'
    count=$("$conan" list 'encore/*' --format=json | grep -c '"encore/' || true)
    [[ $count -eq 0 ]] || fail "Conan still has $count packages of encore"
    echo "conan: a $kind package was made, used and removed"
  done
}
