# SPDX-License-Identifier: Apache-2.0
"""MaxSim of one query of 32 tokens with 1,000 documents of 180, in vectors of 128, by numpy, torch
and, where it can be imported, PyLate. bench_max_sim measures encore.

    .deps/venv/bin/pip install --no-deps pylate==1.6.0
    .deps/venv/bin/python bench/peers/compare.py max_sim --threads 1
"""

import types

import numpy

import compare

ENGINES_ACROSS = True
QUERY, DOCUMENTS, TOKENS, WIDTH = 32, 1000, 180, 128
GFLOPS = 2e-9 * QUERY * DOCUMENTS * TOKENS * WIDTH


def opened(job):
    rng = numpy.random.default_rng(1)
    query = rng.standard_normal((QUERY, WIDTH), numpy.float32)
    flat = rng.standard_normal((DOCUMENTS * TOKENS, WIDTH), numpy.float32)
    if job["engine"] == "numpy":
        version = numpy.__version__

        def call():
            return (flat @ query.T).reshape(DOCUMENTS, TOKENS, QUERY).max(1).sum(1)
    else:
        import torch
        torch.set_num_threads(job["threads"])
        torch.inference_mode().__enter__()
        version = torch.__version__.split("+")[0]
        q, d = torch.from_numpy(query), torch.from_numpy(flat)
        each = d.view(DOCUMENTS, TOKENS, WIDTH)
        if job["engine"] == "PyLate":
            from pylate.scores import colbert_scores
        call = {"torch": lambda: (d @ q.T).view(DOCUMENTS, TOKENS, QUERY).amax(1).sum(1),
                # As sentence-transformers' maxsim.
                "torch einsum": lambda: torch.einsum("sh,bth->bst", q, each).amax(2).sum(1),
                "PyLate": lambda: colbert_scores(q[None], each)[0]}[job["engine"]]
    return types.SimpleNamespace(calls={"": call}, output=lambda: numpy.asarray(call()),
                                 about={"version": version})


def add_options(_parser):
    pass


def prepare(_case, _folder):
    pass


def cases(options):
    for threads in options.threads:
        yield compare.Case("1x1000", threads, {"": (GFLOPS, "GFLOP")})


def engines(_options, _case):
    for name in ("numpy", "torch", "torch einsum", "PyLate"):
        yield {"engine": name, "precision": "f32"}


def difference(_options, _engine, found, wanted):
    return "", None if numpy.allclose(found, wanted, rtol=1e-4) else "its scores differ"
