# SPDX-License-Identifier: Apache-2.0
"""encore's side of a comparison: its command line, run on files and timed.

"""

import json
import os
import pathlib
import tempfile

import safetensors.numpy

import remote

# How the threads of encore's pool wait between calls: flags of `encore bench`; a process of its own
# for each.
SPIN = ("--idle-spin", 10000)
AMX_BF16 = ("--amx-bf16",)


class Failed(RuntimeError):
    """The command line did not do it, and what it said."""


def call(encore, *args, cores=None):
    """stdout of `encore args`, on these cores or all."""
    # A peer's settings are not encore's.
    env = {k: v for k, v in os.environ.items() if k not in ("OMP_WAIT_POLICY", "GLIBC_TUNABLES")}
    command = [str(encore), *map(str, args)]
    try:
        done = remote.run(command, cores, env=env, capture_output=True, text=True)
    except OSError as error:
        raise Failed(f"{encore}: {error.strerror}") from error
    if done.returncode != 0:
        raise Failed(f"`{' '.join(command)}` ended with {done.returncode}: "
                     f"{(done.stderr or done.stdout).strip()}")
    return done.stdout


def report_of(encore, *args, cores=None):
    """What `encore args` writes with --json."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "report.json")
        call(encore, *args, "--json", path, cores=cores)
        report = json.loads(path.read_text(encoding="utf-8"))
    found = report.get("encore_report")
    if found != 1:
        raise Failed(f"`encore {args[0]}` wrote a report of version {found}, wanted 1")
    return report


def version(encore):
    return call(encore, "--version").split()[-1]


def supported_targets(encore):
    return json.loads(call(encore, "info", "--json"))["targets"]["supported"]


def best_target_without_amx(encore):
    """"" where that is the best of all."""
    supported = supported_targets(encore)
    return supported[1] if supported[0] == "AMX" else ""


def variants(encore, precision, threads, target):
    """Pairs of options to compute with and further ones to time with: what encore is timed as."""
    amx = precision == "bf16" and (target or supported_targets(encore)[0]) == "AMX"
    for compute in ((), AMX_BF16) if amx else ((),):
        yield compute, ()
        if threads > 1:
            yield compute, SPIN


def settings(precision, target):
    """Options of `encore run` and `encore bench`."""
    return ["--precision", precision, *(["--target", target] if target else [])]


def output(encore, weights_path, x, threads, precision, target, flags=()):
    """y [B, S, D] as `encore run` computes it."""
    with tempfile.TemporaryDirectory() as folder:
        x_path, y_path = (pathlib.Path(folder, f"{name}.safetensors") for name in "xy")
        safetensors.numpy.save_file({"x": x}, x_path)
        call(encore, "run", "--weights", weights_path, "--input", x_path, "--output", y_path,
             "--threads", threads, *settings(precision, target), *flags,
             cores=remote.last_cores(threads))
        return safetensors.numpy.load_file(y_path)["y"]


def bench(encore, workload, threads, seconds, precision, weights, target, flags=()):
    """The row of `encore bench` for a workload, weights warm or cold, as
    python/pyencore/lab/report.schema.json has it."""
    report = report_of(encore, "bench", "--workload", workload.name, "--threads", threads,
                       f"--{weights}", "--seconds", seconds, *settings(precision, target), *flags,
                       cores=remote.last_cores(threads))
    if len(report["rows"]) != 1:
        raise Failed(f"`encore bench` gave {len(report['rows'])} rows for {workload.name}")
    row = report["rows"][0]
    if row["precision"] != precision:
        raise Failed(f"`encore bench` timed {row['precision']}, wanted {precision}")
    if not abs(row["flops"] / workload.flops - 1) < 0.02:
        raise Failed(f"{workload.name} is {row['flops']:.4g} FLOPs a call to `encore bench` and "
                     f"{workload.flops:.4g} here: not the same sizes")
    return row
