# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of the shapes that text encoders are published in, with small vocabularies that are
trained here: each is the parts of one or several models' tokenizer.json.

Holds the shapes other than BERT's, which are in folders.py.
"""
import importlib.util
import json
import pathlib
import random
import re

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers
from tokenizers import processors, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+"
          r"[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
MARK = "\u2581"
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
XLM_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def charsmap():
    """sentencepiece's nmt_nfkc, from its wheel; None where that is not installed."""
    spec = importlib.util.find_spec("sentencepiece")
    if spec is None:
        return None
    path = pathlib.Path(spec.origin).parent / "package_data" / "nmt_nfkc.bin"
    return path.read_bytes() if path.is_file() else None


def with_roberta_template(tokenizer, cls="<s>", sep="</s>", **flags):
    tokenizer.post_processor = processors.RobertaProcessing(
        (sep, tokenizer.token_to_id(sep)), (cls, tokenizer.token_to_id(cls)), **flags)
    return tokenizer


def with_template(tokenizer, single, pair, *special, before=None):
    """before: a processor that runs first."""
    template = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=[(t, tokenizer.token_to_id(t)) for t in special])
    tokenizer.post_processor = processors.Sequence([before, template]) if before else template
    return tokenizer


def bpe(size, special, texts, pre, normalizer=None, alphabet=True, **model):
    """A byte-pair encoding trained behind these parts."""
    tokenizer = Tokenizer(models.BPE(**model))
    tokenizer.pre_tokenizer = pre
    if normalizer:
        tokenizer.normalizer = normalizer
    letters = pre_tokenizers.ByteLevel.alphabet() if alphabet else []
    tokenizer.train_from_iterator(texts(), trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=sorted(letters),
        show_progress=False, limit_alphabet=800))
    return tokenizer


def byte_level(**options):
    return pre_tokenizers.ByteLevel(**{"add_prefix_space": False, "trim_offsets": True, **options})


def split_then_bytes(regex, behavior="isolated", invert=False):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(regex), behavior, invert), byte_level(use_regex=False)])


def roberta(texts, size):
    tokenizer = bpe(size, XLM_SPECIAL, texts, byte_level())
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    return with_roberta_template(tokenizer, add_prefix_space=False)


def roberta_prefix(texts, size):
    return with_roberta_template(bpe(size, XLM_SPECIAL, texts, byte_level(add_prefix_space=True)))


def modernbert(texts, size):
    special = ["[UNK]", "[CLS]", "[SEP]", "[PAD]"]
    tokenizer = bpe(size, special, texts, byte_level(), normalizers.NFC())
    tokenizer.add_tokens([AddedToken(" " * n, normalized=True) for n in range(24, 1, -1)])
    tokenizer.add_tokens([AddedToken("|||IP_ADDRESS|||", normalized=True)])
    tokenizer.add_special_tokens([AddedToken("[MASK]", lstrip=True, special=True)])
    return with_template(tokenizer, "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1",
                         "[CLS]", "[SEP]")


def llama3(texts, size):
    tokenizer = bpe(size, [], texts, split_then_bytes(LLAMA3), ignore_merges=True)
    tokenizer.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>", "<|mask|>"])
    return with_template(
        tokenizer, "<|begin_of_text|> $A", "<|begin_of_text|> $A <|begin_of_text|>:1 $B:1",
        "<|begin_of_text|>", before=processors.ByteLevel(trim_offsets=True, add_prefix_space=False))


def qwen(texts, size):
    tokenizer = bpe(size, [], texts, split_then_bytes(QWEN2), normalizers.NFC())
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens([AddedToken("<think>", normalized=False)])
    return with_template(
        tokenizer, "$A <|endoftext|>", "$A $B:1 <|endoftext|>:1", "<|endoftext|>",
        before=processors.ByteLevel(trim_offsets=False, add_prefix_space=False))


def clip(texts, size):
    normalizer = normalizers.Sequence([
        normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    pre = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(CLIP), "removed", invert=True), byte_level(use_regex=True)])
    special = ["<|startoftext|>", "<|endoftext|>"]
    tree = json.loads(bpe(size // 2, special, texts, pre, normalizer,
                          unk_token="<|endoftext|>").to_str())
    # Every token inside a word and at its end: training with a suffix differs from run to run.
    model = tree["model"]
    ends = [token + "</w>" for token in model["vocab"] if token not in special]
    model["vocab"].update({token: len(model["vocab"]) + i for i, token in enumerate(ends)})
    model["merges"] = [merge for left, right in model["merges"]
                       for merge in ([left, right], [left, right + "</w>"])]
    model["end_of_word_suffix"], model["continuing_subword_prefix"] = "</w>", ""
    tokenizer = Tokenizer.from_str(json.dumps(tree))
    return with_roberta_template(tokenizer, *special, add_prefix_space=False)


def marked_bpe(size, special, texts, scheme):
    """Spaces are marks, and bytes stand for what is unknown. Trained by words, so that no merge
    crosses a mark, and used without them."""
    tokenizer = bpe(size, [*special, *BYTES], texts,
                    pre_tokenizers.Metaspace(prepend_scheme=scheme), alphabet=False,
                    unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    tokenizer.pre_tokenizer = None
    tree = json.loads(tokenizer.to_str())
    tree["added_tokens"] = tree["added_tokens"][:len(special)]
    return Tokenizer.from_str(json.dumps(tree))


def gemma(texts, size):
    """Gemma 2's and 3's: a text is one word."""
    tokenizer = marked_bpe(size, ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"], texts, "never")
    tokenizer.normalizer = normalizers.Replace(" ", MARK)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.add_tokens([AddedToken("\n" * n, normalized=False) for n in range(1, 6)])
    tokenizer.add_tokens([AddedToken(MARK * n, normalized=False) for n in range(2, 6)])
    return with_template(tokenizer, "<bos> $A <eos>", "<bos> $A <eos> <bos>:1 $B:1 <eos>:1",
                         "<bos>", "<eos>")


def sentence_piece(tree, characters=b"", add_dummy_prefix=True):
    """The model file of a Unigram tokenizer.json's vocabulary, as sentencepiece writes it: added
    tokens are control symbols. characters: a map of them."""
    from transformers.convert_slow_tokenizer import import_protobuf
    proto = import_protobuf().ModelProto()
    special = {token["content"] for token in tree["added_tokens"]}
    unknown = tree["model"]["unk_id"]
    for i, (piece, score) in enumerate(tree["model"]["vocab"]):
        kind = 2 if i == unknown else 3 if piece in special else 1
        piece = piece.replace("\0", f"\ue000{i}")  # sentencepiece takes no other
        proto.pieces.add(piece=piece, score=score, type=kind)
    proto.trainer_spec.unk_id = unknown
    proto.trainer_spec.unk_piece = tree["model"]["vocab"][unknown][0]
    proto.normalizer_spec.name = "nmt_nfkc"
    proto.normalizer_spec.precompiled_charsmap = characters
    proto.normalizer_spec.add_dummy_prefix = add_dummy_prefix
    return proto.SerializeToString()


def siglip(texts, size):
    """SigLIP 1's file, of small letters without punctuation. Its map has strings that begin
    others, one that grows, and one that goes."""
    import charsmap as maps
    letters = re.compile(r"[^\w\s]")
    tokenizer = t5(lambda: (letters.sub("", line.lower()) for line in texts()), size)
    return sentence_piece(json.loads(tokenizer.to_str()), maps.make({
        "\u00a0": " ", "\uff54": "t", "\uff25": "e", "\ufb01": "fi", "e": "e", "e\u0301": "\u00e9",
        "\u00bd": "1/2", "\u200d": "", "\u3000": " ", "\u2026": " . "}))


def siglip2(texts, size):
    """SigLIP 2's: Gemma's with another template."""
    return with_template(gemma(texts, size), "$A <eos>", "$A <eos> $B:1 <eos>:1", "<eos>")


def llama2(texts, size):
    """Llama 2's and Mistral's of old, with a mark put in front by the normalizer."""
    special = ["<unk>", AddedToken("<s>", normalized=True), "</s>"]
    tokenizer = marked_bpe(size, special, texts, "first")
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])
    return with_template(tokenizer, "<s> $A", "<s> $A <s>:1 $B:1", "<s>")


def mistral(texts, size):
    """The same as today's files spell it: Metaspace in front of the text alone."""
    tokenizer = llama2(texts, size)
    tokenizer.normalizer = None
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    return tokenizer


def bpe_without_bytes(texts, size):
    """Characters, unknown ones left out; prefix of what continues; merges as strings of old."""
    tokenizer = bpe(size, [], texts, pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.Punctuation("contiguous")]), alphabet=False)
    tree = json.loads(tokenizer.to_str())
    tree["model"]["merges"] = [" ".join(merge) for merge in tree["model"]["merges"]]
    del tree["model"]["type"]
    return Tokenizer.from_str(json.dumps(tree))


def gpt2(texts, size):
    """With its expression written out, and no template."""
    tokenizer = bpe(size, ["<|endoftext|>"], texts, split_then_bytes(GPT2))
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True, add_prefix_space=True)
    return tokenizer


def splits(texts, size):
    """Split in its other ways, and the steps that need no space."""
    def split(pattern, behavior, invert=False):
        return pre_tokenizers.Split(pattern, behavior, invert)

    return bpe(size, ["<unk>"], texts, pre_tokenizers.Sequence([
        split(Regex(r"[\r\n]"), "contiguous"), split(Regex(r"\p{N}{1,3}"), "isolated"),
        split("-", "merged_with_next"), split(Regex(r"\s"), "merged_with_previous"),
        split("the", "removed"), pre_tokenizers.Punctuation("merged_with_next"),
        split(Regex(r"\p{N}"), "removed", True), pre_tokenizers.Digits()]),
        normalizers.Sequence([normalizers.Strip(), normalizers.NFKC(),
                              normalizers.Replace("ll", "l"), normalizers.StripAccents()]),
        alphabet=False, unk_token="<unk>")


def mpnet(texts, size):
    """BERT's parts, and RoBERTa's template and special tokens."""
    special = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"]
    pre, normalizer = pre_tokenizers.BertPreTokenizer(), normalizers.BertNormalizer()
    pieces = [piece for piece, _ in drawn_pieces(size // 2, texts, pre, normalizer)]
    tokens = dict.fromkeys(special + pieces + ["##" + piece for piece in pieces])
    tokenizer = Tokenizer(models.WordPiece({token: i for i, token in enumerate(tokens)},
                                           unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre
    tokenizer.add_special_tokens(special)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    return with_roberta_template(tokenizer, add_prefix_space=False)


def drawn_pieces(size, texts, pre, normalizer):
    """A vocabulary that is the same every time, which a trained one is not: characters and starts
    of words with made-up scores."""
    draw, normalize = random.Random(size), normalizer.normalize_str if normalizer else str
    words = sorted({word for text in texts() for word, _ in pre.pre_tokenize_str(normalize(text))})
    pieces = dict.fromkeys(c for word in words for c in word if draw.random() < 0.9)
    while len(pieces) < size:
        word = draw.choice(words)
        begin = draw.randrange(len(word))
        pieces[word[begin:begin + draw.randrange(2, 7)]] = None
    return [(piece, -draw.randrange(4 << 20, 16 << 20) / (1 << 20)) for piece in pieces]


def unigram(size, texts, pre, normalizer, special, unknown="<unk>"):
    """Trained, or drawn where it is small."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre
    if normalizer:
        tokenizer.normalizer = normalizer
    if size >= 1000:
        tokenizer.train_from_iterator(texts(), trainers.UnigramTrainer(
            vocab_size=size, special_tokens=special, unk_token=unknown, show_progress=False,
            max_piece_length=12))
    else:
        tokenizer.model = models.Unigram(
            [(token, 0.0) for token in special] + drawn_pieces(size, texts, pre, normalizer),
            unk_id=special.index(unknown))
        tokenizer.add_special_tokens(special)
    return tokenizer


def nmt(*more):
    """Precompiled and what stands behind it."""
    parts = ([normalizers.Precompiled(charsmap())] if charsmap() else [normalizers.NFKC()])
    return normalizers.Sequence([*parts, *more])


TWO_SPACES = normalizers.Replace(Regex(" {2,}"), " ")


def xlm_roberta(texts, size):
    pre = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(),
                                   pre_tokenizers.Metaspace(prepend_scheme="always")])
    tokenizer = unigram(size, texts, pre, nmt(), XLM_SPECIAL)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    return with_template(tokenizer, "<s> $A </s>", "<s> $A </s> </s> $B </s>", "<s>", "</s>")


def bge_m3(texts, size):
    tokenizer = unigram(size, texts, pre_tokenizers.Metaspace(prepend_scheme="always"),
                        nmt(TWO_SPACES), XLM_SPECIAL)
    return with_roberta_template(tokenizer, trim_offsets=True)


def deberta(texts, size):
    special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    tokenizer = unigram(size, texts, pre_tokenizers.Metaspace(prepend_scheme="always"),
                        nmt(TWO_SPACES), special, "[UNK]")
    tokenizer.add_special_tokens(["[MASK]"])
    return with_template(tokenizer, "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", "[CLS]",
                         "[SEP]")


def t5(texts, size):
    special = ["<pad>", "</s>", "<unk>"]
    extra = [f"<extra_id_{n}>" for n in range(9, -1, -1)]
    strip = normalizers.Strip(left=False, right=True)
    tokenizer = unigram(size, texts, pre_tokenizers.Metaspace(prepend_scheme="always"),
                        nmt(strip, normalizers.Replace(Regex(" {2,}"), MARK)), special + extra)
    return with_template(tokenizer, "$A </s>", "$A </s> $B </s>", "</s>")


def camembert(texts, size):
    """With the switch that Metaspace had before, and byte fallback."""
    tokenizer = unigram(size, texts, pre_tokenizers.Metaspace(prepend_scheme="never"),
                        nmt(normalizers.Lowercase(), normalizers.NFD(), normalizers.StripAccents()),
                        XLM_SPECIAL)
    tree = json.loads(tokenizer.to_str())
    tree["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
        {"type": "WhitespaceSplit"},
        {"type": "Metaspace", "replacement": MARK, "add_prefix_space": True}]}
    tree["model"]["vocab"] += [[token, -20.5 - i] for i, token in enumerate(BYTES)]
    tree["model"]["byte_fallback"] = True
    return with_roberta_template(Tokenizer.from_str(json.dumps(tree)))


def unigram_bare(texts, size):
    """No words: a text is one, and what is unknown is fused."""
    tokenizer = unigram(size, texts, pre_tokenizers.Metaspace(prepend_scheme="first"), None,
                        ["<unk>"])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.NFC()])
    return Tokenizer.from_str(tokenizer.to_str())  # reading rounds the scores


SHAPES = {  # name: what makes it, size of its vocabulary
    "RoBERTa": (roberta, 3000),
    "RoBERTa, space in front": (roberta_prefix, 2500),
    "ModernBERT": (modernbert, 3000),
    "Llama 3": (llama3, 3500),
    "Qwen": (qwen, 3500),
    "CLIP": (clip, 3000),
    "Gemma": (gemma, 3500),
    "Llama 2": (llama2, 2500),
    "Mistral": (mistral, 2500),
    "BPE without bytes": (bpe_without_bytes, 2000),
    "XLM-R": (xlm_roberta, 3000),
    "bge-m3": (bge_m3, 2500),
    "T5": (t5, 2500),
    "CamemBERT": (camembert, 2000),
    "Unigram, bare": (unigram_bare, 1500),
    "GPT-2": (gpt2, 2000),
    "Splits": (splits, 2000),
    "MPNet": (mpnet, 4000),
}
