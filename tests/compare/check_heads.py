#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random folders of static embeddings, token classifiers, masked language models, sparse encoders
and classifiers of published code beside sentence-transformers and transformers in float64.

    tools/build.sh build/release --target folder_answers
    .deps/venv/bin/python tests/compare/check_heads.py [--answers FILE] [--count 20] [HEAD]
    ... --precision int8 sparse tokens     what int8 loses, nothing refused

HEAD is static, model2vec, tokens, masked, sparse, published, reranker, weights or m3; all by
default. BGE-M3's heads (m3) are compared with FlagEmbedding's definition, Model2Vec's folders
(model2vec) with the package of that name: without it they are left out, with a sentence. Heads of
published code (published) are compared with their definition in tests/make/head_families.py.
Needs the packages of tests/make/make_head_fixtures.py. Exit status 1 where one
differs by more than 1e-6 of the largest magnitude, in an entity, or in the support of a sparse
vector where no value is below 1e-6. What is farther off, but by no more than 4 times what torch in
float32 is, is told as rough; not of static embeddings, weights of texts and published code.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "make"))

import numpy as np  # noqa: E402

import head_families  # noqa: E402
import m3_folders  # noqa: E402
from folder_check import families  # noqa: E402
import model2vec_folders  # noqa: E402
import make_head_fixtures as heads  # noqa: E402

TOLERANCE = 1e-6
PRECISION = {}  # of encore's products, in its requests
WORDS = ("harbour hills road lighthouse tea café naïve 東京 3.14 , . - -- xyzzy unbelievable "
         "Ana Lisbon [SEP] trains boulangerie « » a ! 's co-op 30€").split()
ENTITIES = ["label", "start", "end"]


def draw_texts(rng, longest):
    lengths = [1, 2, 5, 17, 60, longest]
    return [" ".join(rng.choice(WORDS, length)) for length in lengths] + ["tea  \t x"]


def ask(answers, folder, texts, **request):
    line = json.dumps({"folder": str(folder), "texts": texts, **request, **PRECISION})
    result = subprocess.run([answers], input=line + "\n", capture_output=True, text=True,
                            check=True)
    answer = json.loads(result.stdout)
    assert "error" not in answer, answer["error"]
    return answer["rows" if "head" in request else "texts"]


def check_static(answers, folder, rng):
    kind = rng.choice(["st", "model2vec"])
    types = [np.float32, np.float16, np.float64] + ([np.int8] if kind == "model2vec" else [])
    dtype = types[rng.randint(len(types))]
    settings = {"width": int(rng.choice([1, 7, 64, 256, 300, 513])),
                "normalize": bool(rng.randint(2)),
                "truncation": int(rng.choice([0, 1, 9, 100])) or None}
    heads.draw_static(kind, rng, folder, dtype, **settings)
    texts = ["", *draw_texts(rng, 600)]
    found = np.array(ask(answers, folder, texts, head="static"))
    wanted = heads.static_vectors(folder, texts)
    worst = np.abs(found - wanted).max() / np.abs(wanted).max()
    assert worst <= TOLERANCE, f"differs by {worst:.1e}"
    return f"{kind} {np.dtype(dtype).name} {settings}", worst


def check_model2vec(answers, folder, rng):
    """Without modules.json, beside the package model2vec."""
    dtype = [np.float32, np.float16, np.float64, np.int8][rng.randint(4)]
    changes = {}
    if rng.randint(4):
        changes["max_length"] = [None, 1, 3, 40, 512][rng.randint(5)]
    if rng.randint(4):
        changes["normalize"] = bool(rng.randint(2))
    settings = {"width": int(rng.choice([1, 7, 64, 300, 513])), "shared": bool(rng.randint(2)),
                "weighted": bool(rng.randint(2)), "changes": changes,
                "unknown": ["[UNK]", None][rng.randint(2)]}
    model2vec_folders.draw_model2vec(rng, folder, dtype, **settings)
    texts = ["", "xyzzy \U0001f600", *draw_texts(rng, 600)]
    found = np.array(ask(answers, folder, texts, head="static"))
    wanted = model2vec_folders.model2vec_vectors(folder, texts)
    worst = np.abs(found - wanted).max() / np.abs(wanted).max()
    assert worst <= TOLERANCE, f"differs by {worst:.1e} ({np.dtype(dtype).name} {settings})"
    return f"{np.dtype(dtype).name} {settings}", worst


def tell_rough(head, worst, rounding, what):
    """Of a model that makes much of each rounding, as check_folders.py has it."""
    told = f"differs by {worst:.1e}, torch in float32 by {rounding:.1e}"
    assert worst <= 4 * rounding, f"{told} ({what})"
    print(f"{head}: rough, {told}")


def places(entities):
    return [[entity[key] for key in ENTITIES] for entity in entities]


def draw_keys(rng, family):
    """Some of the family's keys, as check_folders.py has them."""
    base, keys, *_ = families.FAMILIES[family]
    keys = {key: values for key, values in keys.items() if key not in (
        "max_position_embeddings", "num_hidden_layers", "type_vocab_size", "classifier_pooling",
        "layer_types", "vocab_list", "is_folding_model")}
    changes = {}
    for key, values in keys.items():
        if not isinstance(values, list):
            changes[key] = values
        elif rng.random_sample() < 0.4:
            changes[key] = values[rng.randint(len(values))]
    settings = {**head_families.keys_of(family), **changes}
    settings.setdefault("position_buckets", -1)
    fitted = families.fitting(family, {**settings}) if family == "DebertaV2" else settings
    return {**changes, **{key: value for key, value in fitted.items()
                          if key in ("conv_act", "max_relative_positions")}}


SHAPES = [None, None, "deberta", "xlm_roberta", "roberta", "modernbert", "t5", "qwen"]


def check_tokens(answers, folder, rng):
    family = str(rng.choice([*head_families.FAMILIES, *head_families.LABELLERS]))
    shape = SHAPES[rng.randint(len(SHAPES))]
    changes = draw_keys(rng, family)
    if family in head_families.LABELLERS and rng.randint(3) == 0:
        changes["token_classification_bias"] = False
    head_families.draw_model(family, "TokenClassification", rng, folder, np.float32,
                     tokenizer=shape and head_families.tokenizer_of(shape), **changes)
    texts = draw_texts(rng, 200)
    strategies = [str(name) for name in rng.permutation(heads.AGGREGATIONS)[:2]]
    _, entities = heads.token_answers(folder, texts, exact=True, strategies=strategies)
    worst = 0.0
    for name, wanted in entities.items():
        out = ask(answers, folder, texts, head="tokens", aggregation=name)
        for found, rows in zip(out, wanted, strict=True):
            same = places(found) == places(rows)
            assert same or PRECISION, f"{name}: other entities"
            if not same:
                continue
            for e, w in zip(found, rows, strict=True):
                worst = max(worst, abs(e["score"] - w["score"]))
    if not worst <= TOLERANCE:
        _, single = heads.token_answers(folder, texts, single=True, strategies=strategies)
        rounding = max(abs(e["score"] - w["score"]) for name, wanted in entities.items()
                       for own, rows in zip(single[name], wanted, strict=True)
                       if places(own) == places(rows) for e, w in zip(own, rows))
        tell_rough("tokens", worst, rounding, f"{family} {shape} {changes}")
    return f"{family} {shape} {changes}", worst


def draw_masked(rng, folder, families_of, **more):
    """A masked language model. The keys that its configuration was made with."""
    family = str(rng.choice(families_of))
    changes = {**draw_keys(rng, family), **more}
    for key in ("hidden_act", "hidden_activation", "classifier_activation"):
        if changes.get(key) == "quick_gelu":  # which encore has in layers only
            changes[key] = "silu"
    if family == "DebertaV2":
        changes["legacy"] = bool(rng.randint(2))
    if changes.get("embedding_size", 32) != 32 and not changes.get("legacy", True):
        changes["embedding_size"] = 32  # transformers fails on another
    if family == "ModernBert":
        changes["classifier_activation"] = str(rng.choice(["gelu", "relu", "silu", "tanh"]))
    changes["tie_word_embeddings"] = bool(rng.randint(3))
    head_families.draw_model(family, "MaskedLM", rng, folder, np.float32, **changes)
    return family, changes


def check_masked(answers, folder, rng):
    """Logits of all tokens."""
    family, changes = draw_masked(rng, folder, list(head_families.FAMILIES))
    texts = draw_texts(rng, 200)
    wanted = heads.masked_answers(folder, texts)
    found = ask(answers, folder, texts, head="masked logits")
    worst = m3_folders.near(found, wanted)
    what = f"{family} {changes}"
    if not worst <= TOLERANCE:
        single = heads.masked_answers(folder, texts, single=True)
        tell_rough("masked", worst, m3_folders.near(single, wanted), what)
    return what, worst


def check_published(answers, folder, rng):
    kind = str(rng.choice(list(head_families.PUBLISHED)))
    texts = [text for text in draw_texts(rng, 60) if len(text) < 400]
    wanted = head_families.draw_published(kind, rng, folder, np.float32, texts)
    if wanted[0].ndim == 1:
        found = [row["row"] for row in ask(answers, folder, texts, classifies=True,
                                           activation="none")]
    else:
        found = ask(answers, folder, texts, head="masked logits")
    worst = m3_folders.near(found, wanted)
    assert worst <= 4 * TOLERANCE, f"differs by {worst:.1e} ({kind})"
    return kind, worst


def check_sparse(answers, folder, rng):
    family, changes = draw_masked(rng, folder, list(head_families.FAMILIES))
    task = [None, None, "query", "document"][rng.randint(4)]
    if task:
        heads.make_router(folder, rng, default=[None, "document"][rng.randint(2)])
        settings = {"task": task}
    else:
        settings = {"strategy": str(rng.choice(["max", "sum"])),
                    "activation": str(rng.choice(["relu", "log1p_relu"])),
                    "max_active_dims": [None, 25][rng.randint(2)], "old": bool(rng.randint(2))}
        heads.make_sparse(folder, **settings)
    texts = draw_texts(rng, 200)
    out = ask(answers, folder, texts, head="sparse", task=task)
    wanted = heads.sparse_vectors(folder, texts, task)
    found = np.zeros_like(wanted)
    for row, entries in zip(found, out, strict=True):
        row[entries["indices"]] = entries["values"]
    worst = np.abs(found - wanted).max() / np.abs(wanted).max()
    near = (np.abs(wanted) < 1e-6) & (wanted != 0) | (np.abs(found) < 1e-6) & (found != 0)
    if not worst <= TOLERANCE:
        single = heads.sparse_vectors(folder, texts, task, single=True)
        tell_rough("sparse", worst, np.abs(single - wanted).max() / np.abs(wanted).max(),
                   f"{family} {settings} {changes}")
    assert PRECISION or ((found != 0) == (wanted != 0))[~near].all(), (
        f"other support ({settings}, {changes})")
    return f"{family} {settings} {changes}", worst


PIECES = [
    "{{ messages[-2].content }}{{ messages[-1].content }}", " [SEP] ", "tea\n", "\n\n",
    '{{ messages | selectattr("role", "eq", "query") | map(attribute="content") | first }}',
    '{{- (messages | selectattr("role", "eq", "document") | list)[0].content -}}',
    "{% if messages[0].role == 'system' %}\n  [CLS] {{ messages[0].content }}\n{% endif %}\n",
    "{% for m in messages %}\n  {%- if m.role != 'query' %} {{ m['content'] }}{% endif -%}\n"
    "{% endfor %}", "  {# note #}\n", "{% set x = 'the ' ~ 'road' %}{{ x }}", "[MASK]"]


def check_reranker(answers, folder, rng):
    family = str(rng.choice(list(heads.DECODERS)))
    heads.draw_reranker(family, rng, folder, np.float32,
                        tie_word_embeddings=bool(rng.randint(2)),
                        num_hidden_layers=int(rng.randint(1, 4)))
    message = [None, "flat"][rng.randint(2)]
    template = "".join(rng.choice(PIECES, 8)) + PIECES[0] + "".join(rng.choice(PIECES, 2))
    size = head_families.vocabulary_size()
    tokens = (int(rng.randint(size)), [int(rng.randint(size)), None][rng.randint(2)])
    activation = [None, "torch.nn.modules.linear.Identity"][rng.randint(2)]
    heads.make_logit_score(folder, tokens, template if message else None, message,
                           [None, "find a boat: "][rng.randint(2)], activation)
    texts = draw_texts(rng, 200)
    pairs = [[first, second] for first in texts[:3] for second in texts] + [texts[-2:]]
    out = ask(answers, folder, [p[0] for p in pairs], seconds=[p[1] for p in pairs],
              classifies=True)
    found = np.array([row["row"][0] for row in out])
    wanted = np.array(heads.reranker_scores(folder, pairs))
    worst = np.abs(found - wanted).max() / np.abs(wanted).max()
    what = f"{family} {tokens} {message} {activation} {template!r}"
    # A score is the difference of two logits, of which little may be left.
    if not worst <= TOLERANCE:
        single = np.array(heads.reranker_scores(folder, pairs, single=True))
        rounding = np.abs(single - wanted).max() / np.abs(wanted).max()
        tell_rough("reranker", worst, rounding, what)
    return what, worst


def check_weights(answers, folder, rng):
    """SparseStaticEmbedding alone, with a tensor or a file of weights by token."""
    heads.make_static_weights(folder, rng, by_token=bool(rng.randint(2)))
    texts = ["", *draw_texts(rng, 200)]
    out = ask(answers, folder, texts, head="sparse", task=None)
    wanted = heads.static_weights(folder, texts)
    found = np.zeros_like(wanted)
    for row, entries in zip(found, out, strict=True):
        row[entries["indices"]] = entries["values"]
    assert (found == wanted).all(), f"differs by {np.abs(found - wanted).max()}"
    return "weights", 0.0


def check_m3(answers, folder, rng):
    """BGE-M3's weights of tokens and vectors of tokens."""
    family = str(rng.choice([name for name in head_families.FAMILIES if name != "Camembert"]))
    settings = {"columns": int(rng.choice([1, 7, 32, 48])),
                "dtype": str(rng.choice(["float32", "float16", "bfloat16"])),
                "modules": bool(rng.randint(2))}
    m3_folders.draw_m3(family, rng, folder, **settings)
    texts = ["", *draw_texts(rng, 200), "tea tea tea [MASK] tea xyzzy"]
    wanted, vectors = m3_folders.m3_answers(folder, texts)
    out = ask(answers, folder, texts, head="sparse", task=None)
    for found, row in zip(out, wanted, strict=True):
        far = {i for i, weight in row.items() if weight >= 1e-6}
        assert PRECISION or far <= set(found["indices"]) <= set(row), "other support"
    rows = [[row.get(i, 0.0) for i in found["indices"]] for found, row in zip(out, wanted)]
    worst = m3_folders.near([found["values"] for found in out], [np.array(r) for r in rows])
    line = json.dumps({"folder": str(folder), "queries": texts, "documents": texts, **PRECISION})
    answer = json.loads(subprocess.run([answers], input=line + "\n", capture_output=True, text=True,
                                       check=True).stdout)
    assert "error" not in answer, answer["error"]
    for task in ("query", "document"):
        found = [np.array(one["rows"]).reshape(-1, settings["columns"]) for one in answer[task]]
        worst = max(worst, m3_folders.near(found, vectors))
    scores = [np.array([m3_folders.m3_score(q, d) for d in vectors]) for q in vectors]
    worst = max(worst, m3_folders.near(answer["scores"], scores))
    if not worst <= TOLERANCE:
        single = m3_folders.m3_answers(folder, texts, single=True)
        rounding = m3_folders.near(single[1], vectors)
        weights = [[row.get(i, 0.0) for i in found["indices"]]
                   for found, row in zip(out, single[0], strict=True)]
        rounding = max(rounding, m3_folders.near(weights, [np.array(r) for r in rows]))
        tell_rough("m3", worst, rounding, f"{family} {settings}")
    return f"{family} {settings}", worst


CHECKS = {"static": check_static, "model2vec": check_model2vec, "tokens": check_tokens,
          "masked": check_masked, "sparse": check_sparse, "published": check_published,
          "reranker": check_reranker, "weights": check_weights,
          "m3": check_m3}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--answers", metavar="FILE",
                        default=ROOT / "build/release/bin/folder_answers")
    parser.add_argument("--count", type=int, default=20, help="folders of each head")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--precision", choices=["bf16", "int8", "int4"],
                        help="of encore's products: only tell what is lost")
    parser.add_argument("--verbose", action="store_true", help="print each folder")
    parser.add_argument("heads", nargs="*", metavar="HEAD", help=", ".join(CHECKS))
    arguments = parser.parse_args()
    heads.require(heads.SENTENCES)
    import transformers
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    if arguments.precision:
        global TOLERANCE
        TOLERANCE = np.inf
        PRECISION["precision"] = arguments.precision
    wrong = 0
    for head in arguments.heads or CHECKS:
        if head == "model2vec" and importlib.util.find_spec("model2vec") is None:
            print("model2vec: left out, as the package of that name is not installed")
            continue
        differences = [0.0]
        for i in range(arguments.count):
            with tempfile.TemporaryDirectory() as temporary:
                folder = pathlib.Path(temporary) / "model"
                folder.mkdir()
                rng = np.random.RandomState(1000 * arguments.seed + i)
                try:
                    what, worst = CHECKS[head](arguments.answers, folder, rng)
                    differences.append(worst)
                    if arguments.verbose:
                        print(f"  {head} {i}: {what}: {worst:.1e}")
                except (AssertionError, ValueError) as error:
                    wrong += 1
                    print(f"{head} {i}: {error}")
                    kept = ROOT / f"build/check_heads/{head}_{i}"
                    shutil.copytree(folder, kept, dirs_exist_ok=True)
        middle = statistics.median(differences[1:] or differences)
        print(f"{head}: {arguments.count} folders, largest difference {max(differences):.1e}, "
              f"median of the folders' {middle:.1e}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
