# SPDX-License-Identifier: Apache-2.0
"""`encode` of many texts replayed: tokenizing, batches, embedding, layers and pooling as
engine/text/stream.cc has them. What each takes is measured here (replay_encode_costs.py)."""

import dataclasses

from pyencore.lab.reports import LabError

from replay import MODELS, ROWS_OF_TASK, Replayed, Shape, Stage, makespan, simulated

LAYERS = {"minilm": 6, "base": 12, "large": 24}

# Of engine/text/stream.cc, token_store.cc and models/embeddings.cc.
CHUNK_TEXTS = 8192
LEAST_TOKENS, TOKENS_OF_THREAD = 2048, 512  # of a batch
TEXTS_OF_TASK, ROWS_OF_EMBEDDING = 16, 32  # of a task
BYTES_OF_FLOAT = 4
# Of text/scratch.h and base/workspace.cc: what a model keeps for its next call, and how much of new
# memory the caller touches before the threads use it.
MOST_KEPT, MOST_TOUCHED = 128 << 20, 32 << 20


@dataclasses.dataclass(frozen=True)
class Workload:
    """`encode` of so many texts. layer: of its model, with no batch yet."""
    layer: Shape
    layers: int
    texts: int

    @property
    def name(self):
        return self.layer.name


def is_workload(name):
    return name.split("_")[1:2] == ["encode"]


def workload(name):
    """minilm_encode_10000 and the like."""
    parts = name.split("_")
    if len(parts) != 3 or parts[0] not in MODELS or not parts[2].isdigit() or not int(parts[2]):
        raise LabError(f"found '{name}', wanted {', '.join(MODELS)}, and _encode_10000 behind it")
    return Workload(Shape(name, *MODELS[parts[0]], ()), LAYERS[parts[0]], int(parts[2]))


@dataclasses.dataclass(frozen=True)
class TextCosts:
    """Seconds on one core, measured."""
    tokenizing: float  # a token
    rows: float  # an element of a token's row: its embedding, and its part of pooling
    serial: float  # a token: what the caller does alone
    cold: float  # a layer: its weights are read from memory
    fresh: float  # a byte of new memory, which the caller alone touches first


def chunks(lengths):
    """Texts whose tokens are held at once."""
    for begin in range(0, len(lengths), CHUNK_TEXTS):
        yield lengths[begin:begin + CHUNK_TEXTS]


def batches(lengths, threads):
    """Of one chunk: the longest texts first, as many as fit."""
    most = max(LEAST_TOKENS, TOKENS_OF_THREAD * threads)
    made = []
    tokens = 0
    for length in sorted(lengths, reverse=True):
        if not made or tokens + length > most:
            made.append([])
            tokens = 0
        made[-1].append(length)
        tokens += length
    return [tuple(batch) for batch in made]


def new_bytes(work, lengths, threads):
    """Of the result, which is filled with zeros, and of a call's scratch, where that is more than a
    model keeps: the encoder's workspace (nn/scratch_plan.cc, without padding) and its input, with a
    quarter more than it needs. The caller touches them alone."""
    layer = work.layer
    d = layer.d_model
    result = len(lengths) * d * BYTES_OF_FLOAT
    made = [batch for chunk in chunks(lengths) for batch in batches(chunk, threads)]
    tokens, sequences = max(map(sum, made)), max(map(len, made))
    block = min(threads * min(tokens, ROWS_OF_TASK), tokens + tokens // 4)
    # Queries, keys, values; packed keys; contexts. Of row blocks: two of d_model, one of d_ff.
    workspace = BYTES_OF_FLOAT * ((5 * tokens + 16 * sequences) * d + block * (2 * d + layer.d_ff))
    x = tokens * d * BYTES_OF_FLOAT * 5 // 4
    if workspace + x <= MOST_KEPT:
        return result
    return result + min(workspace, MOST_TOUCHED) + min(x, MOST_TOUCHED)


def replayed(work, lengths, threads, plan, costs, text, machine):
    """encode of texts of these lengths. plan(layer with a batch, threads): the engine's."""
    tokenizing = rows = layers = 0.0
    kinds = []

    def stage(tasks, in_order=False):
        return (makespan(Stage(tasks, in_order), threads) +
                machine.hand_over_of(min(threads, len(tasks))))

    for chunk in chunks(lengths):
        tokenizing += stage([text.tokenizing * sum(chunk[i:i + TEXTS_OF_TASK])
                             for i in range(0, len(chunk), TEXTS_OF_TASK)], in_order=True)
        for batch in batches(chunk, threads):
            layer = dataclasses.replace(work.layer, lengths=batch)
            # Both are in one cost, and in two stages.
            of_row = text.rows * layer.d_model
            rows += (stage([of_row * min(ROWS_OF_EMBEDDING, layer.tokens - row)
                            for row in range(0, layer.tokens, ROWS_OF_EMBEDDING)]) +
                     machine.hand_over_of(min(threads, len(batch))))
            found = plan(layer, threads)
            kinds.append(found["threads"]["kind"])
            layers += work.layers * (simulated(layer, found, costs, machine) + text.cold)
    return Replayed({"tokenizing": tokenizing, "embedding and pooling": rows,
                     "one thread": text.serial * sum(lengths),
                     "new memory": text.fresh * new_bytes(work, lengths, threads),
                     "layers": layers}, tuple(kinds))
