# SPDX-License-Identifier: Apache-2.0
"""Texts before texts, by their names: the folder's, and those of the caller."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pyencore._folder import read_json
from pyencore._inputs import shown
from pyencore._opened import Opened


def sentence_settings(folder: str) -> dict[str, Any]:
    """config_sentence_transformers.json, which counts where there are modules alone."""
    if not os.path.exists(os.path.join(folder, "modules.json")):
        return {}
    return read_json(folder, "config_sentence_transformers.json")


def check_task(task: Any) -> None:
    if task not in ("query", "document", None):
        raise ValueError(f"task is {shown(task)}; wanted 'query', 'document' or None")


def check_own_task(of: str, options: Mapping[str, Any]) -> None:
    if "task" in options:
        raise TypeError(f"{of}() found task, which is its own; wanted encode() with a task")


def _checked(prompts: Any, other: type[Any]) -> dict[str, Any]:
    """A dict of names and texts, or what else they may be."""
    if not isinstance(prompts, Mapping):
        raise TypeError(
            f"prompts is of type {type(prompts).__name__}; wanted a dict of names and texts"
        )
    for name, text in prompts.items():
        if not isinstance(name, str) or not isinstance(text, (str, other)):
            raise TypeError(
                f"prompts has {shown(name)} of type {type(text).__name__}; wanted names and texts"
            )
    return dict(prompts)


class Prompted(Opened):
    """A model that puts a prompt before texts, as sentence-transformers' models do."""

    # Names that there are without a prompt in the folder.
    _prompt_names: tuple[str, ...] = ("query", "document")

    def _set_prompts(
        self, prompts: Mapping[str, str | None] | None, default_prompt_name: Any
    ) -> None:
        """The caller's before the folder's, where they are not None."""
        given = {} if prompts is None else _checked(prompts, type(None))
        known = dict.fromkeys([*self._prompt_names, *given], "") | dict(self._core.prompts)
        self.prompts = known | {name: text for name, text in given.items() if text is not None}
        if default_prompt_name is None:
            default_prompt_name = sentence_settings(self.folder).get("default_prompt_name")
        self.default_prompt_name = default_prompt_name

    @property
    def prompts(self) -> dict[str, str]:
        """Names and texts. Changes count from the next call on."""
        return self._prompts

    @prompts.setter
    def prompts(self, prompts: Mapping[str, str]) -> None:
        self._prompts = _checked(prompts, str)

    @property
    def default_prompt_name(self) -> str | None:
        """The prompt of calls that name none."""
        return self._default_prompt_name

    @default_prompt_name.setter
    def default_prompt_name(self, name: str | None) -> None:
        if name is not None and (not isinstance(name, str) or name not in self._prompts):
            raise ValueError(
                f"Default prompt name {shown(name)} not found in the configured prompts dictionary "
                f"with keys {list(self._prompts)!r}."
            )
        self._default_prompt_name = name

    def _resolve_prompt(self, name: str | None, prompt: str | None) -> str:
        """Of a call; "" is none."""
        if prompt is not None:
            if not isinstance(prompt, str):
                raise TypeError(f"prompt is of type {type(prompt).__name__}; wanted str or None")
            return prompt
        if name is not None:
            if not isinstance(name, str) or name not in self._prompts:
                raise ValueError(
                    f"Prompt name {shown(name)} not found in the configured prompts dictionary "
                    f"with keys {list(self._prompts)!r}."
                )
        elif self._default_prompt_name in self._prompts:
            name = self._default_prompt_name
        else:
            return ""
        text = self._prompts[name]
        if not isinstance(text, str):  # the dict is the caller's to change
            raise TypeError(f"prompts[{shown(name)}] is of type {type(text).__name__}; wanted str")
        return text

    def _name_of_query(self, name: str | None, prompt: str | None) -> str | None:
        if name is None and prompt is None and "query" in self._prompts:
            return "query"
        return name

    def _name_of_document(self, name: str | None, prompt: str | None) -> str | None:
        if name is None and prompt is None:
            known = (n for n in ("document", "passage", "corpus") if n in self._prompts)
            return next(known, None)
        return name
