# SPDX-License-Identifier: Apache-2.0
"""CTranslate2 as a peer, for whole models: a folder as its converter makes it, token ids in, hidden
states out, in f32 and int8 (weights beforehand, activations row by row at run time).

Its products are MKL's or oneDNN's, by an environment variable: both are tried in
processes of their own, and the faster one is taken.
"""

import contextlib
import os
import subprocess
import sys

import ctranslate2
import numpy

import remote

VERSION = ctranslate2.__version__
WAIT_POLICY = "spins for a while (libgomp's default)"
TYPES = {"f32": "float32", "int8": "int8"}
GRAPHS = {precision: ("converted",) for precision in TYPES}
TRIES = 7


class Peer:
    """A model, ready to run again and again."""

    def __init__(self, workload, folder, ids, threads, precision, _graph):
        converted = folder / "ctranslate2"
        if not converted.is_dir():
            with contextlib.redirect_stdout(sys.stderr):
                ctranslate2.converters.TransformersConverter(str(folder)).convert(str(converted))
        if "CT2_USE_MKL" not in os.environ:
            seconds = {mkl: seconds_with(mkl, folder, workload, threads, precision)
                       for mkl in ("1", "0")}
            os.environ["CT2_USE_MKL"] = min(seconds, key=seconds.get)
        self.encoder = ctranslate2.Encoder(str(converted), compute_type=TYPES[precision],
                                           inter_threads=1, intra_threads=threads)
        self.ids = ids.tolist()
        self.returned = None

    def call(self):
        self.returned = self.encoder.forward_batch(self.ids)

    def output(self):
        """[B, D]: the mean over the tokens of the last call."""
        return numpy.array(self.returned.last_hidden_state).mean(axis=1)


def seconds_with(mkl, folder, workload, threads, precision):
    """The fastest of some calls, in a process with that setting."""
    command = [sys.executable, __file__, folder, workload.name, str(threads), precision]
    done = remote.run(command, env={**os.environ, "CT2_USE_MKL": mkl}, text=True,
                      stdout=subprocess.PIPE)
    done.check_returncode()
    return float(done.stdout)


def try_calls(folder, name, threads, precision):
    import layers
    folder, ids = layers.inputs(folder, layers.WORKLOADS[name])
    peer = Peer(None, folder, ids, int(threads), precision, "")
    print(min(remote.call_times(peer.call, 0, TRIES)))


if __name__ == "__main__":
    try_calls(*sys.argv[1:])
