# SPDX-License-Identifier: Apache-2.0
"""Exceptions that Python has not: the others are ValueError, FileNotFoundError, OSError,
MemoryError and TypeError. Each has encore's own sentence."""


class UnsupportedError(NotImplementedError):
    """Understood, but not something that this build, machine or model can do."""


class CorruptDataError(ValueError):
    """A file breaks its format."""
