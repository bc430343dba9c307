#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of examples/ on tiny folders of tests/data, on bad arguments and, where it was
fetched, on the real all-MiniLM-L6-v2.

    check_examples.py --programs DIR --root DIR
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import unittest

TEXTS = ["The cat sat on the mat", "A kitten is resting on the rug", "How do I renew my passport?"]


class Examples(unittest.TestCase):
    programs = root = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.documents = pathlib.Path(cls.folder.name) / "documents.txt"
        cls.documents.write_text("\n".join(TEXTS) + "\n")
        cls.base = cls.root / "tests/data/text/base"
        cls.real = cls.root / ".deps/models/all-MiniLM-L6-v2"

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_program(self, name, *arguments, texts=None, status=0):
        done = subprocess.run([self.programs / name, *map(str, arguments)], input=texts, text=True,
                              capture_output=True, timeout=120, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return (done.stdout if status == 0 else done.stderr).splitlines()

    def assert_refused(self, name, *arguments, about, status=1):
        lines = self.run_program(name, *arguments, texts="", status=status)
        self.assertEqual(len(lines), 1)
        self.assertIn(about, lines[0])

    def test_semantic_search_finds_the_text_itself(self):
        for i, text in enumerate(TEXTS):
            lines = self.run_program("semantic_search", self.base, self.documents, text)
            self.assertEqual(len(lines), 4)
            self.assertEqual(lines[0], "1.0000  " + TEXTS[i])
            scores = [float(line.split()[0]) for line in lines[:3]]
            self.assertEqual(scores, sorted(scores, reverse=True))
            self.assertRegex(lines[3], r"^3 documents in \d+\.\d+ ms$")
        self.assert_refused("semantic_search", "/nowhere", self.documents, "x", about="/nowhere")
        self.assert_refused("semantic_search", self.base, "/nowhere", "x", about="/nowhere",
                            status=2)
        self.assert_refused("semantic_search", about="usage", status=2)

    def test_semantic_search_finds_the_text_in_any_block(self):
        # The index has blocks of 1,024 documents, the last of which has fewer.
        documents = pathlib.Path(self.folder.name) / "blocks.txt"
        for i in (0, 249, 250, 1023, 1024, 2047, 2048, 2049):
            texts = ["on the mat"] * 2050
            texts[i] = TEXTS[1]
            documents.write_text("\n".join(texts) + "\n")
            lines = self.run_program("semantic_search", self.base, documents, TEXTS[1])
            self.assertEqual(lines[0], "1.0000  " + TEXTS[1])
            self.assertNotIn("1.0000", lines[1])
            self.assertRegex(lines[3], r"^2050 documents in \d+\.\d+ ms$")

    def test_latency_loop_gives_the_same_bits_on_any_threads(self):
        texts = "\n".join(TEXTS * 5) + "\n"
        outputs = []
        for threads in (1, 2, 5):
            lines = self.run_program("latency_loop", self.base, threads, texts=texts)
            self.assertEqual(len(lines), 16)
            self.assertRegex(lines[-1], r"^15 texts, median \d+\.\d+ ms, slowest \d+\.\d+ ms$")
            for i, line in enumerate(lines[:-1]):
                self.assertRegex(line, r"^-?\d\.\d{4} -?\d\.\d{4} \.\.\.  ")
                self.assertTrue(line.endswith(TEXTS[i % 3]))
            outputs.append(lines[:-1])
        self.assertEqual(outputs[0], outputs[1])
        self.assertEqual(outputs[0], outputs[2])
        self.assert_refused("latency_loop", "/nowhere", about="/nowhere")
        self.assert_refused("latency_loop", self.base, 0, about="found 0 threads", status=2)
        self.assert_refused("latency_loop", self.base, about="found no text", status=2)

    def test_reload_serves_on(self):
        texts = "\n".join(TEXTS) + "\n"
        cache = pathlib.Path(self.folder.name) / "cache"
        for arguments in ((), (cache,)):
            lines = self.run_program("reload", self.base, 0.5, *arguments, texts=texts)
            self.assertEqual([line.split()[0] for line in lines], ["alone", "reloading", "reloads"])
            for line in lines:
                self.assertRegex(line, r" \d+ calls   p50 +\d+\.\d+   p99 +\d+\.\d+   "
                                       r"max +\d+\.\d+ ms$")
            self.assertEqual([line.split()[1] for line in lines[:2]], ["30", "30"])
            self.assertGreater(int(lines[2].split()[1]), 0)
        self.assertTrue(list(cache.iterdir()))
        self.assert_refused("reload", "/nowhere", about="found no text", status=2)
        self.assert_refused("reload", self.base, 0, about="found 0 seconds", status=2)
        lines = self.run_program("reload", "/nowhere", texts=texts, status=1)
        self.assertIn("/nowhere", lines[0])

    def test_reranker_prints_the_best_first(self):
        folder = self.root / "tests/data/text/reranker"
        lines = self.run_program("reranker", folder, self.documents, "who sat?")
        self.assertEqual(sorted(line.split(maxsplit=1)[1] for line in lines), sorted(TEXTS))
        scores = [float(line.split()[0]) for line in lines]
        self.assertEqual(scores, sorted(scores, reverse=True))
        # A model without a head has no scores.
        self.assert_refused("reranker", self.base, self.documents, "x", about="head")

    def test_own_weights_reads_what_pytorch_saved(self):
        weights = self.root / "tests/data/golden/worked_example.weights.safetensors"
        lines = self.run_program("own_weights", weights)
        self.assertEqual([line.split(",")[0] for line in lines],
                         ["sequence 0: 3 tokens", "sequence 1: 5 tokens"])
        for line in lines:
            self.assertRegex(line, r", first element -?\d+\.\d{4}, mean -?\d+\.\d{4}$")
        self.assert_refused("own_weights", "/nowhere", about="/nowhere")

    def test_numa_nodes_give_the_same_bits_in_any_groups(self):
        texts = pathlib.Path(self.folder.name) / "many.txt"
        texts.write_text("".join(f"{text} {i}\n" for i in range(300) for text in TEXTS))
        outputs = [self.run_program("numa_nodes", self.base, texts, *cores)
                   for cores in ((), (1,), (2,))]
        self.assertEqual(len(outputs[0]), 900)
        self.assertTrue(outputs[0][1].endswith(TEXTS[1] + " 0"))
        self.assertEqual(outputs[0], outputs[1])
        self.assertEqual(outputs[0], outputs[2])
        self.assert_refused("numa_nodes", "/nowhere", texts, about="/nowhere")
        self.assert_refused("numa_nodes", self.base, texts, 0, about="found 0 cores", status=2)
        self.assert_refused("numa_nodes", self.base, "/nowhere", about="found no text", status=2)

    def test_text_to_vectors_prints_the_cosine(self):
        self.assertEqual(self.run_program("text_to_vectors", self.base, TEXTS[0], TEXTS[0]),
                         ["1.0000"])
        lines = self.run_program("text_to_vectors", self.base, TEXTS[0], TEXTS[1])
        self.assertRegex(lines[0], r"^-?[01]\.\d{4}$")
        self.assert_refused("text_to_vectors", "/nowhere", "a", "b", about="/nowhere")

    def test_the_real_model(self):
        if not self.real.is_dir():
            self.skipTest("all-MiniLM-L6-v2 was not fetched (tools/fetch_model.sh)")
        self.assertEqual(self.run_program("text_to_vectors", self.real, TEXTS[0], TEXTS[1]),
                         ["0.6030"])
        lines = self.run_program("semantic_search", self.real, self.documents, "a sleeping cat")
        self.assertTrue(lines[0].endswith(TEXTS[1]) or lines[0].endswith(TEXTS[0]))
        self.assertTrue(lines[2].endswith(TEXTS[2]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    args, rest = parser.parse_known_args()
    Examples.programs, Examples.root = args.programs, args.root
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
