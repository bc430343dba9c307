#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `encore serve` on tiny folders of tests/data and asks it as clients do: every interface,
bits beside `encore embed`, and what is refused. What is wrong in HTTP is in check_faults.py.

    check_server.py --encore FILE --root DIR [unittest arguments]
"""

import base64
import json
import pathlib
import shutil
import subprocess

from running_server import PATIENCE, ServerTest, as_f32, main, some_texts


class InterfacesTest(ServerTest):
    # ---- Interfaces ------------------------------------------------------------------------------

    def test_status_pages(self):
        self.assertEqual(self.server.ask("/health")[0], 200)
        self.assertEqual(self.server.ask("/ready")[0], 200)
        status, answer = self.server.ask("/v1/models")
        self.assertEqual(status, 200)
        self.assertEqual([model["id"] for model in answer["data"]],
                         ["minilm", "rerank", "classify", "sparse"])
        self.assertEqual(self.server.ask("/v1/models/minilm")[1]["id"], "minilm")
        status, info = self.server.ask("/info")
        self.assertEqual((status, info["model_id"]), (200, "minilm"))
        self.assertEqual(len(info["models"]), 4)

    def test_head_is_get_without_its_body(self):
        connection = self.server.connect()
        for path, wanted in [("/health", 200), ("/v1/models", 200), ("/absent", 404),
                             ("/embed", 405), ("/ready", 200)]:
            lengths = []
            for method in "GET", "HEAD":  # on one connection: bytes too many would be seen
                connection.request(method, path)
                answer = connection.getresponse()
                body = answer.read()
                lengths.append(int(answer.headers["Content-Length"]))
                self.assertEqual((answer.status, len(body)),
                                 (wanted, lengths[0] if method == "GET" else 0), path)
            self.assertEqual(*lengths, path)
        connection.close()

    def test_metrics_are_prometheus_text(self):
        self.embeddings(input="the cat")
        status, text = self.server.ask("/metrics")
        self.assertEqual(status, 200)
        for line in text.splitlines():
            self.assertRegex(line, r'^(# (HELP|TYPE) \w+ .+|\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? '
                                   r"[0-9.e+-]+)$")
        self.assertRegex(text, r'encore_requests_total\{route="/v1/embeddings",code="200"\} \d+')
        self.assertIn("encore_queue_tokens 0\n", text)

    def test_openapi_has_all_paths(self):
        status, document = self.server.ask("/openapi.json")
        self.assertEqual(status, 200)
        for path, operations in document["paths"].items():
            if "$ref" in operations:
                other = operations["$ref"].removeprefix("#/paths/").replace("~1", "/")
                operations = document["paths"][other]
            for method in set(operations) & {"get", "post"}:
                path = path.replace("{model}", "minilm")
                body = "{}" if method == "post" else None
                self.assertIn(self.server.ask(path, body)[0], (200, 400), path)

    def test_embeddings_have_the_bits_of_encore_embed(self):
        texts = [*some_texts(40, 1), "", "\u00e9t\u00e9 \u4e2d\u6587 \U0001f600", "[SEP] x",
                 "a" * 500]
        wanted = self.vectors(texts)
        found, answer = self.embeddings(input=texts)
        self.assertEqual([as_f32(row) for row in found], wanted)
        lines = self.run_encore("tokenize", "--model", self.base, "--input", "-", texts=texts)
        longest = self.server.ask("/info")[1]["max_input_length"]
        tokens = sum(min(len(json.loads(line)), longest) for line in lines.splitlines())
        self.assertEqual(answer["usage"], {"prompt_tokens": tokens, "total_tokens": tokens})
        self.assertEqual((answer["object"], answer["model"]), ("list", "minilm"))
        found, _ = self.embeddings(input=texts, encoding_format="base64")
        self.assertEqual([base64.b64decode(row) for row in found], wanted)
        for text, row in zip(texts, wanted):
            self.assertEqual(as_f32(self.embeddings(input=text)[0][0]), row)
            found, _ = self.embeddings(input=text, encoding_format="base64")
            self.assertEqual(base64.b64decode(found[0]), row)

    def test_dimensions_and_ids(self):
        texts = some_texts(5, 2)
        wanted = self.vectors(texts, "--dimensions", 7)
        found, _ = self.embeddings(input=texts, dimensions=7)
        self.assertEqual([as_f32(row) for row in found], wanted)
        lines = self.run_encore("tokenize", "--model", self.base, "--input", "-", texts=texts)
        ids = [json.loads(line) for line in lines.splitlines()]
        self.assertEqual([as_f32(row) for row in self.embeddings(input=ids, dimensions=7)[0]],
                         wanted)
        found, answer = self.embeddings(input=ids[0], dimensions=7)
        self.assertEqual(as_f32(found[0]), wanted[0])
        self.assertEqual(answer["usage"]["prompt_tokens"], len(ids[0]))

    def test_tei_vectors(self):
        texts = some_texts(3, 3)
        wanted = self.vectors(texts, "--normalize")
        status, rows = self.server.ask("/embed", {"inputs": texts})
        self.assertEqual(status, 200)
        self.assertEqual([as_f32(row) for row in rows], wanted)
        self.assertEqual(self.server.ask("/embed", {"inputs": texts[0]})[1], rows[:1])
        self.assertEqual(self.server.ask("/", {"inputs": texts})[1], rows)
        status, lists = self.server.ask("/tokenize", {"inputs": texts})
        self.assertEqual(status, 200)
        status, tokens = self.server.ask("/embed_all", {"inputs": texts})
        self.assertEqual(status, 200)
        self.assertEqual(list(map(len, tokens)), list(map(len, lists)))
        sparse = pathlib.Path(self.folder.name) / "sparse.jsonl"
        self.run_encore("embed", "--model", self.root / "tests/data/heads/splade_bert", "--input",
                        "-", "--output", sparse, texts=texts)
        status, rows = self.server.ask("/embed_sparse", {"inputs": texts})
        self.assertEqual(status, 200)
        for row, line in zip(rows, sparse.read_text().splitlines(), strict=True):
            wanted = json.loads(line)
            self.assertEqual([entry["index"] for entry in row], wanted["indices"])
            self.assertEqual(as_f32([entry["value"] for entry in row]), as_f32(wanted["values"]))

    def test_tokenize_counts_characters(self):
        _, lists = self.server.ask("/tokenize", {"inputs": "\u00e9\u00e9 the cat"})
        cat = lists[0][-2]  # of "c", "at"
        self.assertEqual((cat["start"], cat["stop"], cat["text"]), (8, 10, "at"))
        self.assertTrue(lists[0][0]["special"] and lists[0][0]["start"] is None)
        _, bare = self.server.ask("/tokenize", {"inputs": "the cat", "add_special_tokens": False})
        self.assertFalse(any(token["special"] for token in bare[0]))

    def test_rerank(self):
        texts = some_texts(9, 4)
        lines = self.run_encore("rerank", "--model", self.root / "tests/data/text/reranker",
                                "--query", "the cat", "--input", "-", "--scores", texts=texts)
        wanted = [as_f32([float(line)]) for line in lines.splitlines()]
        status, found = self.server.ask("/rerank", {"query": "the cat", "texts": texts,
                                                    "return_text": True})
        self.assertEqual(status, 200)
        scores = [entry["score"] for entry in found]
        self.assertEqual(scores, sorted(scores, reverse=True))
        self.assertEqual(sorted(entry["index"] for entry in found), list(range(9)))
        for entry in found:
            self.assertEqual(as_f32([entry["score"]]), wanted[entry["index"]])
            self.assertEqual(entry["text"], texts[entry["index"]])
        _, raw = self.server.ask("/rerank", {"query": "the cat", "texts": texts,
                                             "raw_scores": True})
        self.assertNotEqual(raw[0]["score"], scores[0])
        for path in ("/v1/rerank", "/v2/rerank"):
            status, answer = self.server.ask(path, {
                "model": "rerank", "query": "the cat", "top_n": 3, "return_documents": True,
                "documents": [texts[0], *({"text": text} for text in texts[1:])]})
            self.assertEqual(status, 200)
            self.assertEqual([(entry["index"], entry["relevance_score"], entry["document"]["text"])
                              for entry in answer["results"]],
                             [(entry["index"], entry["score"], entry["text"])
                              for entry in found[:3]])

    def test_cohere_vectors(self):
        texts = some_texts(3, 9)
        wanted = self.vectors(texts)
        asked = {"model": "minilm", "texts": texts, "input_type": "search_query"}
        status, answer = self.server.ask("/v2/embed", asked)
        self.assertEqual((status, answer["texts"], list(answer["embeddings"])),
                         (200, texts, ["float"]))
        self.assertEqual([as_f32(row) for row in answer["embeddings"]["float"]], wanted)
        both = {**asked, "embedding_types": ["float", "base64"], "output_dimension": 7}
        for path in ("/v1/embed", "/v2/embed"):
            found = self.server.ask(path, both)[1]["embeddings"]
            self.assertEqual([as_f32(row) for row in found["float"]],
                             self.vectors(texts, "--dimensions", 7))
            self.assertEqual([base64.b64decode(row) for row in found["base64"]],
                             [as_f32(row) for row in found["float"]])
            self.assertEqual(list(map(len, found["base64"])), [40] * len(texts))
        found = self.server.ask("/v1/embed", asked)[1]["embeddings"]
        self.assertEqual([as_f32(row) for row in found], wanted)
        for members in ({"embedding_types": ["int8"]}, {"truncate": "START"}, {"texts": None},
                        {"embedding_types": 3}, {"output_dimension": 10 ** 6}):
            answer = self.refused("/v2/embed", {**asked, **members})
            self.assertEqual(answer["message"], answer["error"]["message"])
        long = {**asked, "texts": ["cat " * 500]}
        self.refused("/v2/embed", {**long, "truncate": "NONE"})
        self.assertEqual(self.server.ask("/v2/embed", {**long, "truncate": "END"})[0], 200)

    def test_prompts_of_input_types(self):
        folder = pathlib.Path(self.folder.name) / "prompts"
        shutil.copytree(self.base, folder)
        modules = [{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
                   {"idx": 1, "path": "pool", "type": "sentence_transformers.models.Pooling"}]
        (folder / "modules.json").write_text(json.dumps(modules))
        (folder / "pool").mkdir()
        (folder / "pool/config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
        (folder / "config_sentence_transformers.json").write_text(
            json.dumps({"prompts": {"query": "the cat ", "other": "mat "}}))
        texts = some_texts(3, 10)
        prompted = self.vectors(texts, "--prompt-name", "query", model=folder)
        plain = self.vectors(texts, model=folder)
        self.assertNotEqual(prompted, plain)
        with self.another("--model", folder) as server:
            for input_type, wanted in (("search_query", prompted), ("search_document", plain),
                                       ("clustering", plain), (None, plain)):
                _, answer = server.ask("/v2/embed", {"texts": texts, "input_type": input_type})
                self.assertEqual([as_f32(row) for row in answer["embeddings"]["float"]], wanted)

    def test_predict(self):
        texts = some_texts(3, 5)
        for text, single in ((text, self.server.ask("/predict", {"inputs": text, "model":
                                                                 "classify"})) for text in texts):
            self.assertEqual(single[0], 200)
            scores = [label["score"] for label in single[1]]
            self.assertEqual(scores, sorted(scores, reverse=True))
            status, many = self.server.ask("/predict", {"inputs": [[text]], "model": "classify"})
            self.assertEqual((status, many[0]), (200, single[1]))
        status, pair = self.server.ask("/predict", {"inputs": texts[:2], "model": "rerank"})
        self.assertEqual((status, len(pair)), (200, 1))

    # ---- What is refused -------------------------------------------------------------------------

    def test_bad_requests(self):
        path, good = "/v1/embeddings", {"model": "minilm", "input": "the cat"}
        for members in ({"input": 3}, {"input": []}, {"input": [3, "x"]}, {"input": ["x", 3]},
                        {"input": {}}, {"input": None}, {"input": [[]]}, {"input": [[10 ** 9]]},
                        {"input": [-1]}, {"dimensions": 0}, {"dimensions": -1},
                        {"dimensions": 10 ** 6}, {"dimensions": "7"}, {"encoding_format": "f32"},
                        {"encoding_format": 1}, {"model": 7}, {"input": [[1 << 40]]}):
            answer = self.refused(path, {**good, **members})
            self.assertEqual(answer["error"]["type"], "invalid_request_error")
        self.refused(path, {**good, "model": "nobody"}, 404)
        self.refused(path, {"input": "the cat"})
        self.refused(path, {"model": "minilm"})
        for body in ("", "{", "[1]", "nul", '{"model": "minilm", "input": "\\ud83d"}',
                     b'{"model": "minilm", "input": "\xff"}', "[" * 5000, '{"input": 1e999}'):
            self.refused(path, body)
        self.refused("/nowhere", None, 404)
        self.refused("/nowhere", "{}", 404)
        self.refused(path, None, 405)
        self.assertEqual(self.server.headers["Allow"], "POST")
        self.refused("/health", "{}", 405)
        self.refused(path, good, 403, Origin="http://example.com")
        self.refused(path, good, X_Encore_Deadline_Ms="soon")
        self.refused(path, {**good, "input": ["x"] * 3000}, 413)
        self.refused(path, {**good, "input": "x" * (2 << 20)}, 413)

    def test_errors_of_each_interface(self):
        self.assertEqual(self.refused("/embed", {"inputs": 1})["error_type"], "Validation")
        answer = self.refused("/v1/rerank", {"query": "x"})
        self.assertEqual(answer["message"], answer["error"]["message"])
        self.refused("/rerank", {"texts": ["x"]})
        self.refused("/rerank", {"query": "x", "texts": []})
        self.refused("/rerank", {"query": "x", "texts": ["y"], "model": "minilm"})
        self.refused("/predict", {"inputs": ["a", "b", "c"]})
        self.refused("/predict", {"inputs": [["a"], ["b", "c"]]})
        self.refused("/embed", {"inputs": "x", "truncation_direction": "Left"})
        self.refused("/embed", {"inputs": "cat " * 500, "truncate": False})
        self.refused("/embed", {"inputs": "x", "prompt_name": "nobody"})

    def test_errors_have_no_text_of_requests(self):
        secret = "sesame"
        for body in ('{"input": "' + secret, json.dumps({"model": secret, "input": [secret]}),
                     json.dumps({"model": "minilm", "input": [[secret]]}),
                     json.dumps({"model": "minilm", "input": "x", "encoding_format": secret})):
            _, answer = self.server.ask("/v1/embeddings", body)
            self.assertNotIn(secret, json.dumps(answer))
        self.server.ask("/v1/embeddings", {"model": "minilm", "input": secret})
        self.assertNotIn(secret, "".join(self.server.log))

    def test_bad_command_lines(self):
        for options, about in ((["--model", "/nowhere"], "/nowhere"),
                               (["--model", "=x"], "NAME=FOLDER"),
                               (["--model", self.base, "--model", self.base], "two models"),
                               (["--model", self.base, "--host", "nobody"], "--host"),
                               (["--model", self.base, "--api-key-file", "/nowhere"], "/nowhere"),
                               (["--model", self.base, "--port", self.server.port], "port")):
            done = subprocess.run([self.encore, "serve", *map(str, options)], text=True,
                                  capture_output=True, timeout=PATIENCE, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(about, done.stderr)


if __name__ == "__main__":
    main(InterfacesTest)
