# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# For package.sh: Debian's packages of the last commit, built as on any Debian, looked at by
# lintian, and installed, tried and removed in bare ones of this machine's suite and of trixie.
# Highway is tools/setup.sh's where Debian's own is too old.

package_debian() {
  local work="$out/debian" tree="$out/debian/encore-$version" options='' suites suite
  case "$*" in
    '') ;;
    --quick) options="${few_targets[*]}" ;;
    *) usage ;;
  esac
  git rev-parse --quiet --verify HEAD >/dev/null || left_out "this is no clone: there is no commit"
  command -v dpkg-query apt-get >/dev/null || left_out "this is no Debian"
  need_packages dpkg-dev debhelper lintian debootstrap debian-archive-keyring
  tools/setup.sh

  rm -rf "$work"
  mkdir -p "$work"
  git archive --prefix="encore-$version/" HEAD | tar -x -C "$work"
  cp -r "$tree/packaging/debian" "$tree/debian"
  echo "debian: building in $tree (the log is $out/debian-build.log)"
  logged debian-build env -C "$tree" CMAKE_PREFIX_PATH="$PWD/.deps/highway" \
    CCACHE_DIR="$(ccache --get-config cache_dir 2>/dev/null || true)" ENCORE_OPTIONS="$options" \
    DEB_BUILD_OPTIONS="noautodbgsym parallel=$CMAKE_BUILD_PARALLEL_LEVEL" \
    dpkg-buildpackage -b -us -uc -d
  lintian --allow-root --fail-on error "$work"/encore_*.changes
  ls -l "$work"/*.deb

  [[ $EUID -eq 0 ]] || left_out "only root can make a Debian to install into"
  suites=$(. /etc/os-release && echo "$VERSION_CODENAME")
  [[ "$suites" == trixie ]] || suites+=" trixie"
  for suite in $suites; do use_debian "$work" "$tree" "$suite"; done
}

# In a Debian that has nothing else of encore: the packages' own test, and no file is left.
use_debian() {
  local root="$1/root" suite="$3" mirror
  mirror=$(apt-get indextargets --format '$(ORIGIN)|$(REPO_URI)' 'Created-By: Packages' |
             sed -n 's/^Debian|//p' | grep -v security | head -n 1)
  rm -rf "$root"
  if ! debootstrap --variant=minbase --include=g++,pkg-config "$suite" "$root" "$mirror" \
      >"$out/debian-root.log" 2>&1; then
    left_out "debootstrap cannot make a bare $suite here; see $out/debian-root.log"
  fi
  mkdir "$root/packages"
  cp "$1"/encore_*.deb "$1"/lib*.deb "$root/packages"
  cp -r "$2" "$root/source"
  rm -rf "$root"/source/obj-*
  in_root() { chroot "$root" env LC_ALL=C.UTF-8 bash -euo pipefail -c "$1"; }
  local files='find / -xdev \( -path /proc -o -path /source -o -path /packages -o -path /tmp \
    -o -path /var/log -o -path /var/cache \) -prune -o -not -name "*-old" -print | sort'
  in_root "$files" >"$1/before"
  logged debian-install in_root 'dpkg -i /packages/*.deb'
  in_root 'cd /source && debian/tests/installed'
  # shellcheck disable=SC2016  # for the shell in there
  logged debian-purge in_root 'cd /packages && for file in *.deb; do
    dpkg-deb --field "$file" Package; done | xargs dpkg -P'
  in_root "$files" | diff "$1/before" - || fail "files are left of the packages in $suite"
  rm -rf "$root"
  echo "debian: installed in a bare $suite, used, and removed without leftovers"
}
