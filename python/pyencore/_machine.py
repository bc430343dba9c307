# SPDX-License-Identifier: Apache-2.0
"""What encore sees of the machine: usable cores and SIMD targets."""

from pyencore._core import (
    active_target,
    compiled_targets,
    cores,
    set_target,
    supported_targets,
)

__all__ = ["active_target", "compiled_targets", "cores", "set_target", "supported_targets"]
