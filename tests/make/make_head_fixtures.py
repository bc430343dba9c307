#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/heads: tiny folders of static embeddings, token classifiers, masked language
models, sparse encoders and rerankers by a language model's logits, and what sentence-transformers
and transformers' pipeline compute from texts with them. And tests/data/chat_templates.json: what
transformers renders.

Needs torch 2.15.0, transformers 5.23.0, sentence-transformers 6.2.0 and model2vec 0.10. The
functions that draw folders are shared with tests/compare/check_heads.py.

    tests/make/make_head_fixtures.py [NAME ...]     writes the folders and their expected.json
"""
import json
import os
import pathlib
import shutil
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np  # noqa: E402

from chat_templates import LOOP, OFFICIAL, chat_templates  # noqa: E402
from head_families import (FAMILIES, PUBLISHED, SIZES, SMALL, TOKENIZER,  # noqa: E402, F401
                           draw_model, draw_published, tokenizer_of, vocabulary_size)
from m3_folders import draw_m3, m3_answers  # noqa: E402
from model2vec_folders import draw_model2vec, model2vec_vectors  # noqa: E402
from made_files import SENTENCES, require  # noqa: E402
from make_text_fixtures import TEXTS, rounded, write_json  # noqa: E402

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
AGGREGATIONS = ["none", "simple", "first", "average", "max"]
NAMES = ["Ana Lima met Tom in Rome, or was it unbelievable Lisbon?", "Zoë paid 30 €.", "x"]
def draw_static(kind, rng, folder, dtype=np.float32, width=24, normalize=True, truncation=None):
    """kind: "st" (embedding.weight), or "model2vec" (embeddings, weights, mapping)."""
    from safetensors.numpy import save_file
    folder.mkdir(parents=True, exist_ok=True)
    size = vocabulary_size()
    file = json.loads(TOKENIZER.read_text())
    if truncation:
        file["truncation"] = {"direction": "Right", "max_length": truncation,
                              "strategy": "LongestFirst", "stride": 0}
    write_json(folder / "tokenizer.json", file)
    rows = size if kind == "st" else size // 2
    table = rng.standard_normal((rows, width))
    table = np.clip(np.rint(table * 40), -127, 127) if dtype == np.int8 else table
    tensors = {"embedding.weight" if kind == "st" else "embeddings": table.astype(dtype)}
    if kind != "st":
        tensors["mapping"] = rng.randint(0, rows, size).astype(np.int64)
        tensors["weights"] = rng.random_sample(size).astype(np.float32)
        write_json(folder / "config.json", {
            "model_type": "model2vec", "architectures": ["StaticModel"], "normalize": normalize,
            "max_length": 512})
    save_file(tensors, folder / "model.safetensors")
    listed = [{"idx": 0, "name": "0", "path": ".", "type": "sentence_transformers.models."
               "StaticEmbedding"}]
    if normalize:
        listed.append({"idx": 1, "name": "1", "path": "1_Normalize",
                       "type": "sentence_transformers.models.Normalize"})
        (folder / "1_Normalize").mkdir(exist_ok=True)
    write_json(folder / "modules.json", listed)


def static_vectors(folder, texts):
    import torch
    from sentence_transformers import SentenceTransformer
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    model[0].embedding.weight = torch.nn.Parameter(model[0].embedding.weight.double())
    return model.encode(texts)


def token_answers(folder, texts, exact=False, single=False, strategies=AGGREGATIONS):
    """Logits of each text in float64, and entities by each strategy from these. exact: without what
    transformers rounds to float32 on the way to the logits. single: all in float32."""
    import torch
    import transformers
    from model_fixture_families import set_exact
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForTokenClassification.from_pretrained(
        folder, dtype=torch.float32 if single else torch.float64, attn_implementation="eager")
    set_exact(model, exact)
    logits = []
    for text in texts:
        with torch.no_grad():
            given = tokenizer(text, return_tensors="pt", truncation=True)
            logits.append(model(**given).logits[0].numpy())
    pipeline = transformers.pipeline("token-classification", model=model, tokenizer=tokenizer)
    entities = {}
    for name in strategies:
        rows = []
        for text in texts:
            found = pipeline(text, aggregation_strategy=name, ignore_labels=[]) if text else []
            rows.append([{"label": e["entity" if name == "none" else "entity_group"],
                          "score": float(e["score"]), "start": len(text[:e["start"]].encode()),
                          "end": len(text[:e["end"]].encode())} for e in found])
        entities[name] = rows
    set_exact(model, False)
    return logits, entities


def masked_answers(folder, texts, single=False):
    """Logits [tokens, vocabulary] of each text in float64; single: all in float32."""
    import torch
    import transformers
    from model_fixture_families import set_exact
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForMaskedLM.from_pretrained(
        folder, dtype=torch.float32 if single else torch.float64,
        attn_implementation="eager").eval()
    set_exact(model, not single)
    with torch.no_grad():
        rows = [model(**tokenizer(text, return_tensors="pt", truncation=True)).logits[0].numpy()
                for text in texts]
    set_exact(model, False)
    return rows


def make_sparse(folder, strategy="max", activation="relu", max_active_dims=None, old=False):
    """Puts sentence-transformers' files around a masked language model, as it saves them."""
    new = "sentence_transformers.base.modules.transformer.Transformer"
    kinds = [("sentence_transformers.sparse_encoder.models.MLMTransformer" if old else new, ""),
             ("sentence_transformers.sparse_encoder." + (
                 "models.SpladePooling" if old else "modules.splade_pooling.SpladePooling"),
              "1_SpladePooling")]
    write_json(folder / "modules.json", [
        {"idx": i, "name": str(i), "path": path, "type": kind}
        for i, (kind, path) in enumerate(kinds)])
    dimension = "word_embedding_dimension" if old else "embedding_dimension"
    (folder / "1_SpladePooling").mkdir(exist_ok=True)
    write_json(folder / "1_SpladePooling/config.json", {
        "pooling_strategy": strategy, "activation_function": activation,
        dimension: vocabulary_size()})
    settings = {"max_seq_length": 48, "do_lower_case": False} if old else {
        "transformer_task": "fill-mask", "module_output_name": "token_embeddings",
        "modality_config": {"text": {"method": "forward", "method_output_name": "logits"}}}
    write_json(folder / "sentence_bert_config.json", settings)
    write_json(folder / "config_sentence_transformers.json", {
        "model_type": "SparseEncoder", "prompts": {"query": "find: ", "document": ""},
        "default_prompt_name": None, "similarity_fn_name": "dot",
        "max_active_dims": max_active_dims})


def make_router(folder, rng, default=None):
    """Around the folder of a masked language model: documents by it, queries by weights."""
    from safetensors.numpy import save_file
    document, query = folder / "document_0_Transformer", folder / "query_0_SparseStaticEmbedding"
    document.mkdir()
    query.mkdir()
    make_sparse(folder)
    for file in list(folder.iterdir()):
        if file.is_file() and file.name not in ("modules.json",
                                                "config_sentence_transformers.json"):
            shutil.move(file, document / file.name)
    shutil.move(folder / "1_SpladePooling", folder / "document_1_SpladePooling")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(document / name, query / name)
    weights = rng.random_sample(vocabulary_size()) * (rng.random_sample(vocabulary_size()) < 0.9)
    save_file({"weight": weights.astype(np.float32)}, query / "model.safetensors")
    write_json(query / "config.json", {"frozen": False})
    base = "sentence_transformers."
    write_json(folder / "router_config.json", {
        "types": {
            query.name: base + "sparse_encoder.modules.sparse_static_embedding."
            "SparseStaticEmbedding",
            document.name: base + "base.modules.transformer.Transformer",
            "document_1_SpladePooling": base + "sparse_encoder.modules.splade_pooling."
            "SpladePooling"},
        "structure": {"query": [query.name],
                      "document": [document.name, "document_1_SpladePooling"]},
        "parameters": {"default_route": default, "allow_empty_key": True, "route_mappings": {}}})
    write_json(folder / "modules.json", [
        {"idx": 0, "name": "0", "path": "", "type": base + "base.modules.router.Router"}])


def make_static_weights(folder, rng, by_token):
    """SparseStaticEmbedding alone."""
    from safetensors.numpy import save_file
    shutil.copy(TOKENIZER, folder / "tokenizer.json")
    write_json(folder / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 64,
        "unk_token": "[UNK]", "pad_token": "[PAD]"})
    write_json(folder / "modules.json", [
        {"idx": 0, "name": "0", "path": "", "type":
         "sentence_transformers.sparse_encoder.modules.SparseStaticEmbedding"}])
    write_json(folder / "config_sentence_transformers.json", {"model_type": "SparseEncoder"})
    weights = rng.random_sample(vocabulary_size()).astype(np.float32)
    if not by_token:
        save_file({"weight": weights}, folder / "model.safetensors")
        write_json(folder / "config.json", {"frozen": False})
        return
    words = list(json.loads(TOKENIZER.read_text())["model"]["vocab"])
    some = [words[i] for i in rng.permutation(len(words))[:200]] + ["no such", "nor this"]
    rng.shuffle(some)
    write_json(folder / "idf.json", {w: float(x) for w, x in zip(some, rng.random_sample(202))})
    write_json(folder / "config.json", {"path": "idf.json"})


def static_weights(folder, texts):
    """sentence-transformers looks for the file of weights in the working directory."""
    import torch
    from sentence_transformers import SparseEncoder
    before = os.getcwd()
    os.chdir(folder)
    try:
        model = SparseEncoder(str(folder), device="cpu", local_files_only=True)
    finally:
        os.chdir(before)
    with torch.no_grad():
        return model.encode(texts, convert_to_sparse_tensor=False, batch_size=1).numpy()


def sparse_vectors(folder, texts, task=None, single=False):
    """[texts, vocabulary] in float64; of max_active_dims what the folder says."""
    import torch
    from model_fixture_families import set_exact
    from sentence_transformers import SparseEncoder
    model = SparseEncoder(str(folder), device="cpu", local_files_only=True, model_kwargs={
        "dtype": torch.float32, "attn_implementation": "eager"})
    model = model if single else model.double()
    set_exact(model, not single)
    options = {"convert_to_sparse_tensor": False, "batch_size": 1}
    if task:
        options["task"] = task
    with torch.no_grad():
        rows = model.encode(texts, **options).numpy()
    set_exact(model, False)
    return rows


# Causal language models: keys beside SIZES. Not Qwen 2, whose tokenizer has a class of its own.
DECODERS = {
    "Qwen3": {"num_key_value_heads": 2, "head_dim": 8},
    "Llama": {"num_key_value_heads": 2, "head_dim": 8},
    "Mistral": {"num_key_value_heads": 2, "sliding_window": 20},
    "Gemma3": {"num_key_value_heads": 2, "head_dim": 8, "query_pre_attn_scalar": 8,
               "sliding_window": 20},
}


def draw_reranker(family, rng, folder, dtype=np.float16, **changes):
    """A causal language model with every tensor random."""
    import torch
    import transformers
    from make_model_fixtures import randomise
    ids = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    settings = {**SIZES, "vocab_size": vocabulary_size(), **ids, **DECODERS[family], **changes}
    name = "Gemma3Text" if family == "Gemma3" else family
    config = getattr(transformers, name + "Config")(**settings)
    model = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    torch_type = {np.float16: torch.float16, np.float32: torch.float32}[dtype]
    randomise(model, rng, torch_type)
    model.to(torch_type).save_pretrained(folder)
    shutil.copy(TOKENIZER, folder / "tokenizer.json")
    write_json(folder / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 90,
        "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]",
        "mask_token": "[MASK]"})


def make_logit_score(folder, tokens, template=None, message=None, prompt=None, activation=None):
    """Puts sentence-transformers' files around a causal language model. `message`: the format of
    messages; None: texts are pairs."""
    base = "sentence_transformers."
    write_json(folder / "modules.json", [
        {"idx": 0, "name": "0", "path": "", "type": base + "base.modules.transformer.Transformer"},
        {"idx": 1, "name": "1", "path": "1_LogitScore",
         "type": base + "cross_encoder.modules.logit_score.LogitScore"}])
    (folder / "1_LogitScore").mkdir(exist_ok=True)
    write_json(folder / "1_LogitScore/config.json", {
        "true_token_id": tokens[0], "false_token_id": tokens[1],
        "module_input_name": "causal_logits"})
    output = {"method": "forward", "method_output_name": "logits"}
    modalities = {"text": output}
    if message:
        modalities["message"] = {**output, "format": message}
    write_json(folder / "sentence_bert_config.json", {
        "transformer_task": "text-generation", "module_output_name": "causal_logits",
        "modality_config": modalities})
    settings = {"model_type": "CrossEncoder", "prompts": {"mine": prompt or ""},
                "default_prompt_name": "mine" if prompt else None}
    if activation:
        settings["activation_fn"] = activation
    write_json(folder / "config_sentence_transformers.json", settings)
    if template:
        (folder / "chat_template.jinja").write_text(template)


def reranker_scores(folder, pairs, single=False):
    """In float64, or all in float32, pair by pair."""
    import torch
    from sentence_transformers import CrossEncoder
    from model_fixture_families import set_exact
    model = CrossEncoder(str(folder), device="cpu", local_files_only=True, model_kwargs={
        "dtype": torch.float32, "attn_implementation": "eager"}).eval()
    model = model if single else model.double()
    set_exact(model[0].auto_model, not single)
    scores = []
    with torch.no_grad():
        for pair in pairs:
            given = model.preprocess([tuple(pair)], prompt=model.prompts.get(
                model.default_prompt_name) if model.default_prompt_name else None)
            scores.append(float(model.activation_fn(model(given)["scores"])[0, 0]))
    set_exact(model[0].auto_model, False)
    return scores


# ---- The folders of the tests.


def static_f16(folder, rng):
    draw_static("st", rng, folder, np.float16, truncation=12)


def model2vec(folder, rng):
    draw_static("model2vec", rng, folder, np.int8, width=300, normalize=False)


def ner_bert(folder, rng):
    draw_model("Bert", "TokenClassification", rng, folder)


def ner_modernbert(folder, rng):
    draw_model("ModernBert", "TokenClassification", rng, folder, num_hidden_layers=2)


def ner_deberta(folder, rng):
    """With the tokenizer of its class."""
    import charsmap
    import shapes
    shapes.charsmap = lambda: charsmap.make({"\u00a0": " ", "\ufb01": "fi", "\uff21": "A"})
    draw_model("DebertaV2", "TokenClassification", rng, folder, tokenizer=tokenizer_of("deberta"))
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text())
    write_json(path, {**config, "tokenizer_class": "DebertaV2Tokenizer", "do_lower_case": False})


def splade_gte(folder, rng):
    draw_model("Gte", "MaskedLM", rng, folder)
    make_sparse(folder)


def splade_bert(folder, rng):
    draw_model("Bert", "MaskedLM", rng, folder)
    make_sparse(folder, max_active_dims=40)


def splade_distilbert(folder, rng):
    draw_model("DistilBert", "MaskedLM", rng, folder)
    make_sparse(folder, "sum", "log1p_relu", old=True)


def router(folder, rng):
    draw_model("Electra", "MaskedLM", rng, folder)
    make_router(folder, rng, default="document")


def reranker_qwen3(folder, rng):
    draw_reranker("Qwen3", rng, folder, tie_word_embeddings=True)
    make_logit_score(folder, (20, 31), OFFICIAL, "flat", prompt="Find the boat",
                     activation="torch.nn.modules.linear.Identity")


def reranker_llama(folder, rng):
    draw_reranker("Llama", rng, folder)
    make_logit_score(folder, (20, 31), LOOP, "structured")


def reranker_gemma3(folder, rng):
    draw_reranker("Gemma3", rng, folder)
    make_logit_score(folder, (77, None), prompt="the tea: ",
                     activation="torch.nn.modules.linear.Identity")


def m3(folder, rng):
    draw_m3("XLMRoberta", rng, folder, 8, "float16")


def model2vec_alone(folder, rng):
    draw_model2vec(rng, folder, np.float16, 16, shared=False, weighted=True,
                   changes={"normalize": True, "max_length": 9})


# Of small models: the family, and keys beside SMALL.
LABEL_SMALL = {"esm": ("Esm", {}), "eurobert": ("EuroBert", {}), "gte": ("Gte", {}),
               "nomic": ("NomicBert", {}), "jina_v3": ("JinaEmbeddingsV3", {}),
               "ultrabert": ("Ultrabert", {"num_hidden_layers": 3}), "llama": ("Llama", {}),
               "qwen3": ("Qwen3", {"token_classification_bias": False}),
               "mistral": ("Mistral", {}), "t5": ("T5", {}), "mt5": ("MT5", {})}
MASK_SMALL = {"deberta": ("DebertaV2", {}), "deberta_new": ("DebertaV2", {"legacy": False}),
              "esm": ("Esm", {}), "eurobert": ("EuroBert", {}),
              "eurobert_untied": ("EuroBert", {"tie_word_embeddings": False, "mlp_bias": True}),
              "gte": ("Gte", {}), "nomic": ("NomicBert", {}), "jina_v3": ("JinaEmbeddingsV3", {}),
              "ultrabert": ("Ultrabert", {"num_hidden_layers": 3}),
              "modernbert": ("ModernBert", {"classifier_activation": "silu"})}


def small(task, family, more):
    sizes = {} if family in ("T5", "MT5") else SMALL
    return lambda folder, rng: draw_model(family, task, rng, folder, **{**sizes, **more})


CASES = {case.__name__: case for case in (
    m3, model2vec_alone, static_f16, model2vec, ner_bert, ner_modernbert, ner_deberta, splade_gte,
    splade_bert, splade_distilbert, router, reranker_qwen3, reranker_llama, reranker_gemma3)}
CASES.update({f"ner_{name}": small("TokenClassification", *more)
              for name, more in LABEL_SMALL.items()})
CASES.update({f"mlm_{name}": small("MaskedLM", *more) for name, more in MASK_SMALL.items()})


def nonzero(rows):
    places = [np.flatnonzero(row) for row in rows]
    return [{"indices": at.tolist(), "values": rounded([row[at]])[0]}
            for at, row in zip(places, rows, strict=True)]


def rows_answer(texts, rows):
    """Of the logits of each token some: the first token's, and one in the middle. Scores alone."""
    if rows[0].ndim == 1:
        return {"texts": texts, "scores": rounded(rows)}
    places = [sorted({0, len(row) // 2}) for row in rows]
    return {"texts": texts, "positions": places,
            "logits": [rounded(row[at]) for row, at in zip(rows, places, strict=True)]}


def write_answer(folder, answer):
    text = json.dumps(answer, ensure_ascii=False)
    (folder / "expected.json").write_text(text.replace("], [", "],\n[") + "\n")
    for file in folder.rglob("*.*"):
        if file.is_file():
            file.chmod(0o644)
    print(folder.name)


def main():
    require(SENTENCES)
    import transformers
    transformers.logging.set_verbosity_error()
    names = sys.argv[1:] or ["chat_templates", *CASES, *PUBLISHED]
    if "chat_templates" in names:
        write_json(DATA / "chat_templates.json", chat_templates())
    for name in [name for name in names if name in PUBLISHED]:
        folder = DATA / "heads" / name
        shutil.rmtree(folder, ignore_errors=True)
        rows = draw_published(name, np.random.RandomState(len(name)), folder, np.float16, NAMES)
        write_answer(folder, rows_answer(NAMES, rows))
    for name in [name for name in names if name in CASES]:
        folder = DATA / "heads" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        CASES[name](folder, np.random.RandomState(len(name)))
        texts = [*TEXTS, *NAMES]
        if name.startswith("mlm"):
            answer = rows_answer(NAMES, masked_answers(folder, NAMES))
        elif name.startswith("ner"):
            texts = [text for text in texts if text]
            if name[4:] in LABEL_SMALL:
                texts = NAMES
            logits, entities = token_answers(folder, texts)
            answer = {"texts": texts, "logits": [rounded(rows) for rows in logits],
                      "entities": entities}
        elif name.startswith("reranker"):
            pairs = [[NAMES[0], text] for text in texts] + [[text, NAMES[1]] for text in texts[:4]]
            answer = {"pairs": pairs, "scores": reranker_scores(folder, pairs)}
        elif name == "model2vec_alone":
            answer = {"texts": texts, "vectors": rounded(model2vec_vectors(folder, texts))}
        elif name == "m3":
            sparse, vectors = m3_answers(folder, texts)
            answer = {"texts": texts, "vectors": [rounded(rows) for rows in vectors], "sparse": [
                {"indices": list(row), "values": rounded([list(row.values())])[0]}
                for row in sparse]}
        elif name in ("static_f16", "model2vec"):
            answer = {"texts": texts, "vectors": rounded(static_vectors(folder, texts))}
        else:
            tasks = ["query", "document"] if name == "router" else [None]
            answer = {"texts": texts, "results": [
                {"task": task, "rows": nonzero(sparse_vectors(folder, texts, task))}
                for task in tasks]}
        write_answer(folder, answer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
