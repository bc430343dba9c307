# SPDX-License-Identifier: Apache-2.0
"""encore's side of a comparison: its command line, run on files and timed.

Not here: peers and rounds (compare.py), ratios (results.py).
"""

import json
import os
import pathlib
import subprocess
import tempfile

import blocks
import remote

# How the threads of encore's pool wait between calls: flags of `encore bench`; a process of its own
# for each.
WAIT_POLICIES = {"encore": (), "encore --idle-spin 10000": ("--idle-spin", 10000)}


class Failed(RuntimeError):
    """The command line did not do it, and what it said."""


def call(encore, *args, cores=None):
    """stdout of `encore args`, on these cores or all."""
    # A peer's settings are not encore's.
    env = {k: v for k, v in os.environ.items() if k not in ("OMP_WAIT_POLICY", "GLIBC_TUNABLES")}
    command = [str(encore), *map(str, args)]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False,
                              preexec_fn=lambda: cores and os.sched_setaffinity(0, cores))
    except OSError as error:
        raise Failed(f"{encore}: {error.strerror}") from error
    if done.returncode != 0:
        raise Failed(f"`{' '.join(command)}` ended with {done.returncode}: "
                     f"{(done.stderr or done.stdout).strip()}")
    return done.stdout


def version(encore):
    return call(encore, "--version").strip()


def best_target_without_amx(encore):
    """"" where that is the best of all."""
    supported = json.loads(call(encore, "info", "--json"))["targets"]["supported"]
    return supported[1] if supported[0] == "AMX" else ""


def check_bench(encore, precision, target):
    """Fails where `encore bench` does not know one of them."""
    call(encore, "bench", "--list", *settings(precision, target))


def check_run(encore, precision):
    """Fails where `encore run` knows f32 alone."""
    if precision != "f32" and "--precision" not in call(encore, "run", "--help"):
        raise Failed("`encore run` has no --precision")


def settings(precision, target):
    """Options of `encore run` and `encore bench`."""
    # Without the option where it says the default: older command lines compare in f32 all the same.
    return ((["--precision", precision] if precision != "f32" else []) +
            (["--target", target] if target else []))


def output(encore, weights_path, x, threads, precision, target):
    """y [B, S, D] as `encore run` computes it."""
    with tempfile.TemporaryDirectory() as folder:
        x_path, y_path = (pathlib.Path(folder, f"{name}.safetensors") for name in "xy")
        blocks.write_safetensors(x_path, {"x": x})
        call(encore, "run", "--weights", weights_path, "--input", x_path, "--output", y_path,
             "--threads", threads, *settings(precision, target),
             cores=remote.last_cores(threads))
        return blocks.read_safetensors(y_path)[0]["y"]


def bench(encore, workload, threads, seconds, precision, weights, target, flags=()):
    """The row of `encore bench` for a workload, weights warm or cold: us_median, gflops ..."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "bench.json")
        call(encore, "bench", "--workload", workload.name, "--threads", threads, f"--{weights}",
             "--seconds", seconds, "--json", path, *settings(precision, target), *flags,
             cores=remote.last_cores(threads))
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    if len(rows) != 1:
        raise Failed(f"`encore bench` gave {len(rows)} rows for {workload.name}")
    row = rows[0]
    if row.get("precision", "f32") != precision:
        raise Failed(f"`encore bench` timed {row['precision']}, wanted {precision}")
    flops = row["gflops"] * row["us_median"] * 1e3
    if not abs(flops / workload.flops - 1) < 0.02:
        raise Failed(f"{workload.name} is {flops:.4g} FLOPs a call to `encore bench` and "
                     f"{workload.flops:.4g} here: not the same sizes")
    return row
