# SPDX-License-Identifier: Apache-2.0
"""The package's version, as its metadata has it."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("pyencore")
except PackageNotFoundError:  # a source tree that was put on sys.path
    __version__ = "0+unknown"
