# SPDX-License-Identifier: Apache-2.0
"""Texts before texts, by their names: the folder's, and those of the caller."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pyencore._folder import read_json
from pyencore._inputs import checked, shown
from pyencore._opened import TextModel


def sentence_settings(folder: str) -> dict[str, Any]:
    """config_sentence_transformers.json, which counts where there are modules alone."""
    if not os.path.exists(os.path.join(folder, "modules.json")):
        return {}
    return read_json(folder, "config_sentence_transformers.json")


class Prompted(TextModel):
    """A model that puts a prompt before texts, as sentence-transformers' models do."""

    # Names that there are without a prompt in the folder.
    _prompt_names: tuple[str, ...] = ("query", "document")

    def _open(self, arguments: Mapping[str, Any]) -> None:
        """The caller's prompts before the folder's, where they are not None."""
        super()._open(arguments)
        given = arguments["prompts"] or {}
        default_prompt_name = arguments["default_prompt_name"]
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
    @checked
    def prompts(self, prompts: Mapping[str, str]) -> None:
        self._prompts = dict(prompts)

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
