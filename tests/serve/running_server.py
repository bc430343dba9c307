# SPDX-License-Identifier: Apache-2.0
#
# For check_server.py: a running server, and what is asked of it.

import contextlib
import http.client
import json
import random
import signal
import socket
import struct
import subprocess
import threading

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

    def __init__(self, encore, *options):
        self.process = subprocess.Popen([encore, "serve", "--port", "0", *map(str, options)],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
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
