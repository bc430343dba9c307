#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/text: small random models in folders as Hugging Face has them, and what
sentence-transformers computes from them in float64.

Holds the folders `base` (a BERT), `reranker` and `classifier` (with heads of one and three labels),
two dense layers, a LayerNorm, and cases.json: for each case the files that it adds to a folder or
takes away, and the expected vectors or scores. Needs torch 2.15.0, transformers 5.23.0 and
sentence-transformers 6.2.0.

    make_text_fixtures.py           writes tests/data/text
    make_text_fixtures.py --check   computes the cases again from the folders that are there
    make_text_fixtures.py --minilm FOLDER
                                          writes minilm.safetensors, from the real all-MiniLM-L6-v2
"""
import argparse
import json
import os
import pathlib
import shutil
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np  # noqa: E402

from made_files import SENTENCES, require  # noqa: E402

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "text"
MAX_POSITIONS = 40
POOLINGS = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens",
            "lasttoken")
LABELS = {0: "no", 1: "maybe", 2: "yes"}

# What the vocabulary is learned from.
CORPUS = """
The harbour lies between two hills, and small boats come in with the morning tide.
A baker opens her shop at five; by seven the bread with rye and seeds is gone.
Trains from the coast stop here twice a day, except on Sundays and in heavy snow.
He measured the old bridge three times before anybody believed the numbers.
Nobody in the village remembers who planted the row of lime trees along the river.
Ein kleines Boot fuhr langsam durch den Nebel, und niemand sprach ein Wort.
La boulangerie ouvre de bonne heure, mais le pain disparait avant huit heures.
El tren llega tarde cuando nieva; entonces esperamos en la vieja estacion.
Water boils at a lower temperature on high mountains, so tea tastes different there.
The library keeps letters, maps and a machine that once printed the town's newspaper.
Which of these roads leads to the lighthouse, and how long does it take on foot?
She wrote 3 letters in 1998, 12 in 2004, and none since; the stamps cost 0.55 each.
"""

TEXTS = [
    "",
    "The harbour lies between two hills.",
    "Which road leads to the old lighthouse, and how long does it take?",
    "tea",
    "Ünïcode: caf\u00e9, na\u00efve, \u6771\u4eac and 3.14 -- [SEP] xyzzy!",
    "  spaces \t around  ",
    "One two three. " * 12,
    "La boulangerie ouvre de bonne heure",
]
QUERY = "When do trains stop at the coast?"


def legacy(kind):
    return f"sentence_transformers.models.{kind}"


def modules(*entries):
    """modules.json: (class, path) each."""
    return [{"idx": i, "name": str(i), "path": path, "type": kind}
            for i, (kind, path) in enumerate(entries)]


def booleans(*names, width=32, **more):
    return ({"word_embedding_dimension": width} |
            {f"pooling_mode_{name}": name in names for name in POOLINGS} | more)


def sentence_folder(pooling, after=(), **files):
    """The files of a folder with these modules, in the old spelling."""
    entries = [(legacy("Transformer"), ""), (legacy("Pooling"), "1_Pooling")]
    entries += [(legacy(kind), path) for kind, path in after]
    return {"modules.json": modules(*entries), "1_Pooling/config.json": pooling,
            "sentence_bert_config.json": {"max_seq_length": 24, "do_lower_case": False}} | files


NORMALIZE = ("Normalize", "9_Normalize")
DENSE_TANH = {"in_features": 32, "out_features": 20, "bias": True,
              "activation_function": "torch.nn.modules.activation.Tanh"}
DENSE_PLAIN = {"in_features": 20, "out_features": 12, "bias": False,
               "activation_function": "torch.nn.modules.linear.Identity",
               "module_input_name": "sentence_embedding"}
NEW = "sentence_transformers.sentence_transformer.modules"
BASE = "sentence_transformers.base.modules"
PROMPTS = {"__version__": {"sentence_transformers": "3.0.0"}, "similarity_fn_name": "cosine",
           "prompts": {"query": "Which road: ", "passage": "", "odd": "caf\u00e9 "},
           "default_prompt_name": None}


def cases():
    """name -> what it is: base folder, files, options of Encode, kind of result."""
    out, mean = {}, booleans("mean_tokens")
    plain_files, mean_files = sentence_folder(mean), sentence_folder(mean, [NORMALIZE])
    prompt_files = mean_files | {"config_sentence_transformers.json": PROMPTS}
    default_files = mean_files | {"config_sentence_transformers.json":
                                  PROMPTS | {"default_prompt_name": "odd"}}
    truncated_files = mean_files | {"config_sentence_transformers.json": {"truncate_dim": 10}}

    def add(name, covers, base="base", files=None, remove=(), dense=(), **options):
        out[name] = {"covers": covers, "base": base, "files": files or {}, "remove": list(remove),
                     "dense": list(dense), "options": options}

    for mode in ["cls_token", "max_tokens", "mean_tokens", *POOLINGS[3:]]:
        add(f"pool_{mode}", f"pooling_mode_{mode} alone",
            files=sentence_folder(booleans(mode), [NORMALIZE]))
    add("pool_none", "no boolean is true: the mean", files=sentence_folder(booleans()))
    add("pool_all", "all six booleans, concatenated in the fixed order",
        files=sentence_folder(booleans(*POOLINGS)))
    add("pool_cls_mean", "two booleans, normalized",
        files=sentence_folder(booleans("cls_token", "mean_tokens"), [NORMALIZE]))
    add("pool_new_name", "new spelling: one name; new class paths; 0_Transformer is not used",
        files={"modules.json": modules((f"{BASE}.transformer.Transformer", ""),
                                       (f"{NEW}.pooling.Pooling", "1_Pooling"),
                                       (f"{BASE}.normalize.Normalize", "2_Normalize")),
               "1_Pooling/config.json": {"embedding_dimension": 32, "pooling_mode": "max",
                                         "include_prompt": True},
               "2_Normalize/config.json": {"module_input_name": "sentence_embedding",
                                           "module_output_name": "sentence_embedding"},
               "sentence_bert_config.json": {
                   "transformer_task": "feature-extraction",
                   "modality_config": {"text": {"method": "forward",
                                                "method_output_name": "last_hidden_state"}},
                   "module_output_name": "token_embeddings"}})
    add("pool_new_list", "new spelling: a list in its own order",
        files=sentence_folder({"embedding_dimension": 32,
                               "pooling_mode": ["lasttoken", "mean", "cls"]}))
    add("no_modules", "no modules.json: the mean, not normalized; other files do not count",
        files={"sentence_bert_config.json": {"max_seq_length": 8},
               "config_sentence_transformers.json": PROMPTS | {"default_prompt_name": "odd"}})
    add("long", "no maximum length in sentence_bert_config.json: the model's positions",
        files=mean_files | {"sentence_bert_config.json": {}})
    add("roberta_name", "the settings under another of their names",
        files={key: value for key, value in plain_files.items()
               if key != "sentence_bert_config.json"}
        | {"sentence_roberta_config.json": {"max_seq_length": 10}})
    add("dense", "a dense layer with tanh", dense=["2_Dense"],
        files=sentence_folder(mean, [("Dense", "2_Dense")]) | {"2_Dense/config.json": DENSE_TANH})
    add("dense_dense_normalize", "two dense layers, the second plain, then length 1",
        dense=["2_Dense", "3_Dense"],
        files=sentence_folder(mean, [("Dense", "2_Dense"), ("Dense", "3_Dense"), NORMALIZE])
        | {"2_Dense/config.json": DENSE_TANH, "3_Dense/config.json": DENSE_PLAIN})
    add("normalize_dense", "length 1 before a dense layer", dense=["3_Dense"],
        files=sentence_folder(booleans("cls_token"), [NORMALIZE, ("Dense", "3_Dense")])
        | {"3_Dense/config.json": DENSE_TANH})
    add("prompt_name", "a prompt by its name", prompt_name="query", files=prompt_files)
    add("prompt_text", "a prompt as it is", prompt="the bread: ", files=prompt_files)
    add("prompt_default", "default_prompt_name is applied", files=default_files)
    add("prompt_empty", "an empty prompt in place of the default", prompt="", files=default_files)
    left_out = booleans(*POOLINGS, include_prompt=False)
    left_out_files = sentence_folder(left_out) | {"config_sentence_transformers.json": PROMPTS}
    add("prompt_left_out", "include_prompt false: each mode without the prompt's tokens",
        prompt_name="query", files=left_out_files)
    add("prompt_left_out_none", "the same without a prompt", files=left_out_files)
    add("prompt_left_out_long", "a prompt of more tokens than the maximum length",
        prompt="tea " * 30, files=left_out_files)
    for mode in ("cls_token", "lasttoken"):
        add(f"prompt_left_out_{mode}", "a mode that needs one row of a text", prompt_name="odd",
            files=sentence_folder(booleans(mode, include_prompt=False), [NORMALIZE])
            | {"config_sentence_transformers.json": PROMPTS})
    add("layer_norm", "a LayerNorm between dropouts, then length 1", dense=["3_LayerNorm"],
        files=sentence_folder(mean, [("Dropout", "2_Dropout"), ("LayerNorm", "3_LayerNorm"),
                                     ("Dropout", "4_Dropout"), NORMALIZE])
        | {"2_Dropout/config.json": {"dropout": 0.4}, "3_LayerNorm/config.json": {"dimension": 32},
           "4_Dropout/config.json": {"dropout": 0.1}})
    add("layer_norm_dense", "a LayerNorm before a dense layer, in the new spelling",
        dense=["2_LayerNorm", "3_Dense"],
        files=sentence_folder(mean) | {
            "modules.json": modules((legacy("Transformer"), ""), (legacy("Pooling"), "1_Pooling"),
                                    (f"{NEW}.layer_norm.LayerNorm", "2_LayerNorm"),
                                    (f"{BASE}.dense.Dense", "3_Dense")),
            "2_LayerNorm/config.json": {"dimension": 32}, "3_Dense/config.json": DENSE_TANH})
    add("truncate_folder", "truncate_dim of the folder: after the normalization",
        files=truncated_files)
    add("truncate_call", "dimensions of the call, normalized again", dimensions=7, normalize=True,
        files=truncated_files)
    add("normalize_call", "normalized by the call alone", normalize=True, files=plain_files)
    add("subfolder", "the transformer in a folder of its own",
        files=mean_files
        | {"modules.json": modules((legacy("Transformer"), "0_Transformer"),
                                   (legacy("Pooling"), "1_Pooling"))})
    add("lower_case", "do_lower_case before a normalizer that keeps cases",
        files=plain_files
        | {"sentence_bert_config.json": {"max_seq_length": 24, "do_lower_case": True}},
        cased=True)
    add("cased", "do_lower_case false switches nothing off or on", files=plain_files, cased=True)

    add("score", "one label: the sigmoid by default", base="reranker", kind="score")
    add("score_identity", "sentence_transformers.activation_fn of config.json", base="reranker",
        kind="score", config={"sentence_transformers": {
            "activation_fn": "torch.nn.modules.linear.Identity", "version": "4.0.1"}})
    add("score_old", "sbert_ce_default_activation_function", base="reranker", kind="score",
        config={"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"})
    add("score_new_folder", "a cross-encoder as sentence-transformers 6 saves it", base="reranker",
        kind="score",
        files={"modules.json": modules((f"{BASE}.transformer.Transformer", "")),
               "config_sentence_transformers.json": {
                   "model_type": "CrossEncoder", "prompts": {}, "default_prompt_name": None,
                   "activation_fn": "torch.nn.modules.linear.Identity"},
               "sentence_bert_config.json": {
                   "transformer_task": "sequence-classification",
                   "modality_config": {"text": {"method": "forward",
                                                "method_output_name": "logits"}},
                   "module_output_name": "scores"}})
    add("classify_pairs", "three labels: the identity by default", base="classifier",
        kind="pairs")
    add("classify_texts", "three labels, single texts", base="classifier", kind="texts",
        config={"sbert_ce_default_activation_function": "torch.nn.modules.activation.Sigmoid"})
    return out


def randomise(model, rng):
    """Every tensor is drawn: transformers would leave biases at 0 and norms at 1."""
    import torch
    with torch.no_grad():
        for name, tensor in sorted(model.named_parameters()):
            values = rng.standard_normal(tuple(tensor.shape)).astype(np.float32)
            if name.endswith("LayerNorm.weight"):
                values = 1 + 0.3 * values
            elif name.endswith("bias"):
                values = 0.1 * values
            elif "embeddings" not in name:
                values = 0.25 * values
            tensor.copy_(torch.from_numpy(values))


def make_folders():
    import torch
    from safetensors.numpy import save_file
    from tokenizers import BertWordPieceTokenizer
    from transformers import (BertConfig, BertForSequenceClassification, BertModel, BertTokenizer)
    trainer = BertWordPieceTokenizer(lowercase=True)
    trainer.train_from_iterator(CORPUS.strip().splitlines(), vocab_size=300, min_frequency=1,
                                show_progress=False)
    vocab = trainer.get_vocab()
    tokenizer = BertTokenizer(vocab=vocab, do_lower_case=True, model_max_length=512)
    config = dict(vocab_size=len(vocab), hidden_size=32, num_hidden_layers=2,
                  num_attention_heads=4, intermediate_size=48,
                  max_position_embeddings=MAX_POSITIONS, type_vocab_size=2)
    heads = {"base": (BertModel, {}),
             "reranker": (BertForSequenceClassification, {"num_labels": 1}),
             "classifier": (BertForSequenceClassification,
                            {"id2label": LABELS, "label2id": {v: k for k, v in LABELS.items()}})}
    for seed, (name, (model_class, more)) in enumerate(heads.items()):
        folder = DATA / name
        shutil.rmtree(folder, ignore_errors=True)
        torch.manual_seed(seed)
        model = model_class(BertConfig(**config, **more))
        randomise(model, np.random.default_rng(seed))
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    rng = np.random.default_rng(7)
    for name, (rows, columns, bias) in {"2_Dense": (20, 32, True), "3_Dense": (12, 20, False),
                                        }.items():
        tensors = {"linear.weight": rng.standard_normal((rows, columns)).astype("<f4") * 0.1}
        if bias:
            tensors["linear.bias"] = rng.standard_normal(rows).astype("<f4") * 0.3
        save_file(tensors, DATA / f"{name}.safetensors")
    save_file({"norm.weight": 1 + 0.5 * rng.standard_normal(32).astype("<f4"),
               "norm.bias": rng.standard_normal(32).astype("<f4") * 0.3},
              DATA / "LayerNorm.safetensors")


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n")


def rounded(rows):
    """To nine digits, which tell f32 apart."""
    return [[float(f"{v:.9g}") for v in row] for row in rows]


def build(case, folder):
    """The case's folder: its base, with files added and changed. The test does the same."""
    shutil.copytree(DATA / case["base"], folder)
    options = case["options"]
    if options.get("cased"):
        settings = json.loads((folder / "tokenizer_config.json").read_text())
        write_json(folder / "tokenizer_config.json", settings | {"do_lower_case": False})
        tokenizer = json.loads((folder / "tokenizer.json").read_text())
        tokenizer["normalizer"]["lowercase"] = False
        write_json(folder / "tokenizer.json", tokenizer)
    if "config" in options:
        config = json.loads((folder / "config.json").read_text())
        write_json(folder / "config.json", config | options["config"])
    for name in case["remove"]:
        (folder / name).unlink()
    for name, value in case["files"].items():
        write_json(folder / name, value)
    for name in case["dense"]:
        config = case["files"][f"{name}/config.json"]
        source = ("LayerNorm" if "dimension" in config else
                  "2_Dense" if config["in_features"] == 32 else "3_Dense")
        shutil.copy(DATA / f"{source}.safetensors", folder / name / "model.safetensors")
    if any(module["path"] == "0_Transformer" for module in case["files"].get("modules.json", [])):
        (folder / "0_Transformer").mkdir()
        for name in ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
                     "sentence_bert_config.json"]:
            shutil.move(folder / name, folder / "0_Transformer" / name)


def compute(case):
    """The expected rows, and how many tokens each text has."""
    from sentence_transformers import CrossEncoder, SentenceTransformer
    options = case["options"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / "model"
        build(case, folder)
        if "kind" in options:
            model = CrossEncoder(str(folder), device="cpu", local_files_only=True).double()
            inputs = {"score": [(QUERY, text) for text in TEXTS],
                      "pairs": list(zip(TEXTS, reversed(TEXTS))), "texts": TEXTS}[options["kind"]]
            if options["kind"] == "texts":  # predict() takes a list of texts for one pair
                logits = model.eval()(model.preprocess(inputs))["scores"].detach()
                rows = model.activation_fn(logits).numpy()
            else:
                rows = model.predict(inputs, convert_to_tensor=True).numpy()
            rows = rows.reshape(len(TEXTS), -1)
            preprocess = model.preprocess
        else:
            model = SentenceTransformer(str(folder), device="cpu", local_files_only=True).double()
            inputs = TEXTS
            rows = model.encode(TEXTS, prompt_name=options.get("prompt_name"),
                                prompt=options.get("prompt"),
                                normalize_embeddings=options.get("normalize", False),
                                truncate_dim=options.get("dimensions"))
            prompt = model._resolve_prompt(options.get("prompt"), options.get("prompt_name"))
            preprocess = lambda texts: model.preprocess(texts, prompt=prompt)  # noqa: E731
        tokens = [int(preprocess([text])["attention_mask"].sum()) for text in inputs]
    assert rows.dtype == np.float64, rows.dtype
    return rows, tokens


def minilm(folder):
    """Unit vectors of the corpus and of texts around the maximum length, rounded to f32."""
    from safetensors.numpy import save_file
    from sentence_transformers import SentenceTransformer
    model = SentenceTransformer(folder, device="cpu", local_files_only=True).double()
    room = model.max_seq_length - 2
    texts = CORPUS.strip().splitlines() + TEXTS
    texts += [" ".join(["tea"] * n) for n in [1, room - 1, room, room + 1, 10 * room]]
    vectors = np.stack([model.encode(text) for text in texts])
    tokens = [int(model.preprocess([text])["attention_mask"].sum()) for text in texts]
    save_file({"vectors": vectors.astype("<f4"), "tokens": np.array(tokens, "<i8")},
              DATA / "minilm.safetensors", metadata={"texts": json.dumps(texts)})


def main():
    parser = argparse.ArgumentParser(description="Makes tests/data/text.")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--minilm", metavar="FOLDER", help="write minilm.safetensors alone")
    arguments = parser.parse_args()
    require(SENTENCES)
    if arguments.minilm:
        minilm(arguments.minilm)
        return 0
    path = DATA / "cases.json"
    if arguments.check:
        stored = json.loads(path.read_text())["cases"]
        worst = 0.0
        for name, case in cases().items():
            rows, tokens = compute(case)
            # Stored with nine digits.
            difference = np.abs(rows - np.array(stored[name]["expected"])) / np.abs(rows).max()
            worst = max(worst, difference.max())
            assert tokens == stored[name]["tokens"], name
        print(f"make_text_fixtures: {len(cases())} cases, largest difference {worst:.2g} "
              "of the largest magnitude")
        return 0 if worst < 1e-8 else 1
    make_folders()
    made = {}
    for name, case in cases().items():
        rows, tokens = compute(case)
        print(f"{name:24} {rows.shape} {tokens}", flush=True)
        made[name] = case | {"tokens": tokens, "expected": rounded(rows)}
    path.write_text(json.dumps({"texts": TEXTS, "query": QUERY, "cases": made}, indent=None)
                    .replace('}, "', '},\n"') + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
