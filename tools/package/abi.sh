# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# For package.sh: whether programs that were compiled with the C interface of the last release run
# with this one, by abidiff. packaging/abi/c_api_VERSION.abi describes that; --store writes it anew,
# which a release does. What may change is in packaging/abi/rules.ini.

package_abi() {
  local header=include/encore/c_api.h work="$out/abi" before now stored=(packaging/abi/c_api_*.abi)
  command -v abidiff abidw >/dev/null || need_packages abigail-tools
  mkdir -p "$work"
  now=$(sed -nE 's/^#define ENCORE_C_API_VERSION +([0-9]+)$/\1/p' "$header")
  python3 tools/package/c_stubs.py <"$header" >"$work/stubs.c"
  "${CC:-cc}" -std=c2x -g -shared -fPIC -Iinclude "$work/stubs.c" -o "$work/stubs.so"

  case "$*" in
    --store)
      rm -f "${stored[@]}"
      abidw --headers-dir include/encore --no-corpus-path --no-comp-dir-path --no-show-locs \
        --no-elf-needed --type-id-style hash --out-file "packaging/abi/c_api_$now.abi" \
        "$work/stubs.so"
      echo "abi: packaging/abi/c_api_$now.abi describes version $now of the C interface"
      return ;;
    '') ;;
    *) usage ;;
  esac

  [[ ${#stored[@]} -eq 1 && -e "${stored[0]}" ]] ||
    fail "packaging/abi has ${#stored[@]} files c_api_VERSION.abi; wanted one: ${stored[*]}"
  before=${stored[0]##*_}
  before=${before%.abi}
  abidiff --no-added-syms --suppressions packaging/abi/rules.ini "${stored[0]}" "$work/stubs.so" ||
    fail "programs compiled with version $before of the C interface would not run"
  if ((now < before)) ||
      { ((now == before)) && ! abidiff --harmless "${stored[0]}" "$work/stubs.so"; }; then
    fail "ENCORE_C_API_VERSION is $now; wanted more, as the interface is not version $before's"
  fi
  echo "abi: programs compiled with version $before of the C interface run with version $now"
}
