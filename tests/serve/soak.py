#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks a server for a long time, and compares: every hundredth answer with `encore embed` to the
bit, memory and file descriptors at the end with those after a tenth of the time.

    python3 tests/serve/soak.py --encore build/release/bin/encore --model FOLDER \\
        [--minutes 30] [--rate 50] [--clients 8]

RATE requests a second, of 1 to 8 texts; the client of each fiftieth vanishes. Exit status 1: other
bits, an error, memory that grew by more than 16 MiB, or a descriptor that is left.
"""

import argparse
import json
import os
import pathlib
import random
import sys
import tempfile
import threading
import time

from running_server import Server, as_f32, read_npy, some_texts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--encore", type=pathlib.Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--clients", type=int, default=8)
    arguments = parser.parse_args()

    texts = some_texts(200, 1)
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "vectors.npy"
        lines = pathlib.Path(folder) / "texts"
        lines.write_text("\n".join([*texts, ""]))
        os.spawnv(os.P_WAIT, arguments.encore, ["encore", "embed", "--model", arguments.model,
                                                "--input", str(lines), "--output", str(output)])
        wanted = read_npy(output)

    server = Server(arguments.encore, "--model", arguments.model, "--log", "none")
    process = pathlib.Path(f"/proc/{server.process.pid}")

    def size():
        pages = int((process / "statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE"), len(os.listdir(process / "fd"))

    begun = time.monotonic()
    end = begun + 60 * arguments.minutes
    wrong, counts = [], [0] * arguments.clients

    def client(number):
        draw, gap = random.Random(number), arguments.clients / arguments.rate
        connection, due = server.connect(), begun
        while time.monotonic() < end and not wrong:
            due = max(due + draw.expovariate(1 / gap), time.monotonic() - 1)
            time.sleep(max(0, due - time.monotonic()))
            chosen = [draw.randrange(len(texts)) for _ in range(draw.randint(1, 8))]
            body = {"input": [texts[i] for i in chosen]}
            counts[number] += 1
            if counts[number] % 50 == 0:
                data = json.dumps(body)
                server.raw(f"POST /v1/embeddings HTTP/1.1\r\nContent-Length: {len(data)}\r\n\r\n"
                           f"{data}".encode()).close()
                continue
            try:
                status, answer = server.ask("/v1/embeddings", body, connection=connection)
            except OSError as error:
                wrong.append(repr(error))
                return
            if status != 200:
                wrong.append(str(answer))
            elif counts[number] % 100 == 1:
                found = [as_f32(entry["embedding"]) for entry in answer["data"]]
                if found != [wanted[i] for i in chosen]:
                    wrong.append("other bits")
        connection.close()

    threads = [threading.Thread(target=client, args=(i,)) for i in range(arguments.clients)]
    for thread in threads:
        thread.start()
    time.sleep((end - begun) / 10)
    early = size()[0]
    files = size()[1] - arguments.clients
    for thread in threads:
        thread.join()
    for _ in range(100):  # connections end a little later
        if size()[1] <= files:
            break
        time.sleep(0.1)
    late, left = size()
    status = server.end()
    print(f"{sum(counts)} requests in {time.monotonic() - begun:.0f} s, {wrong or 'none'} wrong; "
          f"memory {early / 2**20:.1f} MiB after a tenth, {late / 2**20:.1f} MiB at the end; "
          f"{left} descriptors, {files} wanted; exit status {status}")
    return 1 if wrong or late > early + (16 << 20) or left > files or status != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
