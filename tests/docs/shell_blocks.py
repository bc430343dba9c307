# SPDX-License-Identifier: Apache-2.0
#
# Tries the shell commands of pages. Those of `encore` that take a moment are run, in a folder that
# has tiny files by the names that pages use; of all others the command, its subcommand and its
# options must exist. What is installed, built or downloaded is not tried.

import base64
import gzip
import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile

# Subcommands that are run. The others measure for minutes.
RUN = {"attend", "calibrate", "classify", "convert", "demo", "embed", "info", "label", "rerank",
       "run", "tokenize"}
# Commands of the system, and of the environment that tools/python_env.sh makes.
SYSTEM = {"apt-get", "c++", "cc", "cd", "cmake", "conan", "cp", "ctest", "dpkg-buildpackage",
          "export", "git", "ninja", "node", "pip", "python3", "taskset", "vcpkg", "zcat"}
PYTHON, PIP = ".deps/venv/bin/python", ".deps/venv/bin/pip"
# Where programs lie whose options are looked for.
PROGRAMS = ("tools/", ".ci/", "bench/", "tests/", "build/release/bench/")
ENCORE = {"encore", "build/release/bin/encore"}


def commands(block):
    """The commands of a block with the number of their line; comments and continued lines apart."""
    number, rest = block.line, ""
    for offset, line in enumerate(block.lines, start=1):
        if not rest:
            number = block.line + offset
        rest += line
        if rest.endswith("\\"):
            rest = rest[:-1]
            continue
        lexer = shlex.shlex(rest, posix=True, punctuation_chars="|&;")
        lexer.whitespace_split = True
        command = []
        for word in [*lexer, "&&"]:
            if re.fullmatch(r"[|&;]+", word):
                if command:
                    yield number, rest, command
                command = []
            else:
                command.append(word)
        rest = ""


def long_options(words):
    return [word.partition("=")[0] for word in words if word.startswith("--") and len(word) > 2]


def make_files(folder, root):
    """The files that pages speak of, as small as they can be."""
    data = root / "tests/data"
    models = folder / ".deps/models"
    models.mkdir(parents=True)
    (folder / "build").mkdir()
    for place in (models / "all-MiniLM-L6-v2", folder / "FOLDER"):
        place.symlink_to(data / "text/base")
    (folder / "RERANKER").symlink_to(data / "text/reranker")
    (folder / "CLASSIFIER").symlink_to(data / "text/classifier")
    (folder / "NER_MODEL").symlink_to(data / "heads/ner_bert")
    (folder / "CLIP_MODEL").symlink_to(data / "vision/clip")
    (folder / "photos").mkdir()
    files = dict(json.loads((data / "images/files.json").read_text()))
    (folder / "photos/a.png").write_bytes(base64.b64decode(files["rgb.png"][0]))
    (folder / "paths.txt").write_text("photos/a.png\n")
    texts = "The cat sat on the mat\nA kitten is resting on the rug\n"
    (folder / "texts.txt").write_text(texts)
    (folder / "documents.txt").write_text(texts)
    with gzip.open(folder / "texts.gz", "wt") as file:
        file.write(texts)
    (folder / "w.safetensors").symlink_to(data / "golden/worked_example.weights.safetensors")
    (folder / "x.safetensors").symlink_to(data / "golden/worked_example.input.safetensors")


class Shell:
    def __init__(self, root, encore):
        self.root, self.encore = root, encore.resolve()
        self.helps = {}

    def help(self, subcommand):
        if subcommand not in self.helps:
            done = subprocess.run([self.encore, *subcommand, "--help"], text=True,
                                  capture_output=True, check=False)
            self.helps[subcommand] = done.stdout if done.returncode == 0 else None
        return self.helps[subcommand]

    def run(self, line, folder):
        environment = dict(os.environ, PATH=f"{self.encore.parent}:{os.environ['PATH']}")
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", line], cwd=folder, text=True,
                              env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=120, check=False)
        return None if done.returncode == 0 else done.stderr.strip()[-500:]

    def sources(self, path):
        """The text in which a program's options stand; empty if it is not there."""
        files = [path]
        if path.suffix == ".py" and path.exists():  # and what it shares with others
            files = [path, *path.parent.glob("*.py")]
        # Of build/: its source, and what benchmarks share.
        if path.parent.name == "bench" and path.suffix != ".py":
            source = self.root / "bench" / f"{path.name}.cc"
            files = [source, self.root / "bench/common.cc"] if source.exists() else []
        return "\n".join(file.read_text() for file in files if file.exists())

    def check_command(self, words):
        """Yields what is wrong with one command."""
        name = words[0]
        if name in ENCORE:
            subcommand = tuple(word for word in words[1:2] if re.fullmatch(r"[a-z]+", word))
            text = self.help(subcommand)
            if text is None and subcommand == ("serve",):
                return  # built without Boost
            if text is None:
                yield f"`encore {' '.join(subcommand)}`: there is no such command"
                return
            for option in long_options(words[1:]):
                if not re.search(rf"(?<![\w-]){option}(?![\w-])", text):
                    yield f"`encore {' '.join(subcommand)}` has no option {option}"
        elif words[:3] == ["python", "-m", "pyencore.lab"]:  # test_lab_command.py runs them
            source = (self.root / "python/pyencore/lab/__main__.py").read_text()
            own = words[:words.index("--")] if "--" in words else words
            if f'add("{words[3]}"' not in source:
                yield f"pyencore.lab has no command {words[3]}"
            for option in long_options(own):
                if f'"{option}"' not in source:
                    yield f"pyencore.lab {words[3]} has no option {option}"
        elif name in ("python", PYTHON) and len(words) > 1:
            yield from self.check_command(words[1:])
        elif words[:2] == ["chrt", "-f"] and len(words) > 3:
            yield from self.check_command(words[3:])
        elif name.startswith(PROGRAMS):
            text = self.sources(self.root / name)
            if not text:
                yield f"{name} is not there"
                return
            for option in long_options(words[1:]):
                if option.startswith("--benchmark_"):  # Google Benchmark's
                    continue
                if not re.search(rf"{option}(?![\w-])|\"{option.strip('-')}\"", text):
                    yield f"{name} has no option {option}"
            for option in re.findall(r"-D(ENCORE_\w+)", " ".join(words)):
                if option not in (self.root / "CMakeLists.txt").read_text():
                    yield f"there is no option {option}"
        elif name not in {*SYSTEM, PIP} and not name.startswith("build/"):
            yield f"nothing tries the command {name}"


def check(blocks, root, encore):
    """Yields what is wrong with the shell blocks of one page."""
    shell = Shell(root, encore)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        make_files(folder, root)
        ran = set()
        for block in blocks:
            for number, line, words in commands(block):
                wrong = list(shell.check_command(words))
                yield from (f"{block.page}:{number}: {sentence}" for sentence in wrong)
                if wrong or words[0] != "encore" or words[1:2][0] not in RUN or line in ran:
                    continue
                ran.add(line)
                if error := shell.run(line, folder):
                    yield f"{block.page}:{number}: `{line.strip()}` failed: {error}"
