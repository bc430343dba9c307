# SPDX-License-Identifier: Apache-2.0
"""Reports of a machine that does not exist, with as much noise as a test wants."""

import math

import numpy as np

LOADS = (("minilm_1x16", 384, 12, 1, 16), ("base_1x16", 768, 12, 1, 16),
         ("base_1x128", 768, 12, 1, 128), ("base_8x128", 768, 12, 8, 128),
         ("large_1x128", 1024, 16, 1, 128))
# Of one thread.
MEMORY = 2.2e10  # bytes a second
TARGET_PEAK = {"AVX3_ZEN4": 2.5e11, "AVX2": 1.27e11, "NEON": 0.6e11}  # FLOP/s in f32
PRECISION_FACTOR = {"bf16": 2, "f32": 1, "int8": 4}
WEIGHT_BYTES = {"f32": 4, "bf16": 2, "int8": 1}
LEVELS = (("L1", 24576, 18.0), ("L2", 524288, 6.0), ("L3", 8388608, 3.0),
          ("memory", 134217728, 1.0))


def synthetic_report(seed=1, speed=1.0, slot_noise=0.02, run_drift=0.0, row_drift=0.0,
                     row_noise=0.0, slots=25, targets=("AVX3_ZEN4", "AVX2"), threads=(1, 2)):
    """speed: of this program over that of another; the noises are standard deviations of
    logarithms: of a slot, of the machine in this run, of the machine around a row, of a row."""
    random = np.random.default_rng(seed)
    machine, peaks = math.exp(run_drift * random.standard_normal()), []

    def factor(deviation):
        return math.exp(deviation * random.standard_normal())

    def roofs():
        for count in threads:
            for target in targets:
                for precision, times in PRECISION_FACTOR.items():
                    rate = TARGET_PEAK[target] * times * count * machine * factor(row_drift / 4)
                    yield {"kind": "compute", "target": target, "precision": precision,
                           "threads": count, "flops_per_s": rate, "samples": [rate]}
            for level, size, times in LEVELS:
                rate = MEMORY * times * count ** 0.93 * machine
                yield {"kind": "read", "level": level, "bytes": size, "threads": count,
                       "bytes_per_s": rate, "samples": [rate]}

    def row(load, target, precision, count, cold):
        name, d, heads, sequences, length = load
        tokens, layers, matrices = sequences * length, 12 if cold else 1, 12.0 * d * d
        flops = layers * tokens * (2 * matrices + 4 * d * length)
        weight_bytes = layers * matrices * WEIGHT_BYTES[precision]
        peak = TARGET_PEAK[target] * PRECISION_FACTOR[precision]
        computing = flops / (0.9 * peak * count ** 0.93)
        reading = weight_bytes / (MEMORY * count ** 0.93)
        now = machine * factor(row_drift)
        peaks.append(now)
        time = ((max(computing, reading) + 0.2 * computing if cold else computing) /
                (speed * now) * factor(row_noise))
        quantiles = [time * (0.97 + 0.06 * i / 100 + 0.25 * (i / 100) ** 40) for i in range(101)]
        quantiles[-1] *= 1.5
        p50, reads = quantiles[50], cold and reading > computing
        return {"engine": "encore", "engine_version": "0.1.0", "workload": name, "d_model": d,
                "heads": heads, "d_ff": 4 * d, "activation": "gelu", "layers": layers,
                "sequences": sequences, "tokens": tokens, "useful_tokens": tokens,
                "precision": precision, "amx_bf16": False, "target": target, "threads": count,
                "weights": "cold" if cold else "warm", "calls": 60, "flops": flops,
                "weight_bytes": weight_bytes,
                "seconds": {"min": quantiles[0], "p50": p50, "p90": quantiles[90],
                            "p99": quantiles[99], "max": quantiles[100]},
                "quantiles": quantiles,
                "slots": [time * factor(slot_noise) for _ in range(slots)],
                "gflops": flops / p50 * 1e-9, "tokens_per_s": tokens * layers / p50,
                "useful_tokens_per_s": tokens * layers / p50,
                "roof": {"kind": "read" if reads else "compute",
                         "level": "memory" if reads else None,
                         "name": "memory bandwidth" if reads else f"{precision} peak",
                         "value": (MEMORY if reads else peak) * count * machine, "share": 0.8},
                "verified": True}

    report = {
        "encore_report": 1, "encore": "0.1.0", "created": "2026-11-23T05:10:52Z",
        "machine": {"cpu": "Synthetic 9000", "architecture": "x86_64", "cores": 2,
                    "cores_text": "2: all cores of the system", "l1d_bytes": 49152,
                    "l2_bytes": 1 << 20, "l3_bytes": 32 << 20, "system": "Linux 6.1",
                    "compiler": "g++ 12.2.0", "targets": ["AVX3_ZEN4", "AVX2"]},
        "run": {"threads_from": "pool", "idle_spin_us": 0,
                "binding": "one thread is bound to a core", "seconds_per_row": 0.5, "seconds": 60},
        "noise": {"steal_percent": 0, "busy_percent": 1.2, "peak_drift_percent": 0, "notes": []},
        "roofs": list(roofs()),
        "rows": [row(load, target, precision, count, cold) for load in LOADS for target in targets
                 for precision in ("f32", "bf16", "int8") for count in threads
                 for cold in ((False, True) if target == targets[0] else (False,))]}
    low, middle, high = np.quantile(peaks, (0.1, 0.5, 0.9))
    report["noise"]["peak_drift_percent"] = 100 * (high - low) / middle
    return report


def noisy_run(seed, speed):
    """With the noise of a shared machine: slots of 1 to 3 %, 2 to 4 % between two runs."""
    random = np.random.default_rng(1000 + seed)
    return synthetic_report(seed, speed, slot_noise=random.uniform(0.01, 0.03),
                            run_drift=random.uniform(0.02, 0.04) / math.sqrt(2), row_drift=0.005,
                            row_noise=0.005)
