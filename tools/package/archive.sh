# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# For package.sh: an archive of headers, libraries and command for a target of tools/cross.sh, with
# an SPDX document and checksums, and a C program built against it.

# archive TARGET [--shared] [--quick] [--again]
package_archive() {
  local target="${1:-}" shared=() quick=() again='' option ziglang parts
  [[ -n "$target" && "$target" != -* ]] || usage
  for option in "${@:2}"; do
    case "$option" in
      --shared) shared=(--shared) ;;
      --quick) quick=(--quick) ;;
      --again) again=yes ;;
      *) usage ;;
    esac
  done
  [[ "$target" != wasm32 ]] ||
    left_out "wasm32 has no libraries for C: tools/cross.sh makes its module and page"
  tools/setup.sh
  # The commit's time.
  [[ -n "${SOURCE_DATE_EPOCH:-}" ]] || SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) ||
    left_out "there is neither a commit nor SOURCE_DATE_EPOCH, which is the time of all files"
  export SOURCE_DATE_EPOCH
  tools/cross.sh "$target" "${shared[@]}" "${quick[@]}" || exit $?

  local name="encore-$version-$target${shared:+-shared}"
  local folder="build/cross/$target${shared:+-shared}${quick:+-quick}" stage="$out/archive/$name"
  rm -rf "$stage" "$stage".*
  mkdir -p "$out/archive"
  logged archive cmake --install "$folder" --prefix "$stage"
  ziglang=$(.deps/venv/bin/python -c 'import importlib.metadata as m; print(m.version("ziglang"))')
  add_licenses "$target" "$stage"
  tools/archive.py "$stage" --version "$version" --epoch "$SOURCE_DATE_EPOCH" "${parts[@]}"
  (cd "$out/archive" && sha256sum encore-*.tar.gz encore-*.zip encore-*.spdx.json >SHA256SUMS)
  ls -l "$stage".*

  use_archive "$target" "$folder/zig" "$stage"
  [[ -z "$again" ]] || build_again "$name" "$target" "${shared[@]}" "${quick[@]}"
  rm -rf "$stage"
}

# Who else has written what is in it, and on which terms: their words into a folder, and `parts` for
# tools/archive.py.
add_licenses() {
  local target="$1" stage="$2" folder="$2/share/doc/encore/licenses" headers=build/cross/headers zig
  zig=$(.deps/venv/bin/python -c 'import pathlib, ziglang
print(pathlib.Path(ziglang.__file__).parent)')
  mkdir -p "$folder"
  cat .deps/highway-source/LICENSE .deps/highway-source/LICENSE-BSD3 >"$folder/highway"
  cp /usr/share/doc/nlohmann-json3-dev/copyright "$folder/nlohmann-json"
  cp "$zig/lib/libcxx/LICENSE.TXT" "$folder/libcxx"
  cp "$zig/LICENSE" "$folder/zig"
  parts=(
    --part Highway "$(version_of HWY_ .deps/highway-source/hwy/base.h)" 'Apache-2.0 OR BSD-3-Clause'
    --part nlohmann-json
      "$(version_of NLOHMANN_JSON_VERSION_ "$(grep -rl '^#define NLOHMANN_JSON_VERSION_MAJOR' \
                                               $headers/nlohmann | head -n 1)")" MIT
    --part 'libc++ of ziglang' "$ziglang" 'Apache-2.0 WITH LLVM-exception')
  if [[ -e "$stage/bin/encore" || -e "$stage/bin/encore.exe" ]]; then
    cp /usr/share/doc/libcli11-dev/copyright "$folder/cli11"
    parts+=(--part CLI11 "$(grep -rhoP '^#define CLI11_VERSION "\K[^"]+' $headers/CLI)"
            BSD-3-Clause)
  fi
  case "$target" in
    *-musl)
      cp "$zig/lib/libc/musl/COPYRIGHT" "$folder/musl"
      parts+=(--part 'musl of ziglang' "$ziglang" MIT) ;;
    *-windows-*)
      cp "$zig/lib/libc/mingw/COPYING" "$folder/mingw-w64"
      parts+=(--part 'mingw-w64 of ziglang' "$ziglang" ZPL-2.1) ;;
  esac  # macOS brings its own
}

# A C program of the archive's user, by the compiler that the libraries were built with, and the
# command.
use_archive() {
  local target="$1" tools="$2" stage="$3" root="$out/use" kind file=text run=() cflags libs linker
  local name="${stage##*/}" model=tests/data/text/base
  case "$target" in
    *-windows-*) run=(wine) file=text.exe
                 export WINEPREFIX="$PWD/build/cross/wine" WINEDEBUG=-all ;;
    "$(uname -m)"-* | *-macos) ;;
    *) run=("qemu-${target%%-*}" -L /nowhere) ;;
  esac
  (cd "$out/archive" && sha256sum --quiet -c SHA256SUMS)
  for kind in zip tar.gz; do
    rm -rf "$root"
    mkdir "$root"
    if [[ $kind == zip ]]; then
      .deps/venv/bin/python -c 'import shutil, sys
shutil.unpack_archive(sys.argv[1], sys.argv[2])' "$stage.zip" "$root"
    else
      tar -xzf "$stage.tar.gz" -C "$root"
    fi
    diff -r "$stage" "$root/$name" || fail "what is in $name.$kind is not what was installed"
  done

  linker=c++
  if [[ "$name" == *-shared ]]; then
    check_exports "$root/$name"/bin/*.dll
    linker=cc  # libraries of C++ are inside
    cp "$root/$name"/bin/*.dll "$root"
  fi
  export PKG_CONFIG_LIBDIR="$root/$name/lib/pkgconfig"
  # Blanks of folders are escaped, which xargs reads.
  mapfile -t cflags < <(pkg-config --cflags encore-text | xargs -n 1)
  mapfile -t libs < <(pkg-config --libs encore-text | xargs -n 1)
  logged use-cc "$tools/cc" -std=c99 "${cflags[@]}" -c tests/consumer/text.c -o "$root/text.o"
  logged use-link "$tools/$linker" "$root/text.o" -o "$root/$file" "${libs[@]}"
  if [[ "$target" == *-macos ]]; then
    kind="${target%%-*}"
    for file in "$root/$file" "$root/$name/bin/encore"; do
      python3 tools/check_macho.py "$file" "${kind/aarch64/arm64}" 15.0
    done
    left_out "the archive is made, and not run: programs for macOS cannot be run here"
  fi
  if [[ ${#run[@]} -gt 0 ]] && ! command -v "${run[0]}" >/dev/null; then
    left_out "the archive is made, and not tried: there is no ${run[0]} here"
  fi
  "${run[@]}" "$root/$file"
  "${run[@]}" "$root/$file" $model 'The cat sat on the mat' 'A kitten is resting on the rug'
  for file in "$root/$name"/bin/encore{,.exe}; do
    [[ ! -e "$file" ]] || "${run[@]}" "$file" --version
  done
  rm -rf "$root"
  echo "archive: $name was unpacked, a program was built against it and run, and removed"
}

# All that DLLs export is public and encore's, but for what encore_text shares with encore
# (tests/consumer/package_test.sh has the same of other systems).
check_exports() {
  local library mine='^(encore_[a-z0-9_]+$|((typeinfo|typeinfo name|vtable) for )?'
  mine+='encore::v[0-9_]+::([A-Z]|operator|'
  mine+='internal::(CallGate::|CallMeter::Exchange|RunTeamErased|Team::For)))'
  for library in "$@"; do
    objdump -p "$library" | sed -n '/Name Pointer\] Table/,/^$/s/^\t\[ *[0-9]*\].* //p' |
      c++filt >"$out/exports"
    [[ -s "$out/exports" ]] || fail "objdump says nothing of what ${library##*/} exports"
    if grep -vE "$mine" "$out/exports" || grep -E 'hwy::|nlohmann::' "$out/exports"; then
      fail "${library##*/} exports more than encore's public symbols"
    fi
    echo "archive: the $(wc -l <"$out/exports") exports of ${library##*/} are encore's"
  done
}

# The archive, built in a folder that has another path and depth, has the same bytes.
build_again() {
  local tree="$out/again/another folder/of/the tree" name="$1" kind
  rm -rf "$out/again"
  mkdir -p "$tree"
  git ls-files -z | xargs -0 cp --parents -t "$tree"
  ln -s "$(readlink -f .deps)" "$tree/.deps"
  logged again env CCACHE_DISABLE=1 "$tree/tools/package.sh" archive "${@:2}"
  for kind in tar.gz zip spdx.json; do
    cmp "$out/archive/$name.$kind" "$tree/build/package/archive/$name.$kind"
  done
  rm -rf "$out/again"
  echo "archive: built in another folder without ccache, $name has the same bytes"
}
