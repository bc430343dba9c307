# SPDX-License-Identifier: Apache-2.0
"""One peer in one precision, in a process of its own that compare.py starts and asks.

The first answer says what it is and how far its output is from the reference. Then it answers
["times", "warm" or "cold"] with what results.summary() says of the calls, in seconds a layer (a
call of a whole model), and ["explain"] with lines.
"""

import argparse
import importlib
import pathlib
import statistics
import sys
import time

import isa

# Of a turn, however long they take.
MIN_CALLS = 3
# Graphs are tried so often, each time for that part of a turn.
TRIES, TRY_PART = 3, 1 / 8


def call_times(call, seconds, before=None):
    """Seconds of each of many calls, for about so long; the first is not counted.

    before() runs ahead of each call, outside its time.
    """
    clock = time.perf_counter_ns
    call()
    samples = []
    spent, wanted = 0, int(seconds * 1e9)
    while spent < wanted or len(samples) < MIN_CALLS:
        if before is not None:
            before()
        start = clock()
        call()
        samples.append(clock() - start)
        spent += samples[-1]
    return [sample * 1e-9 for sample in samples]


class OnePeer:
    """A peer with the graph that is fastest here when warm, and its model of many layers."""

    def __init__(self, args, engine, modules):
        self.args, self.engine = args, engine
        blocks, cases, self.cold, self.quiet, self.results = modules
        self.workload = blocks.WORKLOADS[args.workload]
        self.weights, self.x = cases.inputs(args.folder, self.workload)
        graphs = engine.GRAPHS[args.precision]
        if args.graph != "best":
            graphs = [graph for graph in graphs if graph == args.graph] or graphs
        peers = self.make_all(graphs)
        times = {graph: [] for graph in peers}
        for _ in range(TRIES if len(peers) > 1 else 1):
            for graph, peer in peers.items():
                found = call_times(peer.call, args.seconds * TRY_PART)
                times[graph].append(statistics.median(found) * 1e6)
        # Of the tries the best, for another process may disturb some of them.
        self.graph = min(times, key=lambda graph: min(times[graph]))
        self.warm = peers[self.graph]
        self.deep = None  # made when it is first asked for

    def make_all(self, graphs):
        """Those that the engine can run, by name; what it says where it can run none."""
        peers, said = {}, None
        for graph in graphs:
            try:
                peers[graph] = self.make(graph, 1)
            # Such as a type without a kernel for a lowered limit, or nncf that is not there.
            except (RuntimeError, ImportError) as error:
                said = " ".join(str(error).split())
        if not peers:
            raise SystemExit(said)
        return peers

    def make(self, graph, layers):
        return self.engine.Peer(self.workload, self.weights, self.x, self.args.threads,
                                self.args.precision, graph, layers)

    def about(self):
        import numpy
        import reference
        self.warm.call()
        largest, rms = reference.errors(self.warm.output(),
                                        numpy.load(self.args.folder / "reference.npy"))
        return {"engine": self.engine.NAME, "version": self.engine.VERSION,
                "wait_policy": self.engine.WAIT_POLICY, "graph": self.graph,
                "isa": getattr(self.engine, "isa", isa.in_force)(self.args.max_isa),
                "max_error": largest, "rms_error": rms}

    def times(self, weights):
        call, layers, before = self.warm.call, 1, None
        if weights == "cold":
            layers = self.cold.layers(self.workload, self.args.precision)
            if self.deep is None:
                self.deep = (self.make(self.graph, layers),
                             self.cold.Sweep(self.workload, self.args.precision))
            call, before = self.deep[0].call, self.deep[1]
        samples, load = self.quiet.turn(lambda: call_times(call, self.args.seconds, before),
                                        self.args.retakes)
        return {**self.results.summary([sample / layers for sample in samples]), "others": load}

    def answer(self, what, *rest):
        return self.times(*rest) if what == "times" else getattr(self.warm, "explain", list)()


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--precision", required=True)
    parser.add_argument("--workload", required=True)
    parser.add_argument("--graph", default="best")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--retakes", type=int, required=True)
    parser.add_argument("--max-isa", default="")
    parser.add_argument("--encore-target", default="")
    parser.add_argument("--folder", type=pathlib.Path, required=True,
                        help="with what cases.py writes")
    return parser.parse_args()


def main():
    args = parse_args()
    isa.limit(args.max_isa)  # before anything that may load an engine
    import remote

    def make():
        engine = remote.import_or_leave(f"{args.peer}_peer")
        if args.encore_target:
            engine.pyencore.set_target(args.encore_target)
        modules = [importlib.import_module(name) for name in ("blocks", "cases", "cold",
                                                              "quiet", "results")]
        one = OnePeer(args, engine, modules)
        return one.about(), one.answer

    return remote.serve(make)


if __name__ == "__main__":
    sys.exit(main())
