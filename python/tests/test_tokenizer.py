# SPDX-License-Identifier: Apache-2.0
"""The tokenizer by itself against the `tokenizers` library."""

from __future__ import annotations

import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from conftest import DATA, MINILM, TEXTS, has, needs_minilm
from pyencore import Tokenizer

DIFFICULT = [
    *TEXTS,
    "naïve café 東京 😀 e\u0301 ﬁne",
    "a\u0300\u0301b",
    "\u00a0 x\ty\n",
    "İstanbul",
]


def reference_of(folder: Any) -> Any:
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


@pytest.mark.skipif(not has("tokenizers"), reason="tokenizers is not installed")
@pytest.mark.parametrize(
    "name",  # folders whose class takes tokenizer.json as it is
    [pytest.param("minilm", marks=needs_minilm), "base", "reranker", "qwen3_embedding",
     "embedding_gemma"],
)  # fmt: skip
def test_against_tokenizers(folders: Any, name: str) -> None:
    ours, theirs = Tokenizer(folders(name)), reference_of(folders(name))
    for special in (True, False):
        for found, wanted in zip(
            ours.encode_batch(DIFFICULT, add_special_tokens=special),
            theirs.encode_batch(DIFFICULT, add_special_tokens=special),
            strict=True,
        ):
            assert found.ids == wanted.ids
            assert found.tokens == wanted.tokens
            assert found.offsets == wanted.offsets
            assert found.type_ids == wanted.type_ids
            assert found.attention_mask == wanted.attention_mask
    for text in DIFFICULT:
        found, wanted = ours.encode("a fine café", text), theirs.encode("a fine café", text)
        assert (found.ids, found.offsets) == (wanted.ids, wanted.offsets)
        assert found.type_ids == wanted.type_ids
    assert ours.get_vocab_size() == theirs.get_vocab_size()
    assert ours.num_special_tokens_to_add(True) == theirs.num_special_tokens_to_add(True)
    assert ours.num_special_tokens_to_add(False) == theirs.num_special_tokens_to_add(False)
    for i in range(100):
        assert ours.id_to_token(i) == theirs.id_to_token(i)
        assert ours.token_to_id(ours.id_to_token(i) or "") == i
    assert ours.token_to_id("no such token") is None
    assert ours.id_to_token(10**9) is None


@pytest.mark.skipif(not has("tokenizers"), reason="tokenizers is not installed")
@pytest.mark.parametrize("shape", ["xlm_r", "roberta", "t5", "mpnet", "uncased"])
def test_offsets_of_pairs_against_tokenizers(tmp_path: Path, shape: str) -> None:
    file = DATA / "tokenizer" / f"{'' if shape == 'uncased' else 'shape_'}{shape}.json"
    content = json.dumps(json.loads(file.read_text("utf-8"))["tokenizer"])
    (tmp_path / "tokenizer.json").write_text(content, "utf-8")
    config = {"tokenizer_class": "PreTrainedTokenizerFast"}  # which takes the file as it is
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    ours, theirs = Tokenizer(tmp_path), reference_of(tmp_path)
    for first, second in itertools.product(DIFFICULT, DIFFICULT):
        for length in (0, 9, 30):
            theirs.no_truncation()
            if length:
                theirs.enable_truncation(length)
            found, wanted = (
                ours.encode(first, second, max_length=length),
                theirs.encode(first, second),
            )
            assert (found.ids, found.offsets) == (wanted.ids, wanted.offsets), (first, second)


@pytest.mark.parametrize("pair", ["é b", "b é b"])
def test_offsets_of_a_second_text_without_types(folders: Any, pair: str) -> None:
    tokenizer = Tokenizer(folders("sentence_t5"))
    alone = tokenizer.encode(pair, add_special_tokens=False)
    both = tokenizer.encode("ü", pair)
    assert set(both.type_ids) == {0}
    assert both.offsets[-len(alone) - 1 : -1] == alone.offsets
    assert alone.offsets[-1][1] == len(pair)


def test_lengths_and_plain_text(folders: Any) -> None:
    tokenizer = Tokenizer(folders("base"))
    text = "one two three four [SEP] five"
    whole = tokenizer.encode(text)
    cut = tokenizer.encode(text, max_length=6)
    assert len(cut) == 6
    assert cut.cut == len(whole) - 6
    sep = tokenizer.token_to_id("[SEP]")
    assert whole.ids.count(sep) == 2
    assert tokenizer.encode(text, plain_text=True).ids.count(sep) == 1
    settings = json.loads((DATA / "text" / "base" / "tokenizer_config.json").read_text())
    assert tokenizer.model_max_length == settings["model_max_length"]
    with pytest.raises(TypeError, match="sequence is of type int; wanted str"):
        tokenizer.encode(3)  # type: ignore[arg-type]
    assert any(what == "model" for what, _, _ in tokenizer.describe())


@needs_minilm
def test_of_a_model() -> None:
    from pyencore import TextEncoder

    model = TextEncoder(MINILM, threads=1)
    assert model.tokenizer.encode("tea").ids == Tokenizer(MINILM).encode("tea").ids


def test_ids_of_many_texts_in_one_array() -> None:
    tokenizer = Tokenizer(DATA / "text" / "base")
    for special in (True, False):
        ids, counts = tokenizer.encode_batch_to_array(DIFFICULT, special)
        assert (ids.dtype, counts.dtype) == ("int32", "int64")
        each = [tokenizer.encode(text, add_special_tokens=special).ids for text in DIFFICULT]
        assert counts.tolist() == [len(row) for row in each]
        assert ids.tolist() == [i for row in each for i in row]
    ids, counts = tokenizer.encode_batch_to_array([])
    assert (ids.shape, counts.shape) == ((0,), (0,))
    with pytest.raises(TypeError, match=r"input\[1\] is of type int; wanted str"):
        tokenizer.encode_batch_to_array(["a", 1])  # type: ignore[list-item]


@pytest.mark.parametrize("lowercase", [False, True])
def test_pickled(folders: Any, lowercase: bool) -> None:
    ours = Tokenizer(folders("sentence_t5"), lowercase=lowercase)
    again = pickle.loads(pickle.dumps(ours))
    texts = ["Tea AND Bread", "tea and bread"]
    found = [again.encode(text).ids for text in texts]
    assert found == [ours.encode(text).ids for text in texts]
    assert (found[0] == found[1]) == lowercase
