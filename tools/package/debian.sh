# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# For package.sh: Debian's packages of the last commit, for this machine's suite and for trixie,
# looked at by lintian, and installed, tried and removed in a bare one of each. They are built on
# this machine, with the Highway of tools/setup.sh, and in a trixie of nothing but what they say
# they need. nanobind is PyPI's, as Debian's is too old; without it there is no python3-pyencore.

# Of debian/rules' own options the last -O decides; quoted for its shell.
readonly few_flags="'-DCMAKE_CXX_FLAGS_NONE=-O1 -DHWY_COMPILE_ONLY_STATIC'"

package_debian() {
  local work="$out/debian" options='' profiles='' own
  case "$*" in
    '') ;;
    --quick) options="-DENCORE_FEW_TILES=ON $few_flags" ;;
    *) usage ;;
  esac
  git rev-parse --quiet --verify HEAD >/dev/null || left_out "this is no clone: there is no commit"
  command -v dpkg-query apt-get >/dev/null || left_out "this is no Debian"
  need_packages dpkg-dev debhelper dh-python python3-dev lintian debootstrap debian-archive-keyring
  tools/setup.sh

  rm -rf "$work"
  mkdir -p "$work"
  if tools/python_env.sh nanobind==3.1.0; then
    cp -r "$(.deps/venv/bin/python -c 'import nanobind; print(*nanobind.__path__)')" \
      "$work/nanobind"
  else
    profiles=nopython
  fi

  own=$(. /etc/os-release && echo "$VERSION_CODENAME")
  unpack_source "$work/$own"
  CMAKE_PREFIX_PATH="$PWD/.deps/highway:$work" \
    CCACHE_DIR="$(ccache --get-config cache_dir 2>/dev/null || true)" \
    build_debian "$own" "$work/$own" env
  look_at_packages "$own"
  [[ $EUID -eq 0 ]] || left_out "only root can make a Debian to install into"
  use_debian "$own"
  if [[ "$own" != trixie ]]; then
    build_in_trixie
    look_at_packages trixie
    use_debian trixie
  fi
  [[ -z "$profiles" ]] || left_out "python3-pyencore, as pip cannot install nanobind here"
}

# Below the folder $1: the last commit, with debian/ where it belongs.
unpack_source() {
  mkdir -p "$1"
  git archive --prefix="encore-$version/" HEAD | tar -x -C "$1"
  cp -r "$1/encore-$version/packaging/debian" "$1/encore-$version/debian"
}

# build_debian SUITE FOLDER COMMAND...: for that suite, out of the source below FOLDER, by a command
# that runs others with variables.
build_debian() {
  echo "debian: building for $1 (the log is $out/debian-build-$1.log)"
  logged "debian-build-$1" "${@:3}" ENCORE_OPTIONS="$options" DEB_BUILD_PROFILES="$profiles" \
    DEB_BUILD_OPTIONS="noautodbgsym parallel=$CMAKE_BUILD_PARALLEL_LEVEL" \
    bash -c 'cd "$1" && dpkg-buildpackage -b -us -uc -d' - "$2/encore-$version"
}

look_at_packages() {
  lintian --allow-root --fail-on error "$work/$1"/encore_*.changes
  ls -l "$work/$1"/*.deb
}

# In a Debian of its own nothing of this machine's environment counts.
readonly bare=(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8)

# A bare Debian of the suite $1 and of packages $2 in $root; chroot "$root" runs commands in there.
make_root() {
  local mirror
  root="$work/root"
  mirror=$(apt-get indextargets --format '$(ORIGIN)|$(REPO_URI)' 'Created-By: Packages' |
             sed -n 's/^Debian|//p' | grep -v security | head -n 1)
  rm -rf "$root"
  if ! debootstrap --variant=minbase --include="$2" "$1" "$root" "$mirror" \
      >"$out/debian-root.log" 2>&1; then
    left_out "debootstrap cannot make a bare $1 here; see $out/debian-root.log"
  fi
}

build_in_trixie() {
  local root needed
  # All that debian/control names, as nothing is installed there.
  mkdir "$work/nothing"
  : >"$work/nothing/status"
  needed=$(cd "$work/$own/encore-$version" &&
             { dpkg-checkbuilddeps --admindir="$work/nothing" 2>&1 || true; } |
             sed 's/ ([^)]*)//g; s/.*: //; s/:native//g; s/ nanobind-dev//
                  s/debhelper-compat/debhelper/; s/ *$//; s/  */,/g')
  make_root trixie "$needed"
  unpack_source "$root/build"
  [[ -n "$profiles" ]] || cp -r "$work/nanobind" "$root/usr/local"
  build_debian trixie /build chroot "$root" "${bare[@]}"
  mkdir "$work/trixie"
  mv "$root"/build/*.{deb,changes,buildinfo} "$work/trixie"
  rm -rf "$root"
}

# In a Debian that has nothing else of encore: the packages' own tests, and no file is left.
use_debian() {
  local suite="$1" root test file needed
  # What they depend on besides each other.
  needed=$(for file in "$work/$suite"/*.deb; do dpkg-deb --field "$file" Depends; done |
             tr ',' '\n' | sed 's/(.*//; s/:any//; s/ //g' | grep -v encore | sort -u | paste -sd,)
  make_root "$suite" "g++,pkg-config,$needed"
  mkdir "$root/packages"
  cp "$work/$suite"/*.deb "$root/packages"
  unpack_source "$root/source"
  in_root() { chroot "$root" "${bare[@]}" bash -euo pipefail -c "$1"; }
  local files='find / -xdev \( -path /proc -o -path /source -o -path /packages -o -path /tmp \
    -o -path /var/log -o -path /var/cache \) -prune -o -not -name "*-old" -print | sort'
  in_root "$files" >"$work/before"
  logged debian-install in_root 'dpkg -i /packages/*.deb'
  for test in installed $([[ -n "$profiles" ]] || echo pyencore); do
    in_root "cd /source/encore-$version && debian/tests/$test"
  done
  # shellcheck disable=SC2016  # for the shell in there
  logged debian-purge in_root 'cd /packages && for file in *.deb; do
    dpkg-deb --field "$file" Package; done | xargs dpkg -P'
  in_root "$files" | diff "$work/before" - || fail "files are left of the packages in $suite"
  rm -rf "$root"
  echo "debian: installed in a bare $suite, used, and removed without leftovers"
}
