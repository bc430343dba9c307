#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/sentences: tiny models of some families in whole folders as they are published,
and what sentence-transformers computes from texts with them in float64.

Holds the folders' files: configuration, modules, prompts and tokenizer in the published spelling,
random weights. Needs torch 2.15.0, transformers 5.23.0 and sentence-transformers 6.2.0.

    tests/make/make_sentence_fixtures.py [NAME ...]     writes the folders and their expected.json
    tests/make/make_sentence_fixtures.py --check        makes them again and compares

Two results are compared on the way: sentence-transformers as it is, with rotary angles, softmax and
RMSNorm in float32, and with these in float64, which is what is written. transformers builds some
tokenizers anew from their vocabulary: where its ids differ from those of tokenizer.json, the file's
count, and the difference is told.
"""
import argparse
import copy
import json
import os
import pathlib
import shutil
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np  # noqa: E402

from made_files import SENTENCES, require  # noqa: E402
from make_text_fixtures import (CORPUS, TEXTS, booleans, legacy, modules,  # noqa: E402
                                rounded, write_json)
from model_fixture_families import (CLIP, EMBEDDING_GEMMA2, GEMMA, GTE, NTK,  # noqa: E402
                                    QWEN3, T5, by_type, old_gemma, old_gte, old_llama,
                                    old_t5, rename_tensors, rope, set_exact)
import shapes  # noqa: E402
from whole_models import published_gemma, whole_config, whole_gemma  # noqa: E402

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
IDENTITY = "torch.nn.modules.linear.Identity"
BOUND = 2e-6  # of sentence-transformers as it is, from float64
LONG = "Trains stop here twice a day; water boils early on high mountains. " * 9


def chain(*kinds):
    """modules.json of a transformer and these, whose folders are numbered."""
    return modules((legacy("Transformer"), ""),
                   *((legacy(kind), f"{i}_{kind}") for i, kind in enumerate(kinds, 1)))


def dense(rows, columns):
    return {"in_features": columns, "out_features": rows, "bias": False,
            "activation_function": IDENTITY}


def corpus():
    yield from CORPUS.strip().splitlines() * 3


def gte():
    """Alibaba-NLP/gte-base-en-v1.5: no module after pooling, and the first token."""
    return {
        "family": "Gte", "kind": "Model", "spelling": old_gte,
        "config": {**GTE, "type_vocab_size": 0, "hidden_size": 32, "vocab_size": None,
                   **rope(500000.0)},
        "rope": NTK,
        "tokenizer": None,
        "files": {"modules.json": chain("Pooling"),
                  "1_Pooling/config.json": booleans("cls_token", include_prompt=True),
                  "sentence_bert_config.json": {"max_seq_length": 48, "do_lower_case": False},
                  "tokenizer_config.json": {
                      "clean_up_tokenization_spaces": True, "cls_token": "[CLS]",
                      "do_lower_case": True, "mask_token": "[MASK]", "max_length": 8000,
                      "model_max_length": 32768, "pad_to_multiple_of": None,
                      "pad_token": "[PAD]", "pad_token_type_id": 0, "padding_side": "right",
                      "sep_token": "[SEP]", "stride": 0, "strip_accents": None,
                      "tokenize_chinese_chars": True, "tokenizer_class": "BertTokenizer",
                      "truncation_side": "right", "truncation_strategy": "longest_first",
                      "unk_token": "[UNK]"}},
        "prompts": [None]}


def qwen3_embedding():
    """Qwen/Qwen3-Embedding-0.6B: the last token, which the template adds."""
    query = ("Instruct: Given a web search query, retrieve relevant passages that answer the query"
             "\nQuery:")
    return {
        "family": "Qwen3", "kind": "Model", "spelling": old_llama,
        "config": {**QWEN3, "vocab_size": None, "pad_token_id": None,
                   "max_position_embeddings": 96, "tie_word_embeddings": True,
                   **rope(1000000.0)},
        "tokenizer": shapes.qwen,
        "files": {"modules.json": chain("Pooling", "Normalize"),
                  "1_Pooling/config.json": booleans("lasttoken", include_prompt=True),
                  "config_sentence_transformers.json": {
                      "prompts": {"query": query, "document": ""}, "default_prompt_name": None,
                      "similarity_fn_name": "cosine"},
                  "tokenizer_config.json": {
                      "add_bos_token": False, "add_prefix_space": False,
                      "additional_special_tokens": ["<|im_start|>", "<|im_end|>"],
                      "bos_token": None, "clean_up_tokenization_spaces": False,
                      "eos_token": "<|im_end|>", "errors": "replace", "model_max_length": 131072,
                      "pad_token": "<|endoftext|>", "split_special_tokens": False,
                      "tokenizer_class": "Qwen2Tokenizer", "unk_token": None}},
        "prompts": [None, "query", "document"]}


def embedding_gemma():
    """google/embeddinggemma-300m: two plain dense layers, and prompts for everything."""
    return {
        "family": "Gemma3Text", "kind": "Model", "spelling": old_gemma,
        "config": {**GEMMA, "vocab_size": None, "max_position_embeddings": 2048,
                   **by_type(1000000.0, 10000.0)},
        "tokenizer": shapes.gemma,
        "files": {"modules.json": chain("Pooling", "Dense", "Dense", "Normalize"),
                  "1_Pooling/config.json": booleans("mean_tokens", include_prompt=True),
                  "2_Dense/config.json": dense(48, 32), "3_Dense/config.json": dense(32, 48),
                  "sentence_bert_config.json": {"max_seq_length": 128, "do_lower_case": False},
                  "config_sentence_transformers.json": {
                      "model_type": "SentenceTransformer",
                      "__version__": {"sentence_transformers": "5.1.2", "pytorch": "2.9.0+cpu",
                                      "transformers": "4.57.1"},
                      "prompts": {"query": "task: search result | query: ",
                                  "document": "title: none | text: ",
                                  "STS": "task: sentence similarity | query: ",
                                  "Retrieval-query": "task: search result | query: "},
                      "default_prompt_name": None, "similarity_fn_name": "cosine"},
                  "tokenizer_config.json": {
                      "add_bos_token": True, "add_eos_token": True, "bos_token": "<bos>",
                      "clean_up_tokenization_spaces": False, "eos_token": "<eos>",
                      "mask_token": "<mask>", "model_max_length": 2048, "pad_token": "<pad>",
                      "padding_side": "right", "sp_model_kwargs": None,
                      "spaces_between_special_tokens": False, "tokenizer_class": "GemmaTokenizer",
                      "unk_token": "<unk>", "use_default_system_prompt": False}},
        "prompts": [None, "query", "document", "STS"]}


def sentence_t5():
    """sentence-transformers/sentence-t5-base: a dense layer without a bias; the table of words
    under the name that it has in the encoder."""

    def spelling(folder, config):
        old_t5(folder, config)
        rename_tensors(folder, lambda n: n.replace("shared.", "encoder.embed_tokens."))
        config["task_specific_params"] = {"summarization": {"early_stopping": True,
                                                            "prefix": "summarize: "}}
        config["torch_dtype"] = config.pop("dtype")
    return {
        "family": "T5", "kind": "EncoderModel", "spelling": spelling,
        "config": {**T5, "vocab_size": None},
        "tokenizer": shapes.t5,
        "files": {"modules.json": chain("Pooling", "Dense", "Normalize"),
                  "1_Pooling/config.json": booleans("mean_tokens"),
                  "2_Dense/config.json": dense(24, 32),
                  "sentence_bert_config.json": {"max_seq_length": 64, "do_lower_case": False},
                  "config_sentence_transformers.json": {
                      "__version__": {"sentence_transformers": "2.2.0", "transformers": "4.7.0",
                                      "pytorch": "1.9.0+cu102"}},
                  "tokenizer_config.json": {
                      "additional_special_tokens": [f"<extra_id_{n}>" for n in range(10)],
                      "eos_token": "</s>", "extra_ids": 10, "model_max_length": 512,
                      "name_or_path": "models/sentence-t5-base", "pad_token": "<pad>",
                      "special_tokens_map_file": None, "tokenizer_class": "T5Tokenizer",
                      "unk_token": "<unk>"}},
        "prompts": [None]}


def clip():
    """sentence-transformers/clip-ViT-B-32: an old module, and eos_token_id from before it was
    right. The vector is the state of the largest id, which here is no text's end."""

    def spelling(_, config):
        config.update(text_config_dict=None, vision_config_dict=None,
                      torch_dtype=config.pop("dtype"))
        config["text_config"].update(top_k=50, torch_dtype=None, eos_token_id=2)
    return {
        "family": "CLIP", "kind": "Model", "spelling": spelling, "at": "0_CLIPModel",
        "config": {**CLIP, "vocab_size": None, "max_position_embeddings": 24,
                   "projection_dim": 20, "eos_token_id": 2},
        "tokenizer": shapes.clip,
        "files": {"modules.json": modules((legacy("CLIPModel"), "0_CLIPModel")),
                  "config_sentence_transformers.json": {
                      "__version__": {"sentence_transformers": "2.0.0", "transformers": "4.7.0",
                                      "pytorch": "1.9.0+cu102"}},
                  "0_CLIPModel/tokenizer_config.json": {
                      "unk_token": "<|endoftext|>", "bos_token": "<|startoftext|>",
                      "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>",
                      "add_prefix_space": False, "errors": "replace", "do_lower_case": True,
                      "model_max_length": 24, "tokenizer_class": "CLIPTokenizer"}},
        "prompts": [None]}


def siglip2():
    """google/siglip2, saved by sentence-transformers with the padding that it was trained with."""
    features = {"method": "get_text_features", "method_output_name": "pooler_output"}
    return {
        "family": "Siglip2", "kind": "Model", "spelling": lambda *_: None,
        "config": {**CLIP, "vocab_size": None, "max_position_embeddings": 40,
                   "projection_size": 20},
        "tokenizer": shapes.siglip2,
        "files": {"modules.json": chain("Normalize"),
                  "sentence_bert_config.json": {
                      "transformer_task": "feature-extraction",
                      "modality_config": {"text": features, "image": {
                          "method": "get_image_features", "method_output_name": "pooler_output"}},
                      "module_output_name": "sentence_embedding",
                      "processing_kwargs": {"text": {"padding": "max_length", "max_length": 40}}},
                  "tokenizer_config.json": {
                      "add_bos_token": False, "add_eos_token": True, "bos_token": "<bos>",
                      "eos_token": "<eos>", "mask_token": "<mask>", "unk_token": "<unk>",
                      "pad_token": "<pad>", "padding_side": "right", "model_max_length": 40,
                      "model_input_names": ["input_ids"], "tokenizer_class": "GemmaTokenizer"}},
        "prompts": [None]}


def siglip():
    """google/siglip: the class in Python, whose file is sentencepiece's."""
    case = siglip2()
    settings = case["files"]["sentence_bert_config.json"]
    settings["processing_kwargs"]["text"]["max_length"] = 48
    return {
        **case, "family": "Siglip", "spiece": shapes.siglip,
        "config": {**CLIP, "vocab_size": None, "max_position_embeddings": 48, "pad_token_id": 1},
        "files": {**case["files"], "tokenizer_config.json": {
            "added_tokens_decoder": {
                "1": {"content": "</s>", "lstrip": True, "normalized": False, "rstrip": True,
                      "single_word": False, "special": True},
                "2": {"content": "<unk>", "lstrip": False, "normalized": True, "rstrip": False,
                      "single_word": False, "special": True}},
            "additional_special_tokens": [], "clean_up_tokenization_spaces": True,
            "do_lower_case": True, "eos_token": "</s>", "model_input_names": ["input_ids"],
            "model_max_length": 48, "pad_token": "</s>", "processor_class": "SiglipProcessor",
            "sp_model_kwargs": {}, "tokenizer_class": "SiglipTokenizer", "unk_token": "<unk>"}},
        "prompts": [None]}


def embedding_gemma2():
    """google/embeddinggemma-2: a model of texts, images and sounds, saved by sentence-transformers
    as one that is given any of them."""
    whole = {"method": "forward", "method_output_name": "last_hidden_state"}
    case = embedding_gemma()
    files = {name: value for name, value in case["files"].items() if "Dense" not in name}
    files["modules.json"] = chain("Pooling", "Normalize")
    files["1_Pooling/config.json"] = {"embedding_dimension": 24, "pooling_mode": "mean",
                                      "include_prompt": True}
    files["sentence_bert_config.json"] = {
        "transformer_task": "feature-extraction", "module_output_name": "token_embeddings",
        "modality_config": {"text": whole, "image": whole, "audio": whole, "image+text": whole}}
    return {**case, "family": "EmbeddingGemma2", "spelling": published_gemma, "files": files,
            "config": {**EMBEDDING_GEMMA2, "vocab_size": None,
                       "top": {"image_token_id": 40, "video_token_id": 41, "audio_token_id": 42}}}


CASES = {case.__name__: case for case in (gte, qwen3_embedding, embedding_gemma, sentence_t5, clip,
                                          siglip2, siglip, embedding_gemma2)}
WHOLE = ("CLIP", "Siglip", "Siglip2")  # models of texts and images


def make_folder(case, folder, rng):
    """Writes everything but expected.json. In today's spelling, which transformers can read; what
    the published one renames is renamed after the vectors are computed."""
    import torch
    import transformers
    from make_model_fixtures import randomise
    from safetensors.numpy import save_file
    own = folder / case.get("at", "")
    own.mkdir(parents=True)
    if case.get("spiece"):
        (own / "spiece.model").write_bytes(case["spiece"](corpus, 420))
    elif case["tokenizer"]:
        tokenizer = case["tokenizer"](corpus, 420)
        tokenizer.save(str(own / "tokenizer.json"))
    else:
        shutil.copy(DATA / "text/base/tokenizer.json", own / "tokenizer.json")
    if case.get("spiece"):
        size = 420
    else:
        vocabulary = json.loads((own / "tokenizer.json").read_text())
        size = 1 + max([t["id"] for t in vocabulary["added_tokens"]] + [
            len(vocabulary["model"]["vocab"]) - 1])
    settings = {**copy.deepcopy(case["config"]), "vocab_size": size}
    if case["family"] in WHOLE:
        config = whole_config(case["family"], settings)
    elif case["family"] != "EmbeddingGemma2":
        config = getattr(transformers, case["family"] + "Config")(**settings)
    if case["family"] == "EmbeddingGemma2":
        model = whole_gemma(settings).eval()
    else:
        model = getattr(transformers, case["family"] + case["kind"])(config).eval()
    randomise(model, rng, torch.float16)
    model.to(torch.float16).save_pretrained(own)
    for path, value in case["files"].items():
        write_json(folder / path, value)
        if "in_features" in value:
            shape = value["out_features"], value["in_features"]
            weight = rng.standard_normal(shape) / np.sqrt(shape[1])
            save_file({"linear.weight": weight.astype(np.float32)},
                      (folder / path).parent / "model.safetensors")


def compute(case, folder):
    """For each prompt the vectors of all texts, their counts of tokens, and the largest distance of
    sentence-transformers as it is. The tokens are transformers', which opens the folder by its
    tokenizer's class."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import transformer
    from transformers import AutoTokenizer
    # Without the packages for images, of which texts need none.
    transformer.AutoProcessor = AutoTokenizer
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True,
                                model_kwargs={"dtype": torch.float32,
                                              "attn_implementation": "eager"}).double()
    by_encode = case["family"] in WHOLE  # which module is called is the features' to say
    texts = [*TEXTS, LONG]
    found, worst = [], 0.0
    for name in case["prompts"]:
        prompt = model.prompts[name] if name else ""
        wanted = [model.preprocess([text], prompt=prompt)["input_ids"][0].tolist()
                  for text in texts]
        rows = {}
        for exact in (False, True):
            set_exact(model[0].auto_model, exact, case.get("rope"))
            rows[exact] = (model.encode(texts, batch_size=1) if by_encode
                           else np.stack([vector(model, ids) for ids in wanted]))
        set_exact(model[0].auto_model, False)
        # What a caller of encode() gets is the same. One by one: in padded batches eager attention
        # under a window gives NaN in float64.
        same = model.encode(texts, prompt=prompt, batch_size=1)
        assert case.get("rope") or np.abs(same - rows[False]).max() < 1e-7, name
        assert rows[True].dtype == np.float64
        worst = max(worst, np.abs(rows[True] - rows[False]).max() / np.abs(rows[True]).max())
        # Behind the largest id nothing counts.
        tokens = [ids.index(max(ids)) + 1 if case["family"] == "CLIP" else len(ids)
                  for ids in wanted]
        found.append({"prompt_name": name, "tokens": tokens,
                      "ids": wanted, "vectors": rows[True]})
    return texts, found, worst


def vector(model, ids):
    """All modules on one sequence."""
    import torch
    features = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids)).long()}
    with torch.no_grad():
        return model(features)["sentence_embedding"][0].numpy()


def main():
    parser = argparse.ArgumentParser(description="Makes tests/data/sentences.")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CASES))
    arguments = parser.parse_args()
    require(SENTENCES)
    import transformers
    transformers.logging.set_verbosity_error()
    right = True
    for name in arguments.names or CASES:
        case = CASES[name]()
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary) / name
            make_folder(case, folder, np.random.RandomState(len(name)))
            texts, found, worst = compute(case, folder)
            print(f"{name:18} sentence-transformers differs by {worst:.1e}")
            assert worst < BOUND, name
            if arguments.check:
                right &= agrees(name, found)
                continue
            own = folder / case.get("at", "")
            config = json.loads((own / "config.json").read_text())
            case["spelling"](own, config)
            write_json(own / "config.json", dict(sorted(config.items())))
            target = DATA / "sentences" / name
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(folder, target)
        for result in found:
            result["vectors"] = rounded(result["vectors"])
        text = json.dumps({"texts": texts, "results": found})
        (target / "expected.json").write_text(text.replace("], [", "],\n[") + "\n")
        for file in target.rglob("*.*"):
            file.chmod(0o644)
    return 0 if right else 1


def agrees(name, found):
    """Whether the folder that is there has these results."""
    stored = json.loads((DATA / "sentences" / name / "expected.json").read_text())["results"]
    worst = 0.0
    for now, then in zip(found, stored, strict=True):
        assert now["ids"] == then["ids"], f"{name}: other ids"
        difference = np.abs(now["vectors"] - np.array(then["vectors"])).max()
        worst = max(worst, difference / np.abs(now["vectors"]).max())
    print(f"{name:18} differs from what is stored by {worst:.1e}")
    return worst < 1e-8


if __name__ == "__main__":
    sys.exit(main())
