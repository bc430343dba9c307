# SPDX-License-Identifier: Apache-2.0
"""Layers with drawn weights, in every precision: those of `encore bench`, by their names; the
products of a layer alone; and whole models from token ids, for engines that compute no layer by
itself. Never one of these beside another.

    .deps/venv/bin/python bench/peers/compare.py layers --markdown --json peers.json

Outputs are compared with float64: the rms error and the largest one, by the output's rms. With more
threads than one, encore is timed as it is, with its threads spinning between calls, and on the
calling thread alone; in bf16 where there is AMX, with it too. --json writes a report as `encore
bench` does, which pyencore.lab shows. Peers use AMX where the machine has it, encore for int8 and
--amx-bf16. --max-isa AVX512_CORE_BF16 takes AMX from all of them; the detail of a row says that,
and AMX where the peer's process asked for it and got it.
"""

import dataclasses
import importlib
import importlib.util
import json
import math
import pathlib
import statistics
import sys
import types

import numpy

import compare
import isa
import remote

ENGINES_ACROSS = True
# In the order of the table: what each is held to, and the precisions that it can compute in.
PEERS = {"onnxruntime": ("block", ("f32", "int8")), "openvino": ("block", ("f32", "bf16", "int8")),
         "torch": ("block", ("f32", "bf16")), "onednn": ("products", ("f32", "bf16", "int8")),
         "openblas": ("products", ("f32",)), "ctranslate2": ("model", ("f32", "int8"))}
PRECISIONS = ("f32", "bf16", "int8")
# Ways to run encore, each with rows of its own: options of pyencore.Encoder.
SPIN, AMX_BF16 = {"idle_spin": 10000}, {"amx_bf16": True}
VARIANTS = {"encore": {}, "encore --idle-spin 10000": SPIN, "encore --amx-bf16": AMX_BF16,
            "encore --amx-bf16 --idle-spin 10000": {**AMX_BF16, **SPIN},
            "encore on 1 thread": {"threads": 1}}
ENCORE_OF_KIND = {"products": ("f32",), "model": ("f32", "int8")}  # precisions of encore
EPSILON = 1e-5
# The bound for a right output, by precision. f32 gives 5e-7; GELU by tanh instead of
# erf 1e-4; a wrong layout more than 1.
MAX_RMS_ERROR = {"f32": 1e-5, "bf16": 0.03, "int8": 0.15}
BYTES = {"f32": 4, "bf16": 2, "int8": 1}  # of a weight
# A layer's products. Their inputs are x [B S, D], and what linear2 reads [B S, d_ff].
PRODUCTS = ("self_attn.in_proj_weight", "self_attn.out_proj.weight", "linear1.weight",
            "linear2.weight")
VOCABULARY = 1000
# Graphs are tried so often, each time for that part of a turn.
TRIES, TRY_PART = 3, 1 / 8
MAX_SLOTS = 64  # of a row, by the schema


@dataclasses.dataclass(frozen=True)
class Workload:
    """A batch, and what is computed of it: one post-norm layer; the four products of one (QKV as
    one) without attention, norms and all else; or a BERT of so many layers from token ids."""
    model: str
    d_model: int
    heads: int
    d_ff: int
    activation: str  # "relu" or "gelu" (by erf)
    batch: int
    seq: int
    kind: str = "block"  # or "products" or "model"
    layers: int = 1

    @property
    def name(self):
        middle = {"block": "", "products": "_products", "model": f"_{self.layers}_layers_of_ids"}
        return f"{self.model}{middle[self.kind]}_{self.batch}x{self.seq}"

    @property
    def flops(self):
        """Of one call: the matrix products; softmax, LayerNorm and activation count as none."""
        d, s = self.d_model, self.seq
        attention = 0 if self.kind == "products" else 4 * s * s * d
        return self.layers * self.batch * (8 * s * d * d + 4 * s * d * self.d_ff + attention)


MODELS = {  # d_model, heads, d_ff, activation
    "example": (64, 4, 256, "relu"), "minilm": (384, 12, 1536, "gelu"),
    "base": (768, 12, 3072, "gelu"), "large": (1024, 16, 4096, "gelu")}
BLOCKS = ("example_32x10 example_10x32 minilm_1x16 minilm_1x128 minilm_8x128 base_1x16 base_1x128 "
          "base_8x128 base_1x512 large_1x128")
KINDS = (("block", 1, BLOCKS), ("products", 1, "minilm_1x16 minilm_1x128 minilm_8x128 base_1x128"),
         ("model", 6, "minilm_1x16 minilm_1x128 minilm_8x128"), ("model", 12, "base_1x128"))


def _workload(name, kind, layers):
    model, size = name.split("_")
    return Workload(model, *MODELS[model], *map(int, size.split("x")), kind, layers)


WORKLOADS = {w.name: w for kind, layers, names in KINDS
             for w in (_workload(name, kind, layers) for name in names.split())}


# ---- Weights, inputs and what is wanted ---------------------------------------------------------

def random_weights(workload, seed=1):
    """Tensors of one layer, float32, named as torch.nn.TransformerEncoderLayer names them."""
    rng = numpy.random.default_rng(seed)
    d, d_ff = workload.d_model, workload.d_ff

    def uniform(half_width, *shape, middle=0.0):
        return (middle + half_width * (2 * rng.random(shape) - 1)).astype(numpy.float32)

    # sqrt(3 / K) makes products of unit variance from inputs of unit variance.
    wide, narrow = math.sqrt(3 / d), math.sqrt(3 / d_ff)
    tensors = {}
    for name, rows, columns, width in (("self_attn.in_proj_", 3 * d, d, wide),
                                       ("self_attn.out_proj.", d, d, wide),
                                       ("linear1.", d_ff, d, wide), ("linear2.", d, d_ff, narrow)):
        tensors[f"{name}weight"] = uniform(width, rows, columns)
        tensors[f"{name}bias"] = uniform(0.1, rows)
    for norm in ("norm1", "norm2"):
        tensors[f"{norm}.weight"] = uniform(0.1, d, middle=1.0)
        tensors[f"{norm}.bias"] = uniform(0.1, d)
    return tensors


def random_input(workload, seed=2):
    """[B, S, D], float32, of unit variance."""
    shape = (workload.batch, workload.seq, workload.d_model)
    return numpy.random.default_rng(seed).standard_normal(shape).astype(numpy.float32)


def token_ids(workload):
    """[B, S]."""
    return numpy.random.default_rng(2).integers(5, VOCABULARY, (workload.batch, workload.seq))


def write_model(folder, workload):
    """A BERT as Hugging Face's folders have it, with random weights; the mean of its last hidden
    states [B, D], float64."""
    import torch  # slow to load, and needed by whole models alone
    import transformers
    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=VOCABULARY, hidden_size=workload.d_model, num_hidden_layers=workload.layers,
        num_attention_heads=workload.heads, intermediate_size=workload.d_ff,
        hidden_act=workload.activation, max_position_embeddings=512,
        initializer_range=0.05,  # 0.02 leaves the layers little to say beside the residuals
        position_embedding_type="absolute")  # CTranslate2's converter asks
    model = transformers.BertModel(config, add_pooling_layer=False).eval()
    model.save_pretrained(folder)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words += [f"w{i}" for i in range(VOCABULARY - len(words))]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "BertTokenizer", "model_max_length": 512}), "utf-8")
    with torch.inference_mode():
        hidden = model.double()(torch.from_numpy(token_ids(workload))).last_hidden_state
    return hidden.mean(dim=1).numpy()


def inputs(folder, workload):
    """(weights, x) as an engine of that kind takes them: tensors by name, or a model's folder."""
    if workload.kind == "model":
        return pathlib.Path(folder), token_ids(workload)
    weights, x = random_weights(workload), random_input(workload)
    if workload.kind == "block":
        return weights, x
    x = x.reshape(-1, workload.d_model)
    hidden = numpy.random.default_rng(3).standard_normal((len(x), workload.d_ff))
    return [weights[name] for name in PRODUCTS], [x, x, x, hidden.astype(numpy.float32)]


def prepare(case, folder):
    """What is wanted, in float64."""
    workload = case.work
    if workload.kind == "model":
        wanted = write_model(folder, workload)
    else:
        weights, x = inputs(folder, workload)
        if workload.kind == "products":
            wanted = numpy.concatenate([a.astype(numpy.float64) @ w.T.astype(numpy.float64)
                                        for a, w in zip(x, weights)], axis=1)
        else:
            sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests/make"))
            from golden import plain
            weights = {name: array.astype(numpy.float64) for name, array in weights.items()}
            config = {"num_heads": workload.heads, "activation": workload.activation,
                      "norm_placement": "kPost", "norm": {"type": "kLayerNorm", "epsilon": EPSILON}}
            wanted = numpy.stack([plain.layer(weights, config, part)
                                  for part in x.astype(numpy.float64)])
    numpy.save(folder / "wanted.npy", wanted)


def difference(_options, engine, found, wanted):
    scale = math.sqrt(numpy.square(wanted).mean())
    error = numpy.abs(found.astype(numpy.float64) - wanted) / scale
    rms = math.sqrt(numpy.square(error).mean())
    if not rms <= MAX_RMS_ERROR[engine.precision]:  # NaN too
        return "", f"an rms error of {rms:.2g}; {MAX_RMS_ERROR[engine.precision]} is allowed"
    return f"{rms:.1e}, {error.max():.1e}", None


# ---- In an engine's process ---------------------------------------------------------------------

class Products:
    """The four products of a layer, one after the other. A subclass has product(x, weight, y): it
    gives a function that writes x [M, K] times the weight [N, K], transposed, to y."""

    def __init__(self, weights, x):
        self.arrays = [(a, weight.copy(), numpy.empty((len(a), len(weight)), numpy.float32))
                       for a, weight in zip(x, weights)]
        self.calls = [self.product(*arrays) for arrays in self.arrays]
        self.returned = None

    def call(self):
        self.returned = [call() for call in self.calls]

    def output(self):
        """[M, all columns]."""
        return numpy.concatenate([y for _, _, y in self.arrays], axis=1)


def fastest(peers, seconds):
    """The name of the one whose fastest median of some tries is the least."""
    medians = {name: [] for name in peers}
    for _ in range(TRIES if len(peers) > 1 else 1):
        for name, peer in peers.items():
            peer.call()
            medians[name].append(statistics.median(remote.call_times(peer.call, seconds)))
    return min(medians, key=lambda name: min(medians[name]))


def opened(job):
    """A peer with the graph that is fastest here."""
    engine = importlib.import_module(f"{job['adapter']}_peer")
    if job.get("target"):
        engine.pyencore.set_target(job["target"])
    workload = WORKLOADS[job["workload"]]
    weights, x = inputs(job["folder"], workload)
    peers, said = {}, None
    for graph in [job["graph"]] if job["graph"] else engine.GRAPHS[job["precision"]]:
        try:
            peers[graph] = engine.Peer(workload, weights, x, job["threads"], job["precision"],
                                       graph)
        # Such as a type without a kernel for a lowered limit, or nncf that is not there.
        except (RuntimeError, ImportError) as error:
            said = error
    if not peers:
        raise said
    graph = fastest(peers, job["seconds"] * TRY_PART)
    spin = VARIANTS.get(graph, {}).get("idle_spin")
    detail = getattr(engine, "isa", isa.in_force)(job["max_isa"])
    if len(engine.GRAPHS[job["precision"]]) > 1 and job["adapter"] != "encore":
        detail += f"; {graph}"
    return types.SimpleNamespace(
        calls={"": peers[graph].call}, output=peers[graph].output,
        about={"version": f"{engine.VERSION}; between calls "
                          + (f"spins for {spin} us" if spin else engine.WAIT_POLICY),
               "detail": detail})


# ---- In the process that compares ---------------------------------------------------------------

def add_options(parser):
    for option, choices, what in (("--peer", PEERS, "these peers"),
                                  ("--precision", PRECISIONS, "these precisions"),
                                  ("--workload", WORKLOADS, "these workloads")):
        default = [name for name in choices if name != "example_10x32"]  # as 32x10
        parser.add_argument(option, nargs="+", choices=choices, metavar="NAME", default=default,
                            help=f"only {what}: {' '.join(choices)}")
    parser.add_argument("--encore-target", default="", metavar="NAME",
                        help="encore's SIMD target, e.g. AVX2; else its best")
    parser.add_argument("--max-isa", default="", metavar="NAME",
                        help="the peers' instruction sets at most, as ONEDNN_MAX_CPU_ISA names "
                             f"them: {' '.join(isa.NAMES)}; those without AMX deny it to every "
                             "peer")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="a report of all rows")


def begin(options):
    """Says what is not installed. What is done in the end."""
    import pyencore
    targets = pyencore.supported_targets()
    if isa.is_without_amx(options.max_isa) and targets[0] == "AMX" and not options.encore_target:
        options.encore_target = targets[1]
    options.has_amx = (options.encore_target or targets[0]) == "AMX"
    packages = {"onednn": ("torch",), "openblas": ("scipy_openblas32",),
                "ctranslate2": ("ctranslate2", "torch", "transformers")}
    for name in list(options.peer):
        missing = [package for package in packages.get(name, (name,))
                   if importlib.util.find_spec(package) is None]
        if missing:
            compare.say(f"{name} is left out: found no Python package {', '.join(missing)}; "
                        "`tools/python_env.sh peers` installs it")
            options.peer.remove(name)
    if not options.json:
        return None
    if not options.json.parent.is_dir():  # before the work rather than after it
        raise SystemExit(f"--json {options.json}: there is no folder {options.json.parent}")
    from pyencore.lab import measure
    frame = measure.bench(measure.find_encore(), [  # the machine and its roofs
        "--workload", "example_32x10", "--seconds", "0", "--threads",
        ",".join(map(str, sorted(set(options.threads)))),
        *(("--target", options.encore_target) if options.encore_target else ())])
    return lambda rows, head: write_report(options.json, frame, rows, head)


def cases(options):
    kinds = {PEERS[name][0] for name in options.peer}
    for name in options.workload:
        work = WORKLOADS[name]
        for threads in options.threads if work.kind in kinds else ():
            yield compare.Case(name, threads, {"": (work.flops * 1e-9, "GFLOP")}, work)


def engines(options, case):
    kind, common = case.work.kind, {"workload": case.name, "max_isa": options.max_isa}
    for precision in options.precision:
        if precision in ENCORE_OF_KIND.get(kind, PRECISIONS):
            amx = options.has_amx and precision == "bf16"
            for name, variant in VARIANTS.items() if kind == "block" else (("encore", {}),):
                if (("amx_bf16" in variant) <= amx and
                        (case.threads > 1 or not variant.keys() & {"idle_spin", "threads"})):
                    yield {**common, "adapter": "encore", "engine": name, "precision": precision,
                           "graph": name, "is_base": True, "target": options.encore_target,
                           "max_isa": ""}
        for name in options.peer:
            if PEERS[name][0] == kind and precision in PEERS[name][1]:
                yield {**common, "adapter": name, "engine": name, "precision": precision,
                       "graph": ""}


def report_row(r):
    """A row as python/pyencore/lab/report.schema.json has it."""
    work, seconds = r["case"].work, r["seconds"]
    tokens = work.batch * work.seq
    weights = work.layers * (4 * work.d_model ** 2 + 2 * work.d_model * work.d_ff)
    return {"engine": r["engine"].replace(" --amx-bf16", ""), "engine_version": r["version"],
            "workload": work.name, "d_model": work.d_model, "heads": work.heads,
            "d_ff": work.d_ff, "activation": work.activation, "layers": work.layers,
            "sequences": work.batch, "tokens": tokens, "useful_tokens": tokens,
            "precision": r["precision"], "amx_bf16": "--amx-bf16" in r["engine"],
            "target": r["detail"], "threads": r["threads"], "weights": "warm", "calls": r["calls"],
            "flops": work.flops, "weight_bytes": weights * BYTES[r["precision"]],
            "seconds": seconds, "slots": r["slots"][::-(-len(r["slots"]) // MAX_SLOTS)],
            "gflops": work.flops / seconds["p50"] * 1e-9, "tokens_per_s": tokens / seconds["p50"],
            "useful_tokens_per_s": tokens / seconds["p50"], "roof": None, "verified": True}


def write_report(path, frame, rows, head):
    from pyencore.lab import reports
    busy = 100 * statistics.mean(r["others"] for r in rows) / frame["machine"]["cores"]
    settings = [f"{key}: {value}" for key, value in head.items()]
    report = reports.check({
        **frame, "run": {**frame["run"], "settings": settings},
        "noise": {**frame["noise"], "steal_percent": -1, "busy_percent": busy},
        "rows": [report_row(r) for r in rows]})
    reports.write(path, json.dumps(report, indent=1) + "\n")
