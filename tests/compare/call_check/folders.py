# SPDX-License-Identifier: Apache-2.0
"""Random folders for the classes of pyencore: fixtures with other settings, and tiny models of
heads that transformers makes."""
import json
import pathlib
import shutil

import numpy as np

import make_head_fixtures as heads
from call_check.arguments import one_in

ROOT = pathlib.Path(__file__).resolve().parents[3]
DATA = ROOT / "tests/data"
MINILM = ROOT / ".deps/models/all-MiniLM-L6-v2"
EMBEDDERS = [DATA / "text/base", DATA / "text/base", DATA / "sentences/qwen3_embedding",
             DATA / "sentences/embedding_gemma", DATA / "sentences/sentence_t5",
             "static", MINILM]
PROMPTS = [{}, {"query": "find: ", "document": "a text: "}, {"query": "find: "},
           {"query": "", "passage": "the text "}, {"corpus": "of the corpus: ", "mine": "tea "},
           {"query": None, "document": "x ", "mine": "caf\u00e9  "}, {"mine": ""}]


def numpy_random(rng):
    return np.random.RandomState(rng.randrange(1 << 31))


def change(path, values):
    settings = json.loads(path.read_text()) if path.exists() else {}
    settings.update(values)
    path.write_text(json.dumps(settings))


def draw_prompts(rng, settings):
    """prompts and at times a name of theirs."""
    if one_in(rng, 1.5):
        settings["prompts"] = {k: v for k, v in rng.choice(PROMPTS).items()}
        if one_in(rng, 3):
            settings["default_prompt_name"] = rng.choice([*settings["prompts"], "query", None])


def draw_embedder(rng, folder):
    source = rng.choice(EMBEDDERS)
    if source == "static":
        heads.draw_static("st", numpy_random(rng), folder, np.float32, 24, rng.random() < 0.5)
    else:
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns("expected*", "onnx"))
    settings = {}
    draw_prompts(rng, settings)
    if one_in(rng, 3):
        settings["similarity_fn_name"] = rng.choice(
            ["cosine", "dot", "euclidean", "manhattan", None])
    if one_in(rng, 4):
        settings["truncate_dim"] = rng.choice([1, 5, 8, 31, 1000, None])
    if settings:
        change(folder / "config_sentence_transformers.json", settings)
    if one_in(rng, 3) and (folder / "sentence_bert_config.json").exists():
        change(folder / "sentence_bert_config.json",
               {"max_seq_length": rng.choice([6, 10, 20, 48, None])})
    return f"{source if source == 'static' else source.name} {settings}"


def draw_reranker(rng, folder):
    """With one label or several, pairs' texts by chat templates seldom."""
    name = rng.choice(["reranker", "reranker", "made", "made", "made", "made", "classifier",
                       "reranker_qwen3", "reranker_llama", "reranker_gemma3"])
    if name == "made":
        name = draw_classifier(rng, folder, [1, 1, 1, 2, 3])
    else:
        kind = "text" if (DATA / "text" / name).exists() else "heads"
        shutil.copytree(DATA / kind / name, folder)
    if one_in(rng, 3):
        settings = {}
        draw_prompts(rng, settings)
        change(folder / "config_sentence_transformers.json", settings)
    if one_in(rng, 4):
        activation = rng.choice(["torch.nn.modules.linear.Identity", "torch.nn.Tanh", None,
                                 "torch.nn.modules.activation.Sigmoid"])
        change(folder / "config.json", rng.choice([
            {"sentence_transformers": {"activation_fn": activation, "version": "4.0.1"}},
            {"sbert_ce_default_activation_function": activation}]))
    return name


def draw_classifier(rng, folder, counts=(1, 2, 3, 5)):
    folder.mkdir(exist_ok=True)
    family = rng.choice(["Bert", "Roberta", "DistilBert", "Electra", "ModernBert", "Albert",
                         "MPNet", "XLMRoberta", "Camembert", "Ernie"])
    count = rng.choice(counts)
    names = [f"LABEL_{i}" for i in range(count)] if one_in(rng, 3) else rng.sample(
        ["toxic", "joy", "sadness", "caf\u00e9", "x y", "0", "neutral"], count)
    changes = {"id2label": dict(enumerate(names)),
               "label2id": {name: i for i, name in enumerate(names)}}
    if one_in(rng, 1.5):
        kinds = ["multi_label_classification", "regression", None]
        changes["problem_type"] = rng.choice(
            kinds + ["single_label_classification"] * (count > 1))
    heads.draw_model(family, "SequenceClassification", numpy_random(rng), folder, np.float32,
                     **changes)
    return f"{family} of {count}, {changes.get('problem_type')}"


def draw_token_classifier(rng, folder):
    folder.mkdir(exist_ok=True)
    family = rng.choice(list(heads.FAMILIES))
    heads.draw_model(family, "TokenClassification", numpy_random(rng), folder, np.float32)
    return family


def draw_masked(rng, folder):
    folder.mkdir(exist_ok=True)
    family = rng.choice(list(heads.FAMILIES))
    heads.draw_model(family, "MaskedLM", numpy_random(rng), folder, np.float32)
    return family


def draw_sparse(rng, folder):
    name = draw_masked(rng, folder)
    if one_in(rng, 4):
        heads.make_router(folder, numpy_random(rng), default=rng.choice([None, "document"]))
        name += " router"
    else:
        heads.make_sparse(folder, rng.choice(["max", "sum"]), rng.choice(["relu", "log1p_relu"]),
                          rng.choice([None, None, 25]), one_in(rng, 2))
    settings = {}
    draw_prompts(rng, settings)
    if one_in(rng, 4):
        settings["similarity_fn_name"] = rng.choice(["cosine", "dot", "euclidean", "manhattan"])
    if one_in(rng, 4):
        settings["max_active_dims"] = rng.choice([1, 12, 40, None])
    change(folder / "config_sentence_transformers.json", settings)
    return name


def draw_late(rng, folder):
    import check_late
    import late_folders
    drawn = check_late.draw(rng)
    late_folders.write(drawn, folder, rng.randrange(1 << 31))
    return drawn["spelling"]


def draw_tokenizer(rng, folder):
    source = rng.choice([DATA / "text/base", DATA / "heads/reranker_qwen3", MINILM,
                         DATA / "sentences/qwen3_embedding", DATA / "sentences/embedding_gemma",
                         DATA / "sentences/sentence_t5", DATA / "late/own"])
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("*.safetensors", "onnx"))
    return source.name
