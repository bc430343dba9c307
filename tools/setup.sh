#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prepares a Debian or Ubuntu machine to build encore, as root or with sudo: installs what is
# missing with apt and builds Highway from a source package of apt's into .deps/. Says
# nothing when there is nothing to do. Builds no encore: see run.sh and test.sh.
#
#   tools/setup.sh         what building, testing and benchmarking need
#   tools/setup.sh --ci    also what .ci/run needs: clang, its sanitizers and OpenMP, its linters, a
#                          compiler for AArch64, a clang that knows its bf16, an emulator of it, and
#                          wine
#   tools/setup.sh --peers also the headers of ONNX Runtime, for bench/peers/loop_onnx.cc

set -euo pipefail
[[ "${1:-}" != --help ]] || exec sed -n '4,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly root="$PWD"
readonly deps="$root/.deps"
readonly log="$deps/setup.log"
readonly arm_clang_wanted=17  # the first with which Highway compiles NEON_BF16

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

# Runs a command with its output in the log; shows the log's end if the command fails.
logged() {
  printf '+ %s\n' "$*" >>"$log"
  "$@" >>"$log" 2>&1 || {
    tail -n 30 "$log" >&2
    fail "failed: $* (all of it is in $log)"
  }
}

have_command() { command -v "$1" >/dev/null 2>&1; }

# Whether some include folder has the file $1.
have_header() {
  local folder
  for folder in /usr/local/include /usr/include; do
    [[ -e "$folder/$1" ]] && return 0
  done
  return 1
}

# Whether python3 has the module $1, or a Debian package has put it where the glob $2 says (python3
# may be another one).
have_python_module() {
  compgen -G "$2" >/dev/null || python3 -c "import $1" >/dev/null 2>&1
}

# Prints the packages that are missing, seen from their commands and files: asking apt takes longer.
missing_packages() {
  local pair
  for pair in g++:g++ cmake:cmake ninja:ninja-build make:make pkg-config:pkg-config \
              python3:python3 git:git; do
    have_command "${pair%%:*}" || echo "${pair#*:}"
  done
  # For fetch_model.sh and python_env.sh.
  have_python_module pip '/usr/lib/python3/dist-packages/pip' || echo python3-pip
  have_python_module ensurepip '/usr/lib/python3.*/ensurepip' || echo python3-venv
  for pair in gtest/gtest.h:libgtest-dev benchmark/benchmark.h:libbenchmark-dev \
              nlohmann/json.hpp:nlohmann-json3-dev CLI/CLI.hpp:libcli11-dev; do
    have_header "${pair%%:*}" || echo "${pair#*:}"
  done
  # For `encore serve`, which is left out where this cannot be had.
  have_header boost/beast/http.hpp || ! can_be_root || ! have_command apt-get || echo libboost-dev
  # For `encore embed --images`, which reads the formats whose libraries are there.
  if can_be_root && have_command apt-get; then
    for pair in png.h:libpng-dev jpeglib.h:libjpeg-dev webp/decode.h:libwebp-dev; do
      have_header "${pair%%:*}" || echo "${pair#*:}"
    done
  fi
  # Tests of locales with a decimal comma make them with localedef out of these.
  [[ -e /usr/share/i18n/locales/de_DE ]] || echo locales
  if [[ "$ci" == yes ]]; then
    for pair in doxygen:doxygen clang++:clang clang-format:clang-format clang-tidy:clang-tidy \
                aarch64-linux-gnu-g++:g++-aarch64-linux-gnu qemu-aarch64:qemu-user ccache:ccache \
                abidiff:abigail-tools; do
      have_command "${pair%%:*}" || echo "${pair#*:}"
    done
    compgen -G '/usr/lib/llvm-*/lib/libomp.so' >/dev/null || echo libomp-dev
    compgen -G '/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.tsan*' >/dev/null ||
      echo libclang-rt-dev
    compgen -G '/usr/lib/llvm-*/include/c++/v1/span' >/dev/null ||
      printf "%s\n" libc++-dev libc++abi-dev
    [[ -e /usr/src/googletest/CMakeLists.txt ]] || echo googletest
    # It runs programs of the machine's own processor.
    [[ $(uname -m) != x86_64 ]] || have_command wine || echo wine
  fi
}

# Highway is built from source on every machine: one version everywhere, and its source is there for
# other architectures. CMake takes it before one that is installed.
have_highway() { [[ -e "$deps/highway/include/hwy/highway.h" && -d "$deps/highway-source" ]]; }

can_be_root() { [[ $EUID -eq 0 ]] || have_command sudo; }

as_root() {
  if [[ $EUID -eq 0 ]]; then "$@"; else sudo "$@"; fi
}

# Lists may be missing (container images) or old; asked for once, and only before installing.
apt_updated=no
apt_update() {
  logged as_root apt-get -qq update
  apt_updated=yes
}

apt_install() {
  can_be_root || fail "neither root nor sudo here, and this has to be installed: $*"
  say "installing $*"
  [[ $apt_updated == yes ]] || apt_update
  logged as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -y --no-install-recommends install "$@"
}

# The version of package $1 that apt would install, without epoch and Debian revision; or nothing.
apt_candidate() {
  apt-cache policy "$1" 2>/dev/null |
    sed -n 's/^ *Candidate: *\([0-9]*:\)\{0,1\}\([0-9][^-+~]*\).*/\2/p'
}

# Whether a Clang for NEON_BF16 has to be looked for.
wants_arm_clang() {
  [[ "$ci" == yes ]] && ! tools/newest_clang.sh "$arm_clang_wanted" >/dev/null
}

# Adds to `packages` the newest Clang that apt has, if it is new enough.
add_arm_clang() {
  local version
  if can_be_root; then apt_update; fi
  for version in 22 21 20 19 18 17; do
    [[ -z "$(apt_candidate clang-$version)" ]] && continue
    packages+=("clang-$version")
    return
  done
  say "apt has no clang from $arm_clang_wanted on; .ci/run will leave most of its step neon out"
}

# Downloads a package into the current folder from a newer suite of the distribution that this
# machine runs, through the machine's own mirrors, proxies and keys: download_newer deb-src highway,
# or deb for what is built. The lists are private to this folder: the machine's apt configuration
# stays as it is. Fails when no suite has the package.
download_newer() {
  local origin uri suites keyring signed_by suite
  local -a get=(source --download-only)
  [[ "$1" == deb ]] && get=(download)
  local -a apt
  apt=(apt-get -q -o Dir::Etc::sourcelist="$PWD/sources.list" -o Dir::Etc::sourceparts=/dev/null
       -o Dir::State::lists="$PWD/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
  # apt's download user may not reach a folder below /root; what it fetches is verified anyway.
  [[ $EUID -eq 0 ]] && apt+=(-o APT::Sandbox::User=root)

  while IFS='|' read -r origin uri; do
    case "$origin" in
      Debian) suites="trixie testing unstable" keyring=debian-archive-keyring.gpg ;;
      Ubuntu) suites="plucky questing resolute devel" keyring=ubuntu-archive-keyring.gpg ;;
      *) continue ;;
    esac
    signed_by=
    [[ -e "/usr/share/keyrings/$keyring" ]] && signed_by="[signed-by=/usr/share/keyrings/$keyring]"
    for suite in $suites; do
      rm -rf lists ./*.dsc ./*.tar.* ./*.deb
      mkdir -p lists/partial
      echo "$1 $signed_by $uri $suite main $([[ $origin == Ubuntu ]] && echo universe)" \
        >sources.list
      echo "+ trying $suite at $uri" >>"$log"
      if "${apt[@]}" update >>"$log" 2>&1 &&
         "${apt[@]}" "${get[@]}" "$2" >>"$log" 2>&1; then
        return 0
      fi
    done
  done < <(apt-get indextargets --format '$(ORIGIN)|$(REPO_URI)' 'Created-By: Packages' \
             2>>"$log" | grep -v -e security -e backports | sort -u)
  return 1
}

# Builds Highway from the source package in the current folder into .deps/highway.
build_highway() {
  local source="$PWD/source"
  mkdir source
  logged tar -xf ./*.orig.tar.* -C source --strip-components=1
  grep -q "VERSION" source/CMakeLists.txt || fail "no Highway in $PWD/source"
  logged cmake -S "$source" -B build -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_INSTALL_PREFIX="$deps/highway" -DCMAKE_INSTALL_LIBDIR=lib \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF \
    -DHWY_ENABLE_TESTS=OFF -DHWY_ENABLE_EXAMPLES=OFF -DHWY_ENABLE_CONTRIB=OFF
  logged cmake --build build
  # Complete or absent: a run that is cut short leaves no half of it.
  logged env DESTDIR="$PWD/stage" cmake --install build
  # Its own exp and tanh, which benchmarks compare with: headers, which Highway installs only along
  # with a library that takes minutes.
  logged install -D -m 644 -t "$PWD/stage$deps/highway/include/hwy/contrib/math" \
    "$source"/hwy/contrib/math/*.h
  rm -rf "$deps/highway" "$deps/highway-source"
  mv source "$deps/highway-source"
  mv "$PWD/stage$deps/highway" "$deps/highway"
}

get_highway() {
  local work
  say "building Highway from source"
  work="$(mktemp -d "$deps/highway-XXXXXX")"
  # shellcheck disable=SC2064  # $work as it is now
  trap "rm -rf '$work'" EXIT
  cd "$work"
  if download_newer deb-src highway; then
    build_highway
  else
    say "apt has no source of Highway; CMake takes an installed one or downloads it"
    [[ -e /etc/ssl/certs/ca-certificates.crt ]] || apt_install ca-certificates
  fi
  cd "$root"
}

# Of another version than the library of Python's package: its C interface only grows.
get_onnxruntime_headers() {
  local work
  work="$(mktemp -d "$deps/onnxruntime-XXXXXX")"
  # shellcheck disable=SC2064  # $work as it is now
  trap "rm -rf '$work'" EXIT
  cd "$work"
  download_newer deb libonnxruntime-dev || fail "apt has no headers of ONNX Runtime; see $log"
  logged dpkg-deb -x ./libonnxruntime-dev*.deb unpacked
  mkdir -p "$deps/onnxruntime"
  mv unpacked/usr/include/onnxruntime "$deps/onnxruntime/include"
  cd "$root"
}

main() {
  ci=no
  case "${1:-}" in
    "") ;;
    --ci) ci=yes ;;
    --peers)
      [[ ! -d "$deps/onnxruntime/include" ]] || return 0
      mkdir -p "$deps"
      : >"$log"
      get_onnxruntime_headers
      return ;;
    *) fail "unknown argument '$1'; wanted --ci or --peers" ;;
  esac

  mapfile -t packages < <(missing_packages)
  if [[ ${#packages[@]} -eq 0 ]] && have_highway && ! wants_arm_clang; then return; fi
  if [[ ${#packages[@]} -eq 0 ]] && have_highway && ! have_command apt-get; then
    say "no apt-get here for a newer clang; .ci/run will say what it leaves out"
    return
  fi
  have_command apt-get ||
    fail "no apt-get here; please install by hand: ${packages[*]} and Highway 1.2.0 or newer"
  mkdir -p "$deps"
  : >"$log"
  if wants_arm_clang; then add_arm_clang; fi
  if [[ ${#packages[@]} -gt 0 ]]; then
    apt_install "${packages[@]}"
  fi
  have_highway || get_highway
}

main "$@"
