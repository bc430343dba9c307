# SPDX-License-Identifier: Apache-2.0
"""modules.json and the modules' own files, settings of sentence-transformers, and prompts."""
from make_text_fixtures import POOLINGS

WIDTH = 32
ACTIVATIONS = ["torch.nn.modules.activation.Tanh", "torch.nn.modules.linear.Identity",
               *(f"torch.nn.modules.activation.{name}" for name in (
                   "GELU", "ReLU", "SiLU", "Sigmoid", "LeakyReLU", "ELU", "Softplus", "Mish",
                   "ReLU6", "SELU", "CELU", "Hardtanh", "Hardswish", "Hardsigmoid", "Softsign",
                   "Tanhshrink", "LogSigmoid", "Softshrink", "Hardshrink", "RReLU", "CELU",
                   "Softmax")),
               "torch.nn.ReLU", "somebody.Swish"]
MODULE_NAMES = ["module_input_name", "module_output_name"]
NAMES = ["sentence_embedding"] * 3 + ["token_embeddings", "another"]  # of modules' vectors
TRANSFORMER_KEYS = [
    {"transformer_task": "feature-extraction"}, {"transformer_task": "fill-mask"},
    {"unpad_inputs": False}, {"unpad_inputs": None}, {"query_length": 7}, {"document_length": 9},
    {"query_expansion": None}, {"model_args": {"attention_dropout": 0.1}},
    {"module_output_name": "token_embeddings", "modality_config": {
        "text": {"method": "forward", "method_output_name": "last_hidden_state"}}},
    {"processing_kwargs": {"text": {"max_length": 11}}},
    {"processing_kwargs": {"text": {"truncation": False}}}]
OLD, NEW, BASE_MODULES = ("sentence_transformers.models.",
                          "sentence_transformers.sentence_transformer.modules.",
                          "sentence_transformers.base.modules.")


def one_in(rng, n):
    return rng.random() * n < 1


def draw_pooling(rng, width):
    modes = rng.choice([1, 1, 1, 1, 2, 3])
    if one_in(rng, 2):
        chosen = rng.sample(POOLINGS, modes)
        config = {"word_embedding_dimension": width}
        config |= {f"pooling_mode_{name}": name in chosen for name in POOLINGS
                   if name in chosen or one_in(rng, 2)}
    else:
        names = rng.sample(["cls", "mean", "max", "mean_sqrt_len_tokens", "weightedmean",
                            "lasttoken"], modes)
        config = {rng.choice(["embedding_dimension", "word_embedding_dimension"]): width,
                  "pooling_mode": names if modes > 1 or one_in(rng, 3) else names[0]}
    if one_in(rng, 4):
        config["include_prompt"] = not one_in(rng, 2)
    return config, modes * width


def class_path(rng, kind):
    package = NEW if kind in ("Pooling", "LayerNorm", "Dropout") else BASE_MODULES
    file = {"LayerNorm": "layer_norm"}.get(kind, kind.lower())
    return rng.choice([OLD + kind, f"{package}{file}.{kind}"])


def draw_modules(rng, files, dense, tokens, features=None):
    """modules.json and the modules' own files. tokens: the width of their vectors. features: the
    width of vectors that the model makes itself, which no pooling follows."""
    transformer = "0_Transformer" if one_in(rng, 8) else ""
    entries = [(class_path(rng, "Transformer"), transformer)]
    width = features
    if features is None:
        files["1_Pooling/config.json"], width = draw_pooling(rng, tokens)
        entries.append((class_path(rng, "Pooling"), "1_Pooling"))
    for i in range(2, 2 + rng.choice([0, 0, 1, 1, 2, 3])):
        kind = rng.choice(["Normalize", "Normalize", "Dense", "Dense", "LayerNorm", "Dropout"])
        entries.append((class_path(rng, kind), f"{i}_{kind}"))
        if kind == "LayerNorm":
            dense[f"{i}_LayerNorm"] = files[f"{i}_LayerNorm/config.json"] = {"dimension": width}
            continue
        if kind == "Dropout":
            files[f"{i}_Dropout/config.json"] = rng.choice([{}, {"dropout": 0.3}])
            continue
        if kind == "Normalize":
            if one_in(rng, 6):
                files[f"{i}_Normalize/config.json"] = {
                    key: rng.choice(NAMES) for key in MODULE_NAMES if one_in(rng, 1.5)}
            continue
        out = rng.choice([8, 20, 32])
        config = {"in_features": width, "out_features": out, "bias": rng.random() < 0.7,
                  "activation_function": rng.choice(ACTIVATIONS)}
        if one_in(rng, 8):
            del config["activation_function"]
        if one_in(rng, 6):
            config["module_input_name"] = "sentence_embedding"
        if one_in(rng, 10):
            config["module_output_name"] = rng.choice(NAMES)
        if one_in(rng, 10):
            config["use_residual"] = one_in(rng, 3)
        if one_in(rng, 12):
            config["somebodys_key"] = 1
        files[f"{i}_Dense/config.json"] = config
        dense[f"{i}_Dense"] = config
        width = out
    files["modules.json"] = [{"idx": i, "name": str(i), "path": path, "type": kind}
                             for i, (kind, path) in enumerate(entries)]
    return transformer


def draw_settings(rng, files):
    """sentence_bert_config.json, config_sentence_transformers.json; the prompt's name to use."""
    settings = {}
    if one_in(rng, 1.5):
        settings["max_seq_length"] = rng.choice([6, 10, 20, 30, 100, 1000, None])
    if one_in(rng, 2):
        settings["do_lower_case"] = one_in(rng, 4)
    if one_in(rng, 50):
        settings["somebodys_key"] = True
    if one_in(rng, 8):
        settings |= rng.choice(TRANSFORMER_KEYS)
    if settings or one_in(rng, 2):
        name = "roberta" if one_in(rng, 8) else "bert"
        files[f"sentence_{name}_config.json"] = settings
    if not one_in(rng, 3):
        return None
    prompts = {"query": "Which road: ", "passage": "", "odd": "caf\u00e9  "}
    config = {"prompts": prompts, "similarity_fn_name": rng.choice([None, "cosine", "dot"])}
    if one_in(rng, 3):
        config["default_prompt_name"] = rng.choice(["odd", None, "query"])
    if one_in(rng, 4):
        config["truncate_dim"] = rng.choice([5, 31, 1000, None])
    if one_in(rng, 4):
        config["model_type"] = "SentenceTransformer"
    if one_in(rng, 12):
        config["somebodys_key"] = 1
    files["config_sentence_transformers.json"] = config
    return rng.choice([None, "query", "passage", "odd"])


def width_of(model):
    """Of a token's vector."""
    settings = model["settings"]
    return next(settings[key] for key in ("embedding_dim", "hidden_size", "dim", "d_model")
                if key in settings)


def features_of(model):
    settings, width = model["settings"], width_of(model)
    return {"CLIP": settings.get("projection_dim", WIDTH),
            "Siglip": settings.get("projection_size", width),
            "Siglip2": settings.get("projection_size", width)}.get(model["family"])


def merge_settings(files, settings):
    for name in ("sentence_bert_config.json", "sentence_roberta_config.json"):
        settings |= files.pop(name, {})
    files["sentence_bert_config.json"] = settings


def draw_features(files):
    """What sentence-transformers writes. It finds that out by itself only where a processor of
    images is there too."""
    merge_settings(files, {"module_output_name": "sentence_embedding", "modality_config": {
        "text": {"method": "get_text_features", "method_output_name": "pooler_output"}}})


def draw_padding(rng, files):
    """As published, and now and then not."""
    config = files.setdefault("tokenizer_config.json", {})
    if not one_in(rng, 8):
        config["model_input_names"] = ["input_ids"]
    if not one_in(rng, 8):
        config["padding_side"] = "right"
    config.pop("model_max_length", None)
    settings = {"processing_kwargs": {"text": {"padding": "max_length", "max_length": None}}}
    merge_settings(files, settings)
    settings.pop("max_seq_length", None)


def draw_scores(rng, model):
    """Where a reranker says its activation."""
    name = rng.choice([None, "torch.nn.modules.activation.Sigmoid", *ACTIVATIONS[:8],
                       "torch.nn.modules.linear.Identity"])
    if name and one_in(rng, 2):
        model["more"]["sentence_transformers"] = {"activation_fn": name, "version": "4.0.1"}
    elif name:
        model["more"]["sbert_ce_default_activation_function"] = name
