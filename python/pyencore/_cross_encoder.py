# SPDX-License-Identifier: Apache-2.0
"""CrossEncoder and Classifier: what a classification head says of pairs and texts."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyencore import _core
from pyencore._arguments import FOLDER_NAMES, check_one_process, renamed
from pyencore._arrays import Floats, torch_module
from pyencore._call import Call, CallStats, Progress
from pyencore._errors import UnsupportedError
from pyencore._inputs import checked, elements, integer, is_tensor, shown
from pyencore._opened import Compute, TextModel, check_batch_size, check_device
from pyencore._prompts import Prompted, sentence_settings
from pyencore._texts import pairs_of, texts_of

Pair = Sequence[str]
# "identity", "sigmoid", "softmax", torch's classes of these, or a function of the logits.
ActivationFn = str | Callable[[Any], Any]


def softmax(logits: Floats) -> Floats:
    raised: Floats = np.exp(logits - logits.max(axis=-1, keepdims=True))
    result: Floats = raised / raised.sum(axis=-1, keepdims=True)
    return result


class _Head(TextModel):
    @property
    def labels(self) -> list[str]:
        """Names of the head's outputs."""
        return list(self._core.labels)

    @property
    def num_labels(self) -> int:
        return len(self._core.labels)

    def _scores(
        self,
        first: list[str],
        second: list[str] | None,
        activation: ActivationFn,
        show: bool | None,
        call: Call,
        prompt: str | None = None,
    ) -> Floats:
        if not self._core.labels:
            raise UnsupportedError(f"{self.folder} has no classification head")
        known = activation if isinstance(activation, str) else "identity"
        with call.watched(show, first, second) as watch:
            values = self._core.classify(first, second, known, self._max_length, prompt, watch)
        if not isinstance(activation, str):
            values = _apply(activation, values)
        return values


class CrossEncoder(_Head, Prompted):
    """A reranker or other model of pairs, with the calls of sentence_transformers.CrossEncoder.

    num_labels must be the folder's. compute, threads, keep, cache, compare_cache and trust_cache
    are as TextEncoder's. The other arguments are those of sentence-transformers.
    """

    _organization = "cross-encoder"
    _prompt_names = ()

    @renamed(
        model_name="model_name_or_path",
        cache_dir="cache_folder",
        default_activation_function="activation_fn",
        tokenizer_args="processor_kwargs",
        automodel_args="model_kwargs",
        config_args="config_kwargs",
        **FOLDER_NAMES,
    )
    @checked
    def __init__(
        self,
        model_name_or_path: str | os.PathLike[str],
        num_labels: int | None = None,
        max_length: int | None = None,
        activation_fn: ActivationFn | None = None,
        device: Any = None,
        *,
        compute: Compute | None = None,
        threads: int = 0,
        keep: Collection[str] = (),
        ignore_unknown_keys: bool = False,
        cache: str | os.PathLike[str] | None = None,
        compare_cache: bool = False,
        trust_cache: bool = False,
        prompts: Mapping[str, str | None] | None = None,
        default_prompt_name: str | None = None,
        cache_folder: str | os.PathLike[str] | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        token: str | bool | None = None,
        **others: Any,
    ) -> None:
        self._activation = _activation_of(activation_fn)
        self._activation_fn = activation_fn
        self._open(locals())
        own = sentence_settings(self.folder).get("default_prompt_name")
        self._own_prompt = "" if own is None else dict(self._core.prompts).get(own)
        if num_labels is not None and num_labels != self.num_labels:
            raise ValueError(
                f"num_labels is {num_labels!r}; wanted {self.num_labels} or None, as "
                f"{self.folder} has a head of {self.num_labels}"
            )

    @property
    def activation_fn(self) -> ActivationFn:
        """What follows the logits where a call does not say it: what was given, or
        "as cross-encoder", which is what the folder says."""
        return self._activation if self._activation_fn is None else self._activation_fn

    @activation_fn.setter
    def activation_fn(self, activation: ActivationFn) -> None:
        if activation is None:
            raise TypeError(
                "activation_fn is None; wanted a function, or a name: 'identity' for the logits, "
                "'as cross-encoder' for what the folder says"
            )
        self._activation = _activation_of(activation)
        self._activation_fn = activation

    @renamed(sentences="inputs", activation_fct="activation_fn", num_workers=None)
    @checked
    def predict(
        self,
        inputs: Iterable[str | Pair],  # a pair, or several
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        activation_fn: ActivationFn | None = None,
        apply_softmax: bool | None = False,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: Any = None,
        pool: None = None,
        chunk_size: int | None = None,
        *,
        cancel: Any = None,
        deadline: float | None = None,
        background: bool = False,
        progress: Progress | None = None,
        stats: CallStats | None = None,
    ) -> Any:
        """The score of a pair, or those of several: [pairs], or [pairs, labels] of more labels.

        activation_fn: "identity", "sigmoid", "softmax", torch's name of one ("torch.nn.Sigmoid"),
        or a function of the logits (a torch tensor where torch is imported, else an array); the
        attribute's by default. pool is None, and chunk_size changes nothing. cancel and what
        follows are as of TextEncoder.encode.
        """
        call = Call(cancel, deadline, background, progress, stats)
        activation = self._activation
        if activation_fn is not None:
            activation = _activation_of(activation_fn)
        check_batch_size(batch_size)
        check_device(device)
        check_one_process(pool, chunk_size)
        first, second, single = pairs_of("inputs", inputs)
        if not first:
            if convert_to_tensor:
                return torch_module("convert_to_tensor").tensor([])
            return np.array([]) if convert_to_numpy else []
        values: NDArray[Any] = self._scores(
            first, second, activation, show_progress_bar, call, self._prompt(prompt_name, prompt)
        )
        if self.num_labels == 1 and values.ndim > 1:
            values = values[:, 0]
        if apply_softmax and values.ndim > 1:
            values = softmax(values)
        if convert_to_tensor:
            tensor = torch_module("convert_to_tensor").from_numpy(values)
            return tensor[0] if single else tensor
        if not convert_to_numpy:
            tensors = list(torch_module("convert_to_numpy=False").from_numpy(values))
            return tensors[0] if single else tensors
        return values[0] if single else values

    @renamed(
        activation_fct="activation_fn",
        num_workers=None,
        apply_softmax=None,
        convert_to_numpy=None,
        convert_to_tensor=None,
    )
    @checked
    def rank(
        self,
        query: str,
        documents: Iterable[str],
        top_k: int | None = None,
        return_documents: bool = False,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        activation_fn: ActivationFn | None = None,
        device: Any = None,
        pool: None = None,
        chunk_size: int | None = None,
        *,
        cancel: Any = None,
        deadline: float | None = None,
        background: bool = False,
        progress: Progress | None = None,
        stats: CallStats | None = None,
    ) -> list[dict[str, Any]]:
        """Documents by how well they fit the query, best first: corpus_id, score and, if asked for,
        text. cancel and what follows are as of TextEncoder.encode."""
        if self.num_labels != 1:
            raise ValueError(
                "CrossEncoder.rank() only works for models with num_labels=1. Consider using "
                "CrossEncoder.predict() with input pairs instead."
            )
        texts, _ = texts_of("documents", documents)
        if top_k is not None:
            integer("top_k", top_k, 0)
        scores = self.predict(
            [(query, document) for document in texts],
            prompt_name,
            prompt,
            batch_size,
            show_progress_bar,
            activation_fn,
            device=device,
            pool=pool,
            chunk_size=chunk_size,
            cancel=cancel,
            deadline=deadline,
            background=background,
            progress=progress,
            stats=stats,
        ).tolist()
        results: list[dict[str, Any]] = []
        for i, score in enumerate(scores):
            results.append({"corpus_id": i, "score": score})
            if return_documents:
                results[-1]["text"] = texts[i]
        return sorted(results, key=lambda x: float(x["score"]), reverse=True)[:top_k]

    def _prompt(self, name: str | None, prompt: str | None) -> str | None:
        """None where it is the folder's own, which a chat template has in it already."""
        text = self._resolve_prompt(name, prompt)
        return None if text == self._own_prompt else text


class Classifier(_Head):
    """A model that gives texts, or pairs, labels, as transformers' pipeline "text-classification".

    function_to_apply: "sigmoid", "softmax" or "none", what `classify` makes of the logits. None: by
    problem_type of config.json, as the pipeline does.
    """

    @renamed(**FOLDER_NAMES)
    @checked
    def __init__(
        self,
        model_name_or_path: str | os.PathLike[str],
        *,
        function_to_apply: str | None = None,
        **options: Any,
    ) -> None:
        self._function = function_of(function_to_apply)
        super().__init__(model_name_or_path, **options)

    @checked
    def predict(
        self,
        inputs: str | Iterable[str | Pair],
        *,
        activation_fn: ActivationFn | None = None,
        apply_softmax: bool = False,
        show_progress_bar: bool | None = None,
        cancel: Any = None,
        deadline: float | None = None,
        background: bool = False,
        progress: Progress | None = None,
        stats: CallStats | None = None,
    ) -> Floats:
        """[texts, labels], or [labels] of a single text, as CrossEncoder.predict: the folder's
        activation_fn, else the logits of several labels and the sigmoid of one. cancel and what
        follows are as of TextEncoder.encode."""
        call = Call(cancel, deadline, background, progress, stats)
        activation = _activation_of(activation_fn)
        single = isinstance(inputs, str)
        listed: list[Any] = [inputs] if single else _listed(inputs)
        second: list[str] | None = None
        if listed and not isinstance(listed[0], str):
            first, second, _ = pairs_of("inputs", listed)
        else:
            first, _ = texts_of("inputs", inputs if single else listed)
        values = self._scores(first, second, activation, show_progress_bar, call)
        if apply_softmax:
            values = softmax(values)
        return values[0] if single else values

    @checked
    def classify(
        self,
        inputs: str | Iterable[str | Pair],
        top_k: int | None = 1,
        function_to_apply: str | None = None,
        *,
        cancel: Any = None,
        deadline: float | None = None,
        background: bool = False,
        progress: Progress | None = None,
        stats: CallStats | None = None,
    ) -> list[dict[str, Any]] | list[list[dict[str, Any]]]:
        """The top_k labels of a text, or of each, or all for None: label and score, the highest
        first.

        function_to_apply: "sigmoid", "softmax" or "none", as the pipeline's; the constructor's by
        default. Without both, problem_type of config.json decides: "regression" gives logits,
        "multi_label_classification" or one label sigmoids, all else the softmax. cancel and what
        follows are as of TextEncoder.encode.
        """
        if top_k is not None:
            integer("top_k", top_k, 1)
        function = function_of(function_to_apply) or self._function or "as classifier"
        single = isinstance(inputs, str)
        listed: Any = [inputs] if single else inputs
        scores = self.predict(
            listed,
            activation_fn=function,
            cancel=cancel,
            deadline=deadline,
            background=background,
            progress=progress,
            stats=stats,
        )
        found = labelled(scores, self.labels, top_k)
        return found[0] if single else found


def labelled(scores: Floats, labels: list[str], top_k: int | None) -> list[list[dict[str, Any]]]:
    """Of each row the top_k labels with their scores, the highest first."""
    return [
        [
            {"label": labels[i], "score": float(row[i])}
            for i in np.argsort(-row, kind="stable")[:top_k]
        ]
        for row in scores
    ]


def _listed(inputs: Any) -> list[Any]:
    """Texts, or pairs of them, which may be an array of two axes."""
    if isinstance(inputs, np.ndarray) and inputs.ndim == 2:
        return list(inputs)
    return elements("inputs", inputs, "texts or pairs")


def _activation_of(activation: ActivationFn | None) -> ActivationFn:
    """The argument, checked. None: as CrossEncoder has it."""
    if activation is None:
        return "as cross-encoder"
    if isinstance(activation, str):
        try:
            return _core.score_activation(activation)
        except ValueError as error:
            sentence = str(error).replace("the activation", "activation_fn", 1)
            raise ValueError(sentence) from None
    if isinstance(activation, type) or not callable(activation):
        raise TypeError(
            f"activation_fn is {shown(activation)}; wanted a name such as 'sigmoid', or a function "
            "of the logits: of a class of torch's an object, torch.nn.Sigmoid()"
        )
    return activation


def function_of(function: str | None) -> str | None:
    """The pipeline's names, which it takes in capitals too."""
    name = function.lower() if isinstance(function, str) else function
    if name is not None and name not in ("sigmoid", "softmax", "none"):
        raise ValueError(
            f"function_to_apply is {shown(function)}; wanted 'sigmoid', 'softmax', 'none' or None"
        )
    return name


def _apply(activation: Callable[[Any], Any], values: Floats) -> Floats:
    """A function of a torch tensor where torch is imported, as sentence-transformers has it, of an
    array elsewhere."""
    torch = sys.modules.get("torch")
    if torch is None:
        return np.asarray(activation(values), np.float32)
    with torch.inference_mode():
        applied = activation(torch.from_numpy(values))
    return np.asarray(applied.numpy() if is_tensor(applied) else applied, np.float32)
