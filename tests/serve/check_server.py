#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `encore serve` on tiny folders of tests/data and asks it as clients do: every interface,
bits beside `encore embed`, bad requests, clients that vanish or are slow, many at once, SIGTERM.

    check_server.py --encore FILE --root DIR [unittest arguments]
"""

import argparse
import base64
import concurrent.futures
import contextlib
import http.client
import json
import pathlib
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from running_server import PATIENCE, Server, answer_of, as_f32, read_npy, some_texts


class ServerTest(unittest.TestCase):
    encore = root = None
    rounds = 4  # of SIGTERM

    @classmethod
    def setUpClass(cls):
        data = cls.root / "tests/data"
        cls.base = data / "text/base"
        cls.models = ["--model", f"minilm={cls.base}", "--model", f"rerank={data}/text/reranker",
                      "--model", f"classify={data}/text/classifier",
                      "--model", f"sparse={data}/heads/splade_bert"]
        cls.folder = tempfile.TemporaryDirectory()
        cls.server = Server(cls.encore, *cls.models)

    @classmethod
    def tearDownClass(cls):
        status = cls.server.end()
        cls.folder.cleanup()
        assert status == 0, status

    def run_encore(self, *arguments, texts=()):
        done = subprocess.run([self.encore, *map(str, arguments)], input="\n".join([*texts, ""]),
                              capture_output=True, text=True, check=True, timeout=PATIENCE)
        return done.stdout

    def vectors(self, texts, *options):
        output = pathlib.Path(self.folder.name) / "vectors.npy"
        self.run_encore("embed", "--model", self.base, "--input", "-", "--output", output, *options,
                        texts=texts)
        return read_npy(output)

    def embeddings(self, **members):
        status, answer = self.server.ask("/v1/embeddings", {"model": "minilm", **members})
        self.assertEqual(status, 200, answer)
        self.assertEqual([entry["index"] for entry in answer["data"]],
                         list(range(len(answer["data"]))))
        return [entry["embedding"] for entry in answer["data"]], answer

    def refused(self, path, body, status=400, method=None, **headers):
        found, answer = self.server.ask(path, body, method, **headers)
        self.assertEqual(found, status, answer)
        self.assertTrue(answer["error"])
        return answer

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

    # ---- HTTP ------------------------------------------------------------------------------------

    def test_connections_are_kept_and_requests_may_be_pipelined(self):
        connection = self.server.connect()
        for _ in range(3):
            self.assertEqual(self.server.ask("/health", connection=connection)[0], 200)
            self.refused_on(connection)
        connection.close()
        body = json.dumps({"model": "minilm", "input": "the cat"})
        one = (f"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
               f"{body}")
        last = one.replace("Host: x", "Host: x\r\nConnection: close")
        text = answer_of(self.server.raw((one * 4 + last).encode()))
        self.assertEqual(text.count("HTTP/1.1 200 OK"), 5)

    def refused_on(self, connection):
        status, _ = self.server.ask("/v1/embeddings", "{", connection=connection)
        self.assertEqual(status, 400)

    def test_chunks_and_continue(self):
        body = json.dumps({"model": "minilm", "input": "the cat"}).encode()
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece)
                          for piece in (body[:5], body[5:], b""))
        head = b"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        text = answer_of(self.server.raw(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks))
        self.assertTrue(text.startswith("HTTP/1.1 200"), text)
        connection = self.server.raw(head + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n"
                                     % len(body))
        self.assertTrue(connection.recv(100).startswith(b"HTTP/1.1 100 Continue"))
        connection.sendall(body)
        self.assertTrue(answer_of(connection).startswith("HTTP/1.1 200"))

    def test_no_http(self):
        head = b"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\n"
        for data, status in ((b"hello\r\n\r\n", 400), (head + b"Content-Length: x\r\n\r\n", 400),
                             (head + b"Content-Length: 100000000\r\n\r\n", 413),
                             (head + b"X: " + b"y" * 100000 + b"\r\n\r\n", 431),
                             (head + b"X: y\r\n" * 100000, 431)):
            connection = socket.create_connection(("127.0.0.1", self.server.port), PATIENCE)
            with contextlib.suppress(ConnectionError):
                connection.sendall(data)
            self.assertTrue(answer_of(connection).startswith(f"HTTP/1.1 {status}"), status)
        self.assertEqual(self.server.ask("/health")[0], 200)

    def test_a_body_that_is_too_large_has_an_answer(self):
        status, _ = self.server.ask("/v1/embeddings", "x" * (9 << 20))
        self.assertEqual(status, 413)

    # ---- Many at once ----------------------------------------------------------------------------

    def test_bits_under_load_while_clients_vanish(self):
        texts = some_texts(64, 6)
        wanted = self.vectors(texts)

        def client(number):
            draw = random.Random(number)
            connection = self.server.connect()
            for _ in range(60):
                chosen = [draw.randrange(len(texts)) for _ in range(draw.choice((1, 1, 1, 5, 32)))]
                status, answer = self.server.ask(
                    "/v1/embeddings", {"model": "minilm", "input": [texts[i] for i in chosen]},
                    connection=connection)
                if status != 200:
                    return f"status {status}: {answer}"
                for i, entry in zip(chosen, answer["data"], strict=True):
                    if as_f32(entry["embedding"]) != wanted[i]:
                        return f"other bits of text {i}"
            connection.close()
            return ""

        def vanish(number):
            body = json.dumps({"model": "minilm", "input": some_texts(500, number)})
            head = f"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            data = (head + body).encode()
            connection = self.server.raw(data[:len(data) if number % 2 else len(data) // 2])
            time.sleep(0.002 * (number % 7))
            if number % 3 == 0:  # a reset rather than an end
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
            return ""

        with concurrent.futures.ThreadPoolExecutor(46) as pool:
            done = [*pool.map(client, range(16)), *pool.map(vanish, range(30))]
        self.assertEqual(set(done), {""})
        deadline = time.monotonic() + PATIENCE
        while "encore_queue_tokens 0\n" not in self.server.ask("/metrics")[1]:
            self.assertLess(time.monotonic(), deadline, "work of clients that are gone stays")
            time.sleep(0.02)

    def test_long_and_short_requests_end(self):
        documents = some_texts(1000, 7)
        wanted = self.vectors(documents[:10])

        def many(_):
            status, answer = self.server.ask("/v1/embeddings",
                                             {"model": "minilm", "input": documents})
            return status == 200 and [as_f32(entry["embedding"])
                                      for entry in answer["data"][:10]] == wanted

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            running = [pool.submit(many, i) for i in range(8)]
            for i in range(100):
                found, _ = self.embeddings(input=documents[i % 10])
                self.assertEqual(as_f32(found[0]), wanted[i % 10])
            self.assertTrue(all(future.result() for future in running))

    # ---- Servers of their own --------------------------------------------------------------------

    @contextlib.contextmanager
    def another(self, *options, status=0):
        server = Server(self.encore, *options)
        try:
            yield server
        finally:
            self.assertEqual(server.end(), status)

    def test_keys(self):
        keys = pathlib.Path(self.folder.name) / "keys"
        keys.write_text("open sesame\n\nanother\n")
        with self.another("--model", self.base, "--api-key-file", keys, "--log",
                          "none") as server:
            self.assertEqual(server.ask("/health")[0], 200)
            for header in ({}, {"Authorization": "Bearer"}, {"Authorization": "Bearer open"},
                           {"Authorization": "Bearer anotheranother"},
                           {"Authorization": "Bearer "}, {"Authorization": "Basic another"}):
                status, answer = server.ask("/v1/models", **header)
                self.assertEqual((status, answer["error"]["code"]), (401, "invalid_api_key"))
                self.assertEqual(server.headers["WWW-Authenticate"], "Bearer")
            for key in ("open sesame", "another"):
                self.assertEqual(server.ask("/v1/models", Authorization=f"Bearer {key}")[0], 200)
            self.assertEqual(server.ask("/metrics")[0], 401)
        self.assertEqual(server.log, [])

    def test_limits_queue_deadline_and_slow_clients(self):
        with self.another("--model", self.base, "--max-queue", 40, "--max-body", 1000,
                          "--max-texts", 4, "--request-seconds", 1, "--max-connections",
                          20) as server:
            slow = server.raw(b"POST /v1/embeddings HTTP/1.1\r\nHo")
            half = server.raw(b"POST /v1/embeddings HTTP/1.1\r\nContent-Length: 10\r\n\r\n{")
            path = "/v1/embeddings"
            self.assertEqual(server.ask(path, {"input": ["a"] * 5})[0], 413)
            self.assertEqual(server.ask(path, {"input": "a" * 1000})[0], 413)
            self.assertEqual(server.ask(path, {"input": ["the cat sat on the mat " * 4] * 4})[0],
                             413)
            status, answer = server.ask(path, {"input": "a"}, X_Encore_Deadline_Ms="0")
            self.assertEqual((status, answer["error"]["code"]), (504, "deadline_exceeded"))
            self.assertEqual(server.ask(path, {"input": "a"}, X_Encore_Deadline_Ms="90000")[0],
                             200)
            # Many at once: some find the queue full, and are told when to come again.
            text = {"input": ["the cat sat on the mat the cat"] * 2}
            told = []

            def ask(_):
                with contextlib.closing(server.connect()) as connection:
                    for _ in range(200):
                        told.append(server.ask(path, text, connection=connection)[0])
                        if told[-1] == 429:
                            return

            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                list(pool.map(ask, range(8)))
            self.assertEqual(set(told), {200, 429})
            self.assertEqual(server.retry_after, "1")
            for connection in (slow, half):
                self.assertEqual(answer_of(connection), "")
            idle = [server.raw(b"") for _ in range(30)]
            ended = sum(connection.recv(1) == b"" for connection in idle[20:])
            self.assertEqual(ended, 10)
            for connection in idle:
                connection.close()

    def test_sigterm_loses_no_request(self):
        texts = some_texts(40, 8)
        for round_ in range(ServerTest.rounds):
            server = Server(self.encore, "--model", self.base)
            begun, signalled, lost = threading.Barrier(9), threading.Event(), []

            def client(server=server, begun=begun, signalled=signalled, lost=lost):
                # A connection for each request. Those from before the signal are answered.
                first = True
                while True:
                    with contextlib.closing(server.connect()) as connection:
                        try:
                            connection.connect()
                        except OSError:
                            return
                        late = signalled.is_set()
                        try:
                            status = server.ask("/v1/embeddings", {"input": texts},
                                                connection=connection)[0]
                        except (OSError, http.client.HTTPException) as error:
                            status = repr(error)
                    if late:
                        return
                    if status != 200:
                        lost.append(status)
                    if first:
                        begun.wait()
                        first = False

            clients = [threading.Thread(target=client) for _ in range(8)]
            for thread in clients:
                thread.start()
            begun.wait()
            idle = server.connect()
            server.ask("/health", connection=idle)
            time.sleep(0.01 * (round_ % 4))
            signalled.set()
            self.assertEqual(server.end(signal.SIGINT if round_ == 3 else signal.SIGTERM), 0)
            for thread in clients:
                thread.join()
            idle.close()
            self.assertEqual(lost, [])

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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--encore", type=pathlib.Path, required=True)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=ServerTest.rounds, help="of SIGTERM")
    arguments, rest = parser.parse_known_args()
    ServerTest.encore = arguments.encore.resolve()
    ServerTest.rounds = arguments.rounds
    ServerTest.root = arguments.root.resolve()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
