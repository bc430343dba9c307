# SPDX-License-Identifier: Apache-2.0
"""pyencore's classes of one head beside transformers' pipelines, and Tokenizer beside
tokenizers."""
import json

import numpy as np
import torch
import transformers

from call_check import folders
from call_check.arguments import (FLAG, Call, Once, Parameter, choice, draw_call, draw_inputs,
                                  draw_text, draw_texts, one_in, wrong_inputs)
from call_check.subjects import Subject, draw_pair, draw_pairs


def pipeline_of(task, kind, folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = getattr(transformers, kind).from_pretrained(folder, dtype=torch.float32)
    return transformers.pipeline(task, model=model, tokenizer=tokenizer, device="cpu")


def listed(inputs):
    """As a pipeline takes several texts."""
    if isinstance(inputs, np.ndarray):
        return inputs.tolist()
    return list(inputs) if isinstance(inputs, (tuple, range)) else inputs


class Classifier(Subject):
    METHODS = {"classify": lambda self, rng: draw_call(rng, "classify", [
                   Parameter("inputs", draw_inputs, share=1.0),
                   Parameter("top_k", choice(None, 1, 2, 3, 100, np.int64(2)), 1, 0.5),
                   Parameter("function_to_apply", choice(
                       "sigmoid", "softmax", "none", None, "else"), None, 0.2)]),
               "predict": lambda self, rng: draw_call(rng, "predict", [
                   Parameter("inputs", lambda rng: draw_inputs(rng) if one_in(rng, 2)
                             else draw_pairs(rng), share=1.0)])}
    READ = ("num_labels", "labels")
    make = staticmethod(folders.draw_classifier)

    def open_theirs(self, folder):
        self.theirs = pipeline_of("text-classification", "AutoModelForSequenceClassification",
                                  folder)

    def side(self, call, ours):
        if not ours and call.method == "get num_labels":
            return self.theirs.model.config.num_labels
        if not ours and call.method == "get labels":
            return list(self.theirs.model.config.id2label.values())
        return super().side(call, ours)

    def reference(self, method, args, options):
        given = {**dict(zip(["inputs", "top_k", "function_to_apply"], args)), **options}
        inputs = listed(given.pop("inputs"))
        if method == "predict":
            return self.reference_scores(inputs, given)
        given = {"top_k": 1, **given}
        if not isinstance(given["top_k"], int) and given["top_k"] is not None:
            given["top_k"] = given["top_k"].__index__()
        return self.theirs(inputs, truncation=True, **given)

    def reference_scores(self, inputs, options):
        """As CrossEncoder: sigmoids of one label, else logits. The pipeline gives no rows. Lists:
        transformers takes one pair whose second text is empty for its first text alone."""
        assert not options
        single = isinstance(inputs, str)
        texts = [inputs] if single else list(inputs)
        pairs = bool(texts) and not isinstance(texts[0], str)
        for text in texts:
            if not isinstance(text, str) and (not pairs or len(text) != 2 or not all(
                    isinstance(part, str) for part in text)) or pairs and isinstance(text, str):
                raise TypeError("no text and no pair")
        with torch.no_grad():
            rows = [self.theirs.model(**self.theirs.tokenizer(
                *([part] for part in (text if pairs else [text])), truncation=True,
                return_tensors="pt")).logits[0]
                .numpy() for text in texts]
        if not rows:
            return np.empty((0, self.theirs.model.config.num_labels), np.float32)
        if len(rows[0]) == 1:
            rows = [1 / (1 + np.exp(-row)) for row in rows]
        return rows[0] if single else np.stack(rows)


class TokenClassifier(Subject):
    METHODS = {"predict": lambda self, rng: draw_call(rng, "predict", [
        Parameter("inputs", draw_inputs, share=1.0),
        Parameter("aggregation_strategy", choice(
            "none", "simple", "first", "average", "max", "else"), "simple", 0.6),
        Parameter("ignore_labels", choice(["O"], [], ["B-PER", "PER"], ("O", "LOC"), ["no such"]),
                  ("O",), 0.4)]),
        "logits": lambda self, rng: Call("logits", (draw_text(rng),))}
    READ = ("labels",)
    make = staticmethod(folders.draw_token_classifier)

    def open_theirs(self, folder):
        self.theirs = pipeline_of("token-classification", "AutoModelForTokenClassification", folder)

    def side(self, call, ours):
        if not ours and call.method == "get labels":
            return list(self.theirs.model.config.id2label.values())
        return super().side(call, ours)

    def reference(self, method, args, options):
        if method == "logits":
            with torch.no_grad():
                return self.theirs.model(**self.theirs.tokenizer(
                    args[0], truncation=True, return_tensors="pt")).logits[0].numpy()
        given = {"aggregation_strategy": "simple", **dict(zip(
            ["inputs", "aggregation_strategy", "ignore_labels"], args)), **options}
        return self.theirs(listed(given.pop("inputs")), **given)

    def found(self, call, value):
        return shown(value)

    def wanted(self, call, value):
        return shown(value)


def shown(entities):
    """Without the word, which is the text's here, and the token's number."""
    if isinstance(entities, list):
        return [shown(one) for one in entities]
    if isinstance(entities, dict):
        return {key: float(value) if key == "score" else value for key, value in entities.items()
                if key not in ("word", "index")}
    return entities


def masked_text(rng):
    words = [draw_text(rng, 12).replace("[MASK]", "tea") for _ in range(3)]
    return rng.choice(["[MASK]", "{} [MASK].", "{} [MASK] {}", "{} [MASK] {} [MASK]", "{}",
                       "[MASK] [MASK] [MASK]", "{} {} {} [MASK]", "x " * 90 + "[MASK]",
                       "[MASK] " + "x " * 90, "[MASK] " + "x " * 90 + "[MASK]"]).format(*words)


def masked_inputs(rng):
    if one_in(rng, 12):
        return wrong_inputs(rng)
    texts = [masked_text(rng) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
    return rng.choice([texts, texts, tuple(texts), Once(texts), np.array(texts, object),
                       *[masked_text(rng)] * 4])


class MaskedLanguageModel(Subject):
    METHODS = {"fill_mask": lambda self, rng: draw_call(rng, "fill_mask", [
        Parameter("inputs", masked_inputs, share=1.0),
        Parameter("top_k", choice(1, 2, 5, 30, np.int64(3), 0, -1, None), 5, 0.4),
        Parameter("targets", choice("tea", "the", ["tea", "the"], ["no such word"], [""], [],
                                    ["tea", "tea"], ("road", "tea"), None, ["tea", 3]),
                  None, 0.3)])}
    READ = ("mask_token",)
    make = staticmethod(folders.draw_masked)

    def open_theirs(self, folder):
        self.theirs = pipeline_of("fill-mask", "AutoModelForMaskedLM", folder)

    def side(self, call, ours):
        if not ours and call.method == "get mask_token":
            return self.theirs.tokenizer.mask_token
        return super().side(call, ours)

    def reference(self, method, args, options):
        given = {**dict(zip(["inputs", "top_k", "targets"], args)), **options}
        inputs = listed(given.pop("inputs"))
        for text in [inputs] if isinstance(inputs, str) else inputs:
            ids = [self.theirs.tokenizer(text, truncation=cut)["input_ids"]
                   for cut in (False, True)]
            masks = [one.count(self.theirs.tokenizer.mask_token_id) for one in ids]
            if masks[0] != masks[1]:
                raise ValueError("a mask is cut off")
        found = self.theirs(inputs, tokenizer_kwargs={"truncation": True}, **given)
        one = not isinstance(inputs, str) and len(inputs) == 1
        return [found] if one and isinstance(found, list) and not nested(found, inputs) else found

    def found(self, call, value):
        return without_sequence(value)

    def wanted(self, call, value):
        return without_sequence(value)


def nested(found, inputs):
    """Whether a list of one text gave a list of one result."""
    several = inputs[0].count("[MASK]") > 1
    depth = 1 + isinstance(found[0], list) + (isinstance(found[0], list) and isinstance(
        found[0][0], list))
    return depth == (3 if several else 2)


def without_sequence(value):
    if isinstance(value, list):
        return [without_sequence(one) for one in value]
    return {k: v for k, v in value.items() if k != "sequence"} if isinstance(value, dict) else value


class Tokenizer(Subject):
    METHODS = {
        "encode": lambda self, rng: draw_call(rng, "encode", [
            Parameter("sequence", a_text, share=1.0),
            Parameter("pair", lambda rng: rng.choice([None, a_text(rng)]), None, 0.4),
            Parameter("add_special_tokens", FLAG, True, 0.3)]),
        "encode_batch": lambda self, rng: draw_call(rng, "encode_batch", [
            Parameter("input", batch, share=1.0),
            Parameter("add_special_tokens", FLAG, True, 0.3)]),
        "token_to_id": lambda self, rng: Call("token_to_id", (rng.choice(
            ["tea", "the", "[MASK]", "<pad>", "", "no such", None, 3, b"x", "##s", "\u2581the"]),)),
        "id_to_token": lambda self, rng: Call("id_to_token", (rng.choice(
            [0, 1, 7, 99, 10**6, np.int64(5), -1, "x", None, 2.0, 10**20, True]),)),
        "get_vocab_size": lambda self, rng: draw_call(rng, "get_vocab_size", [
            Parameter("with_added_tokens", FLAG, True, 0.7)]),
        "num_special_tokens_to_add": lambda self, rng: Call(
            "num_special_tokens_to_add", (rng.choice([True, False, 1, None, "x"]),))}
    make = staticmethod(folders.draw_tokenizer)

    def open_ours(self, folder):
        import pyencore
        self.ours = pyencore.Tokenizer(str(folder), **self.given)

    def open_theirs(self, folder):
        self.theirs = transformers.AutoTokenizer.from_pretrained(folder).backend_tokenizer
        self.unknown_id = json.loads(self.theirs.to_str())["model"].get("unk_id")
        self.unknown = self.unknown_id and self.theirs.id_to_token(self.unknown_id)
        self.theirs.no_padding()
        self.theirs.no_truncation()

    def wanted(self, call, value):
        return self.fields(value)

    def found(self, call, value):
        return self.fields(value)

    def fields(self, value):
        """What an encoding has. An unknown piece of a Unigram model is unk_token here, where
        tokenizers gives the piece."""
        if isinstance(value, list):
            return [self.fields(one) for one in value]
        if not hasattr(value, "type_ids"):
            return value
        tokens = [self.unknown if i == self.unknown_id else token
                  for i, token in zip(value.ids, value.tokens)]
        return [value.ids, value.type_ids, tokens, value.offsets, value.attention_mask]


def a_text(rng):
    return draw_text(rng) if rng.random() < 0.93 else rng.choice(
        [None, 3, b"x", ["a"], ("a", "b"), np.str_("tea"), "\ud800"])


def batch(rng):
    if one_in(rng, 8):
        return wrong_inputs(rng)
    return rng.choice([draw_texts(rng), [draw_pair(rng), *draw_texts(rng)], tuple(draw_texts(rng)),
                       Once(draw_texts(rng)), [tuple(draw_pair(rng))]])


SUBJECTS = [Classifier, TokenClassifier, MaskedLanguageModel, Tokenizer]
