#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Load on `encore serve` and on peers in one run: a table for docs/server.md.

    tools/build.sh build/release --target encore_tool --target load_client
    python3 bench/serve/load.py --encore build/release/bin/encore \\
        --client build/release/bench/load_client --model .deps/models/all-MiniLM-L6-v2 \\
        [--seconds 5] [--quick] \\
        [--peer onnx "PYTHON bench/peers/http_server.py onnx FOLDER {port} FILE.onnx"]

Closed loops of 1 to 64 clients with single queries of 15 tokens and with requests of 1 to 32 texts;
then open loops at 50, 80 and 95 % of what 16 clients got; then a neighbour that sends 1,000
documents of 256 tokens again and again. CPU is the server's, in seconds a second.
"""

import argparse
import atexit
import http.client
import json
import os
import pathlib
import random
import shlex
import socket
import subprocess
import tempfile
import threading
import time

# Each is one token of BERT's vocabulary: with [CLS] and [SEP], 13 of them are 15 tokens.
WORDS = ("time year people way day man thing woman life child world school state family student "
         "group country problem hand part place case week company system program question").split()


def texts_of(draw, count, tokens):
    return [" ".join(draw.choices(WORDS, k=tokens - 2)) for _ in range(count)]


def write_requests(path, bodies):
    path.write_text("".join(f"/embed\t{json.dumps({'inputs': body})}\n" for body in bodies))


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Served:
    """A server's process that answers /embed."""

    def __init__(self, command):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [part.replace("{port}", str(self.port)) for part in command]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        atexit.register(self.end)
        while True:
            if self.process.poll() is not None:
                raise SystemExit(f"{command[0]} ended with {self.process.returncode}")
            try:
                self.ask("the cat")
                return
            except OSError:
                time.sleep(0.05)

    def ask(self, texts):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request("POST", "/embed", json.dumps({"inputs": texts}),
                           {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    def end(self):
        self.process.terminate()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--encore", required=True)
    parser.add_argument("--client", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--quick", action="store_true", help="1 and 16 clients, open loop at 80 %%")
    parser.add_argument("--peer", nargs=2, action="append", default=[],
                        metavar=("NAME", "COMMAND"))
    arguments = parser.parse_args()
    draw = random.Random(1)
    folder = pathlib.Path(tempfile.mkdtemp())
    write_requests(folder / "single", texts_of(draw, 500, 15))
    write_requests(folder / "mixed", [texts_of(draw, draw.randint(1, 32), draw.randint(5, 60))
                                      for _ in range(200)])

    def load(server, requests, clients, rate=None):
        begun, cpu = time.monotonic(), cpu_seconds(server.process.pid)
        command = [arguments.client, server.port, folder / requests, clients, arguments.seconds]
        done = subprocess.run([*map(str, command), *([str(rate)] if rate else [])],
                              stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:  # it said why
            raise SystemExit(f"{command[0]} ended with {done.returncode}")
        found = json.loads(done.stdout)
        found["cpu"] = (cpu_seconds(server.process.pid) - cpu) / (time.monotonic() - begun)
        return found

    def row(name, what, found):
        print(f"| {name} | {what} | {found['per_second']:.0f} | {found['p50']:.2f} | "
              f"{found['p99']:.2f} | {found['p999']:.2f} | {found['cpu']:.2f} |"
              + (f" {found['wrong']} wrong" if found["wrong"] else ""), flush=True)

    (folder / "text").write_text(texts_of(draw, 1, 15)[0] + "\n")
    report = json.loads(subprocess.run(
        [arguments.encore, "bench", "--model", arguments.model, "--texts", folder / "text",
         "--precision", "f32", "--threads", "all", "--seconds", str(arguments.seconds), "--format",
         "json"], stdout=subprocess.PIPE, text=True, check=True).stdout)
    call = report["rows"][-1]["seconds"]
    print(f"A call of the library on 15 tokens, all threads: p50 {1000 * call['p50']:.2f} ms, "
          f"p99 {1000 * call['p99']:.2f} ms", flush=True)
    print("\n| server | load | requests/s | p50 ms | p99 ms | p99.9 ms | CPU |\n"
          "|---|---|---:|---:|---:|---:|---:|")
    servers = [("encore", [arguments.encore, "serve", "--model", arguments.model, "--port",
                           "{port}", "--log", "none"]),
               *((name, shlex.split(command)) for name, command in arguments.peer)]
    for name, command in servers:
        server = Served(command)
        for requests in ("single", "mixed"):
            sustained = 0
            for clients in (1, 16) if arguments.quick else (1, 4, 16, 64):
                found = load(server, requests, clients)
                row(name, f"{requests}, {clients} clients", found)
                sustained = found["per_second"] if clients == 16 else sustained
            for share in (80,) if arguments.quick else (50, 80, 95):
                if sustained == 0:
                    print(f"left out: {name}, {requests}, open loop: nothing was sustained")
                    break
                found = load(server, requests, 64, sustained * share / 100)
                row(name, f"{requests}, open loop at {share} %", found)
        documents, stop, rounds = texts_of(draw, 1000, 256), threading.Event(), []

        def neighbour(server=server, documents=documents, stop=stop, rounds=rounds):
            while not stop.is_set():
                rounds.append(len(server.ask(documents)))

        if name == "encore" or not arguments.quick:
            thread = threading.Thread(target=neighbour)
            thread.start()
            time.sleep(0.5)
            row(name, "single, 1 client, beside 1,000 documents", load(server, "single", 1))
            stop.set()
            thread.join()
        server.end()


if __name__ == "__main__":
    main()
