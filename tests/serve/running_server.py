# SPDX-License-Identifier: Apache-2.0
#
# A running server and what is asked of it, for the scripts here.

import argparse
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
import unittest

WORDS = "the cat sat on a mat and kitten is resting rug how do i renew my passport".split()
PATIENCE = 120  # seconds, on a machine that is busy


def some_texts(count, seed):
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 12))) for _ in range(count)]


def read_npy(path):
    """The rows of a file of f32 [rows, columns], each as bytes."""
    data = path.read_bytes()
    length = struct.unpack("<H", data[8:10])[0]
    header = data[10:10 + length].decode()
    rows, columns = map(int, header.split("(")[1].split(")")[0].split(","))
    body = data[10 + length:]
    assert "'<f4'" in header and len(body) == rows * columns * 4
    return [body[i * columns * 4:(i + 1) * columns * 4] for i in range(rows)]


def as_f32(numbers):
    return struct.pack(f"<{len(numbers)}f", *numbers)


class Server:
    """A running `encore serve`, on a port of its own."""

    def __init__(self, encore, *options, **how):
        self.process = subprocess.Popen([encore, "serve", "--port", "0", *map(str, options)],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        **how)
        self.log = []
        self.retry_after = None  # the last that there was
        self.reader = threading.Thread(target=lambda: self.log.extend(self.process.stderr))
        self.reader.start()
        line = self.process.stdout.readline()
        if not line:
            self.end()
            raise AssertionError("".join(self.log))
        self.port = int(line.rsplit(":", 1)[1])

    def end(self, with_signal=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(with_signal)
        status = self.process.wait(PATIENCE)
        self.reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return status

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def raw(self, data):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        connection.sendall(data)
        return connection

    def ask(self, path, body=None, method=None, connection=None, **headers):
        """The status and what the answer is."""
        own = connection or self.connect()
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        own.request(method or ("GET" if body is None else "POST"), path, body, names)
        answer = own.getresponse()
        data = answer.read()
        self.headers = answer.headers
        self.retry_after = answer.headers["Retry-After"] or self.retry_after
        if connection is None:
            own.close()
        kind = answer.headers["Content-Type"]
        return answer.status, json.loads(data) if kind == "application/json" else data.decode()


def answer_of(connection):
    """All that comes until the server closes."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65536):
            data += piece
    connection.close()
    return data.decode()


class ServerTest(unittest.TestCase):
    """A server of several models for all tests of a class."""

    encore = root = None

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

    def vectors(self, texts, *options, model=None):
        output = pathlib.Path(self.folder.name) / "vectors.npy"
        self.run_encore("embed", "--model", model or self.base, "--input", "-", "--output", output,
                        *options, texts=texts)
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

    @contextlib.contextmanager
    def another(self, *options, status=0, **how):
        server = Server(self.encore, *options, **how)
        try:
            yield server
        finally:
            self.assertEqual(server.end(), status)


def main(test):
    """Runs a script's tests. Options are those of unittest, and numbers that `test` has."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--encore", type=pathlib.Path, required=True)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=4, help="of SIGTERM")
    parser.add_argument("--fail-malloc", type=pathlib.Path, help="what fail_malloc.c became")
    arguments, rest = parser.parse_known_args()
    test.encore = arguments.encore.resolve()
    test.root = arguments.root.resolve()
    test.rounds = arguments.rounds
    test.fail_malloc = arguments.fail_malloc and arguments.fail_malloc.resolve()
    unittest.main(argv=[sys.argv[0], *rest])
