# SPDX-License-Identifier: Apache-2.0
"""Asks encore and Hugging Face's tokenizers for the ids of the same texts, and compares.

Holds one job: some texts, one folder, one maximum length; it runs in a process of its own. Which
jobs there are is in jobs.py.
"""
import json
import os
import subprocess
from dataclasses import dataclass, field

KEPT = 5  # differences of a job that are shown
# Texts that Hugging Face's tokenizers gets at once. Of a text that is cut it keeps all the rest, in
# pieces of the same length, of pairs in all combinations: 10000 such texts took 13 GB.
BATCH = 200


@dataclass
class Outcome:
    group: str  # what the counts are added up for
    texts: int = 0
    tokens: int = 0
    differences: int = 0
    shown: list = field(default_factory=list)
    notes: dict = field(default_factory=dict)  # other counts, by what is counted

    def note(self, what, count):
        if count:
            self.notes[what] = self.notes.get(what, 0) + count

    def add(self, other):
        self.texts += other.texts
        self.tokens += other.tokens
        self.differences += other.differences
        self.shown = (self.shown + other.shown)[:KEPT]
        for what, count in other.notes.items():
            self.note(what, count)


def input_lines(texts, escaped):
    """JSON lines as `encore tokenize` reads them: a string, or an object for a pair."""
    encode = json.JSONEncoder(ensure_ascii=escaped).encode
    return "".join(
        (encode(t) if isinstance(t, str) else encode({"text": t[0], "pair": t[1]})) + "\n"
        for t in texts).encode()


@dataclass(frozen=True)
class Settings:
    max_length: int = 0  # 0: no limit
    plain: bool = False  # special tokens in texts are ordinary text
    escaped: bool = False  # JSON lines in ASCII


def encore_says(encore, path, texts, settings, details=""):
    """A list a text: its ids, or with `details` (an option of `encore tokenize`) the lists that
    this adds. A sentence where encore fails."""
    command = [*encore, "tokenize", "--model", str(path), "--jsonl", "--input", "-",
               "--max-length", str(settings.max_length)]
    command += ["--plain-text"] * settings.plain + [details] * bool(details)
    done = subprocess.run(command, input=input_lines(texts, settings.escaped), capture_output=True)
    if done.returncode != 0:
        sentence = done.stderr.decode(errors="replace").strip()
        return f"encore ended with {done.returncode}: {sentence[:500]}"
    found = json.loads(b"[" + b",".join(done.stdout.splitlines()) + b"]")
    if len(found) != len(texts):
        return f"encore wrote {len(found)} lines for {len(texts)} texts"
    return [list(one.values()) for one in found] if details else found


def is_refusal(sentence):
    """Whether encore does not take the folder at all."""
    return "--model: " in sentence


def ids_of_reference(tokenizer, texts, settings):
    tokenizer.encode_special_tokens = settings.plain
    if settings.max_length:
        tokenizer.enable_truncation(settings.max_length)
    else:
        tokenizer.no_truncation()
    found = []
    for begin in range(0, len(texts), BATCH):
        found += [e.ids for e in tokenizer.encode_batch(texts[begin:begin + BATCH])]
    return found


def compare(encore, folder, tokenizer, texts, settings, group):
    """Runs both over the texts."""
    outcome = Outcome(group, texts=len(texts))
    got = encore_says(encore, folder.path, texts, settings)
    want = ids_of_reference(tokenizer, texts, settings)
    outcome.tokens = sum(map(len, want))
    if isinstance(got, str):
        outcome.differences = len(texts)
        outcome.shown.append(f"{folder.name}: {got}")
        return outcome
    if got == want:
        return outcome
    wrong = [i for i in range(len(texts)) if got[i] != want[i]]
    outcome.differences = len(wrong)
    for i in sorted(wrong, key=lambda i: len(str(texts[i])))[:KEPT]:
        how = ((f", max length {settings.max_length}" if settings.max_length else "") +
               (", plain" if settings.plain else ""))
        outcome.shown.append(f"{folder.name}{how}: {ascii(texts[i])}\n"
                             f"    encore     {got[i]}\n    tokenizers {want[i]}\n"
                             f"               {ascii([tokenizer.id_to_token(t) for t in want[i]])}")
    return outcome


def begin_worker():
    """At the begin of a worker, whose errors come back as exceptions. What else it would write are
    the panics of `tokenizers`, which are counted."""
    be_quiet()
    os.environ["RUST_BACKTRACE"] = "0"
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def be_quiet():
    """No threads inside a process."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
