#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MaxSim of one query of 32 tokens with 1,000 documents of 180, in vectors of 128: the median
milliseconds of numpy, torch and, where it can be imported, PyLate. `bench_max_sim` measures encore.

    .deps/venv/bin/pip install --no-deps pylate==1.6.0
    .deps/venv/bin/python bench/peers/max_sim.py [--threads 1]
"""
import argparse
import os
import statistics
import sys
import time

QUERY, DOCUMENTS, TOKENS, WIDTH = 32, 1000, 180, 128
FLOPS = 2.0 * QUERY * DOCUMENTS * TOKENS * WIDTH


def median_ms(call, seconds=3.0):
    call()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e3


def main():
    parser = argparse.ArgumentParser(description="MaxSim by numpy and torch.")
    parser.add_argument("--threads", type=int, default=0, help="0: all usable cores")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each")
    arguments = parser.parse_args()
    threads = arguments.threads or len(os.sched_getaffinity(0))
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(threads)
    import numpy as np
    import torch
    torch.set_num_threads(threads)
    rng = np.random.default_rng(1)
    query = rng.standard_normal((QUERY, WIDTH), np.float32)
    documents = rng.standard_normal((DOCUMENTS, TOKENS, WIDTH), np.float32)
    flat = documents.reshape(-1, WIDTH)
    q, d = torch.from_numpy(query), torch.from_numpy(flat)

    def by_numpy():
        return (flat @ query.T).reshape(DOCUMENTS, TOKENS, QUERY).max(1).sum(1)

    def by_torch():
        with torch.inference_mode():
            return (d @ q.T).view(DOCUMENTS, TOKENS, QUERY).amax(1).sum(1)

    def by_einsum():  # as sentence-transformers' maxsim
        with torch.inference_mode():
            return torch.einsum("sh,bth->bst", q, d.view(DOCUMENTS, TOKENS, WIDTH)).amax(2).sum(1)

    calls = {"numpy": by_numpy, "torch": by_torch, "torch einsum": by_einsum}
    try:
        from pylate.scores import colbert_scores
    except ImportError as error:
        print(f"PyLate is left out: {error}")
    else:
        def by_pylate():
            with torch.inference_mode():
                return colbert_scores(q[None], d.view(DOCUMENTS, TOKENS, WIDTH))[0]
        calls["PyLate"] = by_pylate
    for name, call in calls.items():
        assert np.allclose(by_numpy(), np.asarray(call()), rtol=1e-4), name
        ms = median_ms(call, arguments.seconds)
        print(f"{name:14} threads {threads}: {ms:8.2f} ms  {FLOPS / ms / 1e6:7.1f} GFLOP/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
