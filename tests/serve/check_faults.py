#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `encore serve` on tiny folders of tests/data among clients that vanish, are slow, lie or
send what is no HTTP; many at once; limits; SIGTERM.

    check_faults.py --encore FILE --root DIR [--rounds N] [unittest arguments]
"""

import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import random
import resource
import signal
import socket
import struct
import threading
import time

from running_server import PATIENCE, Server, ServerTest, answer_of, as_f32, main, some_texts


class FaultsTest(ServerTest):
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
                             (head + b"X: y\r\n" * 1000000, 431)):
            connection = socket.create_connection(("127.0.0.1", self.server.port), PATIENCE)
            with contextlib.suppress(ConnectionError):
                connection.sendall(data)
            self.assertTrue(answer_of(connection).startswith(f"HTTP/1.1 {status}"), status)
        self.assertEqual(self.server.ask("/health")[0], 200)

    def test_a_body_that_is_too_large_has_an_answer(self):
        status, _ = self.server.ask("/v1/embeddings", "x" * (9 << 20))
        self.assertEqual(status, 413)

    def test_100_mb_that_come_all_the_same(self):
        head = b"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\n"
        before = self.memory()
        for length, piece in ((b"Content-Length: 100000000\r\n\r\n", b"x" * 100000),
                              (b"Transfer-Encoding: chunked\r\n\r\n",
                               b"186a0\r\n" + b"x" * 100000 + b"\r\n")):
            connection = self.server.raw(head + length)
            with contextlib.suppress(ConnectionError):
                for _ in range(1000):
                    connection.sendall(piece)
            # A client that sends on may lose the answer, and no other does.
            self.assertRegex(answer_of(connection), r"^$|^HTTP/1.1 413")
        self.assertLess(self.memory(), before + (32 << 20))

    def memory(self):
        text = self.server.ask("/metrics")[1]
        return int(float(text.split("\nprocess_resident_memory_bytes ")[1].split()[0]))

    def test_deep_json(self):
        for body in ("[" * 5000000, '{"input":' * 500000, '{"input": "' + "[" * 1000 + '"}'):
            status, answer = self.server.ask("/v1/embeddings", body)
            self.assertIn("error", answer)
            self.assertEqual(status, 400)

    def test_false_content_length(self):
        body = json.dumps({"model": "minilm", "input": "the cat"}).encode()
        head = b"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
        # What is left is no request.
        text = answer_of(self.server.raw(head % (len(body) - 5) + body + b"\r\n\r\n"))
        self.assertEqual(text.count("HTTP/1.1 400"), 2)
        connection = self.server.raw(head % (len(body) + 5) + body)
        connection.shutdown(socket.SHUT_WR)
        self.assertEqual(answer_of(connection), "")
        text = answer_of(self.server.raw(head[:-4] % len(body) + b"\r\nContent-Length: 3\r\n\r\n"))
        self.assertTrue(text.startswith("HTTP/1.1 400"), text)

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

    def test_a_byte_now_and_then(self):
        with self.another("--model", self.base, "--request-seconds", 1) as server:
            for data in (b"POST /v1/embeddings HTTP/1.1\r\nHost: ",
                         b"POST /v1/embeddings HTTP/1.1\r\nContent-Length: 10000\r\n\r\n"):
                connection = server.raw(data)
                connection.settimeout(0.02)
                until = time.monotonic() + PATIENCE
                with contextlib.suppress(ConnectionError):
                    while time.monotonic() < until:
                        connection.sendall(b"x")
                        with contextlib.suppress(TimeoutError):
                            if connection.recv(1) == b"":
                                break
                self.assertLess(time.monotonic(), until, "a slow client is never ended")
                connection.close()
            self.assertEqual(server.ask("/health")[0], 200)

    def test_file_descriptors_run_out(self):
        if self.fail_malloc is None:
            self.skipTest("UBSan opens a pipe to look at an object's type, and ends the program "
                          "where it cannot")

        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))

        with self.another("--model", self.base, "--log", "none", preexec_fn=few) as server:
            idle = [server.raw(b"") for _ in range(60)]  # the system takes them
            waiting = [server.raw(b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n")
                       for _ in range(10)]
            for connection in idle:
                connection.close()
            for connection in waiting:
                self.assertTrue(answer_of(connection).startswith("HTTP/1.1 200"))
            self.assertEqual(server.ask("/v1/embeddings", {"input": "the cat"})[0], 200)

    def test_memory_runs_out(self):
        if self.fail_malloc is None:
            self.skipTest("there is no --fail-malloc")
        texts = some_texts(40, 13)
        wanted = self.vectors(texts)
        requests = [("/v1/embeddings", {"model": "minilm", "input": texts}),
                    ("/v1/embeddings", {"model": "minilm", "input": "the cat"}),
                    ("/rerank", {"query": "the cat", "texts": texts}),
                    ("/predict", {"inputs": "the cat", "model": "classify"}),
                    ("/embed_sparse", {"inputs": texts}), ("/embed_all", {"inputs": texts}),
                    ("/tokenize", {"inputs": texts}), ("/v1/embeddings", "{"), ("/info", None),
                    ("/metrics", None), ("/health", None)]
        failed = 0
        for every in (11, 50, 211):
            environment = {**os.environ, "LD_PRELOAD": str(self.fail_malloc),
                           "ENCORE_FAIL_EVERY": str(every)}
            with self.another(*self.models, "--log", "none", "--idle-seconds", "2",
                              "--request-seconds", "2", env=environment) as server:
                good = [server.ask(*request) for request in requests]
                server.process.send_signal(signal.SIGUSR2)
                for round_ in range(10):
                    for request, (status, answer) in zip(requests, good, strict=True):
                        try:
                            found, other = server.ask(*request)
                        except (OSError, http.client.HTTPException):
                            failed += 1  # a connection that had no memory
                            continue
                        if found == status:
                            same = request[0] == "/metrics" or answer == other
                            self.assertTrue(same, (every, round_, request[0]))
                        else:
                            failed += 1
                            self.assertEqual((found, "error" in other), (503, True), other)
                server.process.send_signal(signal.SIGUSR2)
                answer = server.ask(*requests[0])[1]
                self.assertEqual([as_f32(entry["embedding"]) for entry in answer["data"]], wanted)
        self.assertGreater(failed, 0)

    def test_sigterm_loses_no_request(self):
        texts = some_texts(40, 8)
        for round_ in range(self.rounds):
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


if __name__ == "__main__":
    main(FaultsTest)
