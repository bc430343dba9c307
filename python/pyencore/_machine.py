# SPDX-License-Identifier: Apache-2.0
"""What encore sees of the machine: usable cores and SIMD targets."""

from pyencore import _core
from pyencore._core import active_target, compiled_targets, cores, supported_targets
from pyencore._inputs import checked

__all__ = ["active_target", "compiled_targets", "cores", "set_target", "supported_targets"]


@checked
def set_target(name: str) -> None:
    """The SIMD target of what is opened from now on: one of supported_targets()."""
    _core.set_target(name)
