# SPDX-License-Identifier: Apache-2.0
"""pyencore's classes of sentence-transformers' names beside these: how a folder is opened with
random arguments, the methods with their arguments, and the attributes that are set."""
import copy
import enum

import numpy as np
import sentence_transformers
import torch
from sentence_transformers import SimilarityFunction

import pyencore
from call_check import folders
from model_fixture_families import set_exact
from call_check.arguments import (FLAG, Call, Once, Parameter, choice, draw_call,
                                  draw_inputs, draw_text, draw_texts, draw_wrong, one_in)

SIMILARITIES = [*("cosine", "dot", "euclidean", "manhattan") * 2, None, SimilarityFunction.COSINE,
                SimilarityFunction.DOT_PRODUCT, SimilarityFunction.MANHATTAN, "COSINE", "l2",
                SimilarityFunction.MAXSIM, "maxsim"]
NAMES = choice("query", "query", "document", "document", "mine", "mine", "none such", None)
PROMPT = choice("find: ", "", "[MASK] ", "caf\u00e9 ", None, "a " * 200)
SIZES = choice(1, 2, 3, 32, 8, np.int64(4), 0)
DEVICE = Parameter("device", choice(None, "cpu", torch.device("cpu"), "cuda", "cpu:0"), None, 0.1,
                   False)
POOL = [Parameter("pool", choice(None), None, 0.02, False),
        Parameter("chunk_size", choice(None, 2), None, 0.02, False)]
KWARGS = {"dtype": torch.float32}


class Subject:
    """A class of encore's and its counterpart, both of one folder."""

    METHODS = {}
    ATTRIBUTES = {}
    READ = ()

    def options(self, rng):
        return {}

    def prepare(self, rng, folder):
        """Writes the folder; what it is and the arguments of both."""
        self.what = self.make(rng, folder)
        self.given = self.options(rng)

    def open_ours(self, folder):
        self.ours = getattr(pyencore, type(self).__name__)(str(folder), threads=1, **self.given)

    def draw(self, rng, name):
        if name.startswith("set "):
            return Call(name, (self.ATTRIBUTES[name[4:]](rng),))
        if name.startswith("get "):
            return Call(name)
        return self.METHODS[name](self, rng)

    def names(self):
        return [*self.METHODS, *(f"set {name}" for name in self.ATTRIBUTES),
                *(f"get {name}" for name in self.READ)]

    def side(self, call, ours):
        model = self.ours if ours else self.theirs
        kind, _, attribute = call.method.partition(" ")
        if kind == "get":
            return getattr(model, attribute)
        args, options = call.of(ours)
        if kind == "set":
            setattr(model, attribute, args[0])
            return None
        if not ours:
            return self.reference(call.method, args, options)
        return getattr(model, call.method)(*args, **options)

    def reference(self, method, args, options):
        return getattr(self.theirs, method)(*args, **options)

    def exact(self, call):
        """The reference's in float64."""
        model = self.theirs
        self.theirs = copy.deepcopy(model)
        module = self.theirs if isinstance(model, torch.nn.Module) else self.theirs.model
        set_exact(module.double(), True)
        try:
            return self.side(call, False)
        finally:
            set_exact(module, False)
            self.theirs = model

    def found(self, call, value):
        """encore's result, as what it is compared by."""
        return value

    def wanted(self, call, value):
        return value


def encode_parameters(inputs=draw_inputs):
    return [
        Parameter("inputs", inputs, share=1.0), Parameter("prompt_name", NAMES, share=0.15),
        Parameter("prompt", PROMPT), Parameter("batch_size", SIZES, 32),
        Parameter("show_progress_bar", choice(False, None, False), None, 0.1)]


TEXT = [*encode_parameters(), Parameter(
            "output_value", choice("sentence_embedding", "token_embeddings", None, "else"),
            "sentence_embedding", 0.15),
        Parameter("precision", choice("float32", "int8", "uint8", "binary", "ubinary", None,
                                      "int4"), "float32", 0.2),
        Parameter("convert_to_numpy", FLAG, True, 0.15),
        Parameter("convert_to_tensor", FLAG, False, 0.15), DEVICE,
        Parameter("normalize_embeddings", FLAG, False, 0.2),
        Parameter("truncate_dim", choice(None, 1, 5, 8, np.int64(7), 1000, 0, -3), None, 0.2),
        *POOL]


def draw_vectors(rng, width=None):
    """A matrix, a vector or a list of vectors, of numbers or of few."""
    own = folders.numpy_random(rng)
    width = width or rng.choice([1, 3, 8])
    rows = rng.choice([0, 1, 2, 5])
    matrix = own.standard_normal((rows, width)).astype(
        rng.choice([np.float32] * 6 + [np.float64]))
    kind = rng.choice(["matrix"] * 4 + ["tensor"] * 3 + [
        "vector", "list", "tensors", "lists", "vector tensor", "zeros", "ints"])
    return {"matrix": lambda: matrix, "tensor": lambda: torch.from_numpy(matrix),
            "vector": lambda: own.standard_normal(width).astype(np.float32),
            "vector tensor": lambda: torch.from_numpy(own.standard_normal(width).astype("f4")),
            "list": lambda: list(matrix), "tensors": lambda: list(torch.from_numpy(matrix)),
            "lists": lambda: matrix.tolist(),
            "zeros": lambda: np.zeros_like(matrix),
            "ints": lambda: (matrix * 5).astype(np.int64)}[kind]()


def draw_similarity(method):
    def draw(self, rng):
        width = rng.choice([1, 3, 8])
        first, second = (draw_vectors(rng, width if rng.random() < 0.95 else None)
                         for _ in range(2))
        if method == "similarity_pairwise" and rng.random() < 0.7:
            own = folders.numpy_random(rng)
            rows = rng.choice([0, 1, 2, 5])
            first, second = (own.standard_normal((rows, width)).astype(np.float32)
                             for _ in range(2))
            if one_in(rng, 2):
                first, second = torch.from_numpy(first), torch.from_numpy(second)
            elif one_in(rng, 3):
                first, second = list(first), second
        if rng.random() < 0.04:
            first = draw_wrong(rng)
        if rng.random() < 0.04:
            second = draw_wrong(rng)
        return named(rng, Call(method, (first, second)), "embeddings1", "embeddings2")
    return draw


def named(rng, call, *names):
    """Some of a call's arguments by name."""
    by_position = rng.choice([0, 1, len(names), len(names)])
    options = dict(zip(names[by_position:], call.args[by_position:]))
    return Call(call.method, call.args[:by_position], {**options, **call.options})


def draw_encode(method, parameters):
    def draw(self, rng):
        call = draw_call(rng, method, parameters)
        late = any(parameter.name == "token_pooling" for parameter in parameters)
        if one_in(rng, 40) and call.args and not late:  # the name of before
            rest = {p.name: value for p, value in zip(parameters[1:], call.args[1:])}
            call = Call(method, (), {"sentences": call.args[0], **rest, **call.options})
        return call
    return draw


def prompts_of(rng):
    return rng.choice([*folders.PROMPTS, {"query": "set: ", "document": "", "mine": "b "}])


def max_lengths(rng):
    return rng.choice([3, 5, 8, 12, 20, np.int64(9), 0, -4, "x", 2.5])


class TextEncoder(Subject):
    METHODS = {"encode": draw_encode("encode", TEXT),
               "encode_query": draw_encode("encode_query", TEXT),
               "encode_document": draw_encode("encode_document", TEXT),
               "similarity": draw_similarity("similarity"),
               "similarity_pairwise": draw_similarity("similarity_pairwise"),
               "tokenize": lambda self, rng: Call("tokenize", (
                   draw_texts(rng) or ["tea"] if rng.random() < 0.9 else wrong_list(rng),)),
               "get_sentence_embedding_dimension": lambda self, rng: Call(
                   "get_sentence_embedding_dimension"),
               "get_embedding_dimension": lambda self, rng: Call("get_embedding_dimension")}
    ATTRIBUTES = {"similarity_fn_name": choice(*SIMILARITIES), "default_prompt_name": NAMES,
                  "prompts": prompts_of, "max_seq_length": max_lengths,
                  "truncate_dim": choice(None, 1, 4, 7, 100, np.int64(3), 0, "x")}
    READ = ("similarity_fn_name", "default_prompt_name", "prompts", "max_seq_length",
            "truncate_dim", "device")
    make = staticmethod(folders.draw_embedder)

    def names(self):
        static = getattr(self, "what", "").startswith("static")
        return [name for name in super().names() if not static or name not in (
            "tokenize", "get max_seq_length", "set max_seq_length")]  # which it has not

    def options(self, rng):
        return draw_options(rng, {
            "prompts": prompts_of, "default_prompt_name": NAMES,
            "similarity_fn_name": choice(*SIMILARITIES), "device": choice("cpu", None),
            "truncate_dim": choice(None, 1, 5, 9, 1000)})

    def open_theirs(self, folder):
        self.theirs = sentence_transformers.SentenceTransformer(
            str(folder), local_files_only=True, model_kwargs=KWARGS, **{"device": "cpu",
                                                                        **self.given})

    def reference(self, method, args, options):
        if method.startswith("encode") and (len(args) > 5 or "output_value" in options):
            options = dict(options)
            if len(args) > 3 and isinstance(args[3], int) and args[3] > 0:
                args = (*args[:3], 1, *args[4:])  # without padding
            elif len(args) <= 3 and options.get("batch_size", 1) > 0:
                options["batch_size"] = 1
        return super().reference(method, args, options)

    def found(self, call, value):
        return sorted_features(value)

    def wanted(self, call, value):
        if call.method == "get device":
            return str(value)
        if call.method.startswith("similarity"):
            return in_float32(value)
        if call.method == "tokenize":
            value = {key: tensor for key, tensor in value.items() if key != "modality"}
        return sorted_features(value)


def in_float32(value):
    """Scores, which encore computes in float32 of whatever it is given."""
    return value.float() if isinstance(value, torch.Tensor) else value


def sorted_features(value):
    """Dicts of features by name."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [sorted_features(one) for one in value]
    return dict(sorted(value.items())) if isinstance(value, dict) else value


def wrong_list(rng):
    return rng.choice([[3], ["a", None], [b"x"], 3, None, [["a", 2]], {"a"}])


def draw_options(rng, drawn):
    """Some constructor's arguments; most folders are opened without."""
    share = rng.choice([0.0, 0.0, 0.15, 0.3])
    return {name: draw(rng) for name, draw in drawn.items() if rng.random() < share}


def draw_pair(rng):
    return rng.choice([tuple, list])([draw_text(rng), draw_text(rng)])


def draw_pairs(rng):
    kind = rng.random()
    if kind < 0.12:
        text, other = draw_text(rng), draw_text(rng)
        return rng.choice([
            text, "ab", "", [text, other, "x"], [(text,)], [(text, other, "x")], [text], (text,),
            {text, other}, [{text, other}], {"query": text, "passage": other}, b"ab", None, 3,
            [{"query": text, "passage": other}], [(text, None)], [(text, 3)], [(text, b"x")],
            [[text, other], text], ["ab"], ["ab", "cd"], [text, None], [None], np.array([1.0]),
            [("a", "b"), None], [("a", "b"), 3], [("a", ("b", "c"))], range(3), {}, [()], [b"ab"],
            Once([("a", "b"), "cd"]), Once(["a", "b"]), [["a", "b"], ["c"]], [("a", ["b"])]])
    if kind < 0.3:
        pair = draw_pair(rng)
        return np.array(pair) if one_in(rng, 6) else pair
    pairs = [draw_pair(rng) for _ in range(rng.choice([0, 1, 2, 2, 3, 5]))]
    container = rng.choice(["list", "list", "list", "tuple", "array", "objects", "once"])
    if container in ("array", "objects") and pairs:
        return np.array([list(p) for p in pairs], object if container == "objects" else None)
    return {"tuple": tuple(pairs), "once": Once(pairs)}.get(container, pairs)


class Activations(enum.Enum):
    """Functions with a name that is read."""
    IDENTITY = torch.nn.Identity()
    SIGMOID = torch.nn.Sigmoid()
    TANH = torch.nn.Tanh()


ACTIVATION = choice(*(one.value for one in Activations), torch.sigmoid, torch.tanh, None, None)
PREDICT = [Parameter("inputs", draw_pairs, share=1.0), *encode_parameters()[1:],
           Parameter("activation_fn", ACTIVATION, None, 0.15),
           Parameter("apply_softmax", FLAG, False, 0.15),
           Parameter("convert_to_numpy", FLAG, True, 0.15),
           Parameter("convert_to_tensor", FLAG, False, 0.15), DEVICE, *POOL]


def draw_documents(rng):
    kind = rng.random()
    if kind < 0.1:
        return rng.choice([None, "tea", "", b"x", 3, {"a", "b"}, {"a": "b"}, [None], ["a", 3],
                           [("a", "b")], [["a"]], {}, Once(["a", None])])
    texts = draw_texts(rng)
    return {"tuple": tuple(texts), "array": np.array(texts, object), "once": Once(texts)}.get(
        rng.choice(["list", "list", "list", "tuple", "array", "once"]), texts)


RANK = [Parameter("query", lambda rng: draw_text(rng) if rng.random() < 0.93 else rng.choice(
            [None, 3, ["a"], ("a", "b"), b"x", {"a"}]), share=1.0),
        Parameter("documents", draw_documents, share=1.0),
        Parameter("top_k", choice(None, 1, 2, 100, 0, -1, np.int64(2)), None, 0.3),
        Parameter("return_documents", FLAG, False, 0.3), *encode_parameters()[1:],
        Parameter("activation_fn", ACTIVATION, None, 0.15), DEVICE, *POOL]


class CrossEncoder(Subject):
    METHODS = {"predict": draw_encode("predict", PREDICT),
               "rank": lambda self, rng: draw_call(rng, "rank", RANK)}
    ATTRIBUTES = {"max_seq_length": max_lengths, "prompts": prompts_of,
                  "activation_fn": lambda rng: ACTIVATION(rng) or torch.tanh,  # None: refused
                  "default_prompt_name": NAMES}
    READ = ("max_seq_length", "num_labels", "prompts", "default_prompt_name", "device")
    make = staticmethod(folders.draw_reranker)

    def options(self, rng):
        return draw_options(rng, {
            "prompts": prompts_of, "default_prompt_name": NAMES, "activation_fn": ACTIVATION,
            "num_labels": choice(None, 1, 2, 3), "max_length": choice(None, 8, 20, 5),
            "device": choice("cpu", None)})

    def open_theirs(self, folder):
        self.theirs = sentence_transformers.CrossEncoder(
            str(folder), local_files_only=True, model_kwargs=KWARGS,
            **{"device": "cpu", **self.given})

    def wanted(self, call, value):
        return str(value) if call.method == "get device" else value


SPARSE = [*encode_parameters(), Parameter("convert_to_tensor", FLAG, True, 0.5),
          Parameter("convert_to_sparse_tensor", FLAG, True, 0.2),
          Parameter("save_to_cpu", FLAG, False, 0.1), DEVICE,
          Parameter("max_active_dims", choice(None, 1, 5, 30, np.int64(3), 10000, 0, -2), None,
                    0.2), *POOL]


class SparseEncoder(Subject):
    METHODS = {"encode": draw_encode("encode", SPARSE),
               "encode_query": draw_encode("encode_query", SPARSE),
               "encode_document": draw_encode("encode_document", SPARSE),
               "similarity": draw_similarity("similarity"),
               "similarity_pairwise": draw_similarity("similarity_pairwise"),
               "decode": lambda self, rng: self.draw_decode(rng),
               "get_sentence_embedding_dimension": lambda self, rng: Call(
                   "get_sentence_embedding_dimension"),
               "get_embedding_dimension": lambda self, rng: Call("get_embedding_dimension")}
    ATTRIBUTES = {"similarity_fn_name": choice(*SIMILARITIES), "default_prompt_name": NAMES,
                  "prompts": prompts_of, "max_seq_length": max_lengths,
                  "max_active_dims": choice(None, 1, 4, 100, np.int64(3), 0, "x")}
    READ = ("similarity_fn_name", "default_prompt_name", "prompts", "max_seq_length",
            "max_active_dims", "device")
    make = staticmethod(folders.draw_sparse)

    def names(self):
        """Without max_seq_length of a Router: its queries of weights alone are cut here, and not
        there."""
        routed = getattr(self, "what", "").endswith("router")
        return [name for name in super().names() if not routed or name != "set max_seq_length"]

    def options(self, rng):
        return draw_options(rng, {
            "prompts": prompts_of, "default_prompt_name": NAMES,
            "similarity_fn_name": choice(*SIMILARITIES), "device": choice("cpu", None),
            "max_active_dims": choice(None, 1, 5, 9)})

    def open_theirs(self, folder):
        self.theirs = sentence_transformers.SparseEncoder(
            str(folder), local_files_only=True, model_kwargs=KWARGS,
            **{"device": "cpu", **self.given})

    def draw_decode(self, rng):
        texts = draw_texts(rng) or ["tea"]
        self.rows = self.ours.encode(texts, prompt="", task="document")
        return draw_call(rng, "decode", [
            Parameter("embeddings", lambda rng: self.rows, share=1.0),
            Parameter("top_k", choice(None, 1, 3, 1000, 0, -1), None, 0.5)])

    def reference(self, method, args, options):
        if method == "decode":
            args = tuple(a.to_torch() if isinstance(a, pyencore.SparseMatrix) else a for a in args)
            options = {k: v.to_torch() if isinstance(v, pyencore.SparseMatrix) else v
                       for k, v in options.items()}
        return super().reference(method, args, options)

    def found(self, call, value):
        if isinstance(value, pyencore.SparseMatrix):
            return value.to_dense()
        return value

    def wanted(self, call, value):
        if call.method == "get device":
            return str(value)
        if call.method.startswith("similarity"):
            return in_float32(value)
        if call.method.startswith("encode"):
            return self.wanted_rows(call, value)
        return value

    def wanted_rows(self, call, value):
        """Without convert_to_tensor, which is true there: a matrix also of one text; of no text
        with its columns."""
        args = list(call.args)
        names = [p.name for p in SPARSE]
        given = {**dict(zip(names, args)), **call.options}
        tensors = bool(given.get("convert_to_tensor", False))
        if tensors and value.ndim == 1 and not value.numel():
            return value.to_dense().reshape(0, self.theirs.get_embedding_dimension())
        if tensors:
            return value
        rows = [np.asarray(one.to_dense() if one.is_sparse else one) for one in (
            value if isinstance(value, list) else [value] if value.ndim == 1 and
            value.numel() else list(value.to_dense() if value.is_sparse else value))]
        matrix = np.stack(rows) if rows else np.zeros(
            (0, self.theirs.get_embedding_dimension()), np.float32)
        single = isinstance(given.get("inputs", given.get("sentences")), str)
        dense = not given.get("convert_to_sparse_tensor", True)
        return matrix[0] if single and dense else matrix


LATE = [*encode_parameters(), Parameter("output_value", choice("token_embeddings", "else"),
                                        "token_embeddings", 0.1),
        Parameter("convert_to_numpy", FLAG, True, 0.4), DEVICE,
        Parameter("normalize_embeddings", FLAG, False, 0.2), *POOL,
        Parameter("token_pooling", choice(None), None, 0.02, False)]


def draw_ragged(rng, width):
    own = folders.numpy_random(rng)
    parts = [own.standard_normal((rng.choice([1, 2, 5]), width)).astype(np.float32)
             for _ in range(rng.choice([1, 1, 2, 3]))]
    return {"list": parts, "one": parts[0], "tensors": [torch.from_numpy(p) for p in parts],
            "batch": np.stack([parts[0]] * 3), "tuple": tuple(parts), "none": [],
            "batch tensor": torch.from_numpy(np.stack([parts[0]] * 2)),
            "wrong": draw_wrong(rng), "vector": parts[0][0], "lists": [p.tolist() for p in parts],
            "tensor": torch.from_numpy(parts[0])}[rng.choice(
                ["list"] * 5 + ["tensors"] * 3 + ["one", "tensor", "batch", "batch tensor", "tuple",
                                                  "none", "wrong", "vector", "lists"])]


def draw_late_similarity(method):
    def draw(self, rng):
        width = rng.choice([4, 8])
        first = draw_ragged(rng, width)
        second = draw_ragged(rng, width if rng.random() < 0.95 else 5)
        if method == "similarity_pairwise" and isinstance(first, list) and one_in(rng, 1.3):
            second = [part[:1] if one_in(rng, 2) else part for part in first]
        return named(rng, Call(method, (first, second)), "embeddings1", "embeddings2")
    return draw


class MultiVectorEncoder(Subject):
    METHODS = {"encode": draw_encode("encode", [*LATE, Parameter(
                   "task", choice("query", "document", None, "both"), None, 0.3)]),
               "encode_query": draw_encode("encode_query", LATE),
               "encode_document": draw_encode("encode_document", LATE),
               "similarity": draw_late_similarity("similarity"),
               "similarity_pairwise": draw_late_similarity("similarity_pairwise"),
               "get_embedding_dimension": lambda self, rng: Call("get_embedding_dimension")}
    ATTRIBUTES = {"similarity_fn_name": choice("maxsim", "meanmaxsim", None, "cosine", "MAXSIM",
                                               SimilarityFunction.MAXSIM, SimilarityFunction.DOT),
                  "default_prompt_name": NAMES, "prompts": prompts_of}
    READ = ("similarity_fn_name", "default_prompt_name", "prompts", "device")
    make = staticmethod(folders.draw_late)

    def options(self, rng):
        return draw_options(rng, {
            "prompts": prompts_of, "default_prompt_name": NAMES, "device": choice("cpu", None),
            "similarity_fn_name": choice("maxsim", "meanmaxsim", SimilarityFunction.MAXSIM, None,
                                         "cosine")})

    def open_theirs(self, folder):
        self.theirs = sentence_transformers.MultiVectorEncoder(
            str(folder), local_files_only=True, model_kwargs=KWARGS,
            **{"device": "cpu", **self.given})

    def reference(self, method, args, options):
        if method.startswith("encode") and len(args) <= 6:
            options = {"convert_to_numpy": True, **options}
        return super().reference(method, args, options)

    def wanted(self, call, value):
        return str(value) if call.method == "get device" else value


SUBJECTS = [TextEncoder, CrossEncoder, SparseEncoder, MultiVectorEncoder]
