# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# For package.sh: Debian's packages of the last commit, built as on any Debian, looked at by
# lintian, and installed, tried and removed in bare ones of this machine's suite and of trixie,
# whose python3 is another one than python3-pyencore is for. Highway is tools/setup.sh's where
# Debian's own is too old, and nanobind PyPI's; without that there is no python3-pyencore.

package_debian() {
  local work="$out/debian" options='' profiles='' suite
  case "$*" in
    '') ;;
    --quick) options="${few_targets[*]}" ;;
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

  suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
  unpack_source "$work"
  echo "debian: building for $suite (the log is $out/debian-build.log)"
  logged debian-build env -C "$work/encore-$version" CMAKE_PREFIX_PATH="$PWD/.deps/highway:$work" \
    CCACHE_DIR="$(ccache --get-config cache_dir 2>/dev/null || true)" ENCORE_OPTIONS="$options" \
    DEB_BUILD_OPTIONS="noautodbgsym parallel=$CMAKE_BUILD_PARALLEL_LEVEL" \
    DEB_BUILD_PROFILES="$profiles" dpkg-buildpackage -b -us -uc -d
  lintian --allow-root --fail-on error "$work"/encore_*.changes
  ls -l "$work"/*.deb

  [[ $EUID -eq 0 ]] || left_out "only root can make a Debian to install into"
  use_debian "$suite" "$profiles"
  [[ "$suite" == trixie ]] || use_debian trixie nopython
  [[ -z "$profiles" ]] || left_out "python3-pyencore, as pip cannot install nanobind here"
}

# Below the folder $1: the last commit, with debian/ where it belongs.
unpack_source() {
  mkdir -p "$1"
  git archive --prefix="encore-$version/" HEAD | tar -x -C "$1"
  cp -r "$1/encore-$version/packaging/debian" "$1/encore-$version/debian"
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

# In a Debian of the suite $1 that has nothing else of encore: the packages' own tests, and no file
# is left. With `nopython`, without python3-pyencore.
use_debian() {
  local suite="$1" root test python=''
  [[ "${2:-}" == nopython ]] || python=',python3,python3-numpy'
  make_root "$suite" "g++,pkg-config$python"
  mkdir "$root/packages"
  cp "$work"/{encore,lib}*.deb ${python:+"$work"/python3-*.deb} "$root/packages"
  unpack_source "$root/source"
  in_root() { chroot "$root" "${bare[@]}" bash -euo pipefail -c "$1"; }
  local files='find / -xdev \( -path /proc -o -path /source -o -path /packages -o -path /tmp \
    -o -path /var/log -o -path /var/cache \) -prune -o -not -name "*-old" -print | sort'
  in_root "$files" >"$work/before"
  logged debian-install in_root 'dpkg -i /packages/*.deb'
  for test in installed ${python:+pyencore}; do
    in_root "cd /source/encore-$version && debian/tests/$test"
  done
  # shellcheck disable=SC2016  # for the shell in there
  logged debian-purge in_root 'cd /packages && for file in *.deb; do
    dpkg-deb --field "$file" Package; done | xargs dpkg -P'
  in_root "$files" | diff "$work/before" - || fail "files are left of the packages in $suite"
  rm -rf "$root"
  echo "debian: installed in a bare $suite, used, and removed without leftovers"
}
