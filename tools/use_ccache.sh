#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# For scripts that build, in the root of the tree: `source tools/use_ccache.sh` makes CMake use
# ccache where that is installed and has a folder to write to, which a read-only home has not.
#
# Paths below the root do not count, nor does the folder of the build, nor the language of warnings:
# the same sources in another clone are found. The other sloppiness is what Clang's precompiled
# headers need (EncoreQuickBuild.cmake).

ccache_folder() {
  local folder
  folder="$(ccache --get-config cache_dir)" && mkdir -p "$folder" && [[ -w "$folder" ]]
}

if command -v ccache >/dev/null && ccache_folder 2>/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER="${CMAKE_CXX_COMPILER_LAUNCHER:-ccache}"
  export CCACHE_BASEDIR="${CCACHE_BASEDIR:-$PWD}" CCACHE_NOHASHDIR=1
  export CCACHE_SLOPPINESS="${CCACHE_SLOPPINESS:-pch_defines,time_macros,locale}"
fi
