#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs other people's clients against `encore serve` and compares every answer with `encore embed`
and `encore rerank` to the bit. A client that is not installed is left out, and named.

    python3 -m venv /tmp/clients
    /tmp/clients/bin/pip install openai langchain-openai cohere huggingface_hub \\
        llama-index-embeddings-openai-like
    /tmp/clients/bin/python tests/serve/check_clients.py --encore build/release/bin/encore \\
        --model .deps/models/all-MiniLM-L6-v2 [--reranker FOLDER] [--all]

curl and wrk are programs (Debian has both). With --all, a client that is left out is a failure.
"""

import argparse
import asyncio
import base64
import importlib.metadata
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from running_server import PATIENCE, Server, as_f32, read_npy, some_texts

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUERY = "What is Deep Learning?"


class Missing(Exception):
    pass


class Clients:
    """Each method is a client; what it returns is how the client calls itself, with its version."""

    def __init__(self, encore, model, reranker):
        self.encore, self.model, self.reranker = encore, model, reranker
        self.folder = tempfile.TemporaryDirectory()
        self.texts = [QUERY, "I like you.", "\u00e9t\u00e9 \u4e2d\u6587 \U0001f600", "",
                      *some_texts(60, 11)]
        self.wanted = self.vectors(self.texts)
        self.short = self.vectors(self.texts, "--dimensions", 64)
        self.documents = ["Deep Learning is not...", "Deep learning is...", *some_texts(20, 12)]
        lines = self.command("rerank", "--model", reranker, "--query", QUERY, "--input", "-",
                             "--scores", texts=self.documents)
        self.scores = [as_f32([float(line)]) for line in lines.splitlines()]
        self.server = Server(encore, "--model", f"minilm={model}", "--model",
                             f"rerank={reranker}", "--log", "none")
        self.url = f"http://127.0.0.1:{self.server.port}"

    def end(self):
        status = self.server.end()
        self.folder.cleanup()
        assert status == 0, status

    def command(self, *arguments, texts):
        done = subprocess.run([self.encore, *map(str, arguments)], input="\n".join([*texts, ""]),
                              capture_output=True, text=True, check=True, timeout=PATIENCE)
        return done.stdout

    def vectors(self, texts, *options):
        output = pathlib.Path(self.folder.name) / "vectors.npy"
        self.command("embed", "--model", self.model, "--input", "-", "--output", output, *options,
                     texts=texts)
        return read_npy(output)

    def same(self, rows, wanted=None):
        found = [bytes(row) if isinstance(row, (bytes, bytearray)) else as_f32(row)
                 for row in rows]
        assert found == (self.wanted if wanted is None else wanted), "other bits"

    def same_scores(self, pairs):
        pairs = list(pairs)
        values = [score for _, score in pairs]
        assert values == sorted(values, reverse=True), "not the best first"
        for index, score in pairs:
            assert as_f32([score]) == self.scores[index], "other bits"

    def openai(self):
        import openai

        client = openai.OpenAI(base_url=self.url + "/v1", api_key="none")

        def rows(answer):
            return [entry.embedding for entry in answer.data]

        # By default it asks for base64, and decodes that itself.
        create = client.embeddings.create
        self.same(rows(create(model="minilm", input=self.texts)))
        self.same(rows(create(model="minilm", input=self.texts, encoding_format="float")))
        raw = create(model="minilm", input=self.texts, encoding_format="base64")
        self.same([base64.b64decode(row) for row in rows(raw)])
        self.same(rows(create(model="minilm", input=self.texts, dimensions=64)), self.short)
        self.same(rows(create(model="minilm", input=QUERY)), self.wanted[:1])
        lines = self.command("tokenize", "--model", self.model, "--input", "-", texts=self.texts)
        ids = [json.loads(line) for line in lines.splitlines()]
        self.same(rows(create(model="minilm", input=ids)))
        self.same(rows(create(model="minilm", input=ids[0])), self.wanted[:1])
        assert create(model="minilm", input=ids).usage.prompt_tokens == sum(map(len, ids))
        assert [model.id for model in client.models.list()] == ["minilm", "rerank"]
        assert client.models.retrieve("minilm").owned_by == "encore"
        for error, arguments in ((openai.NotFoundError, {"model": "nobody", "input": "x"}),
                                 (openai.BadRequestError, {"model": "minilm", "input": []})):
            try:
                create(**arguments)
            except error as found:
                assert found.body["message"] and found.body["type"] == "invalid_request_error"
            else:
                raise AssertionError(f"{error.__name__} was wanted")

        async def many():
            async with openai.AsyncOpenAI(base_url=self.url + "/v1", api_key="none") as client:
                return await asyncio.gather(*(client.embeddings.create(model="minilm", input=text)
                                              for text in self.texts))

        self.same([rows(answer)[0] for answer in asyncio.run(many())])
        return "openai"

    def langchain_openai(self):
        import langchain_openai

        # It would send ids of OpenAI's tokenizers otherwise.
        made = langchain_openai.OpenAIEmbeddings(model="minilm", base_url=self.url + "/v1",
                                                 api_key="none", check_embedding_ctx_length=False)
        self.same(made.embed_documents(self.texts))
        self.same([made.embed_query(text) for text in self.texts])
        self.same(asyncio.run(made.aembed_documents(self.texts)))
        return "langchain-openai"

    def llama_index(self):
        from llama_index.embeddings.openai_like import OpenAILikeEmbedding

        made = OpenAILikeEmbedding(model_name="minilm", api_base=self.url + "/v1", api_key="none",
                                   embed_batch_size=10)
        texts = [text for text in self.texts if text]  # it has no empty ones
        wanted = [row for row, text in zip(self.wanted, self.texts, strict=True) if text]
        self.same(made.get_text_embedding_batch(texts), wanted)
        self.same([made.get_query_embedding(texts[0])], wanted[:1])
        return "llama-index-embeddings-openai-like"

    def cohere(self):
        import cohere

        arguments = {"base_url": self.url, "api_key": "none"}
        client, first = cohere.ClientV2(**arguments), cohere.Client(**arguments)
        common = {"model": "minilm", "texts": self.texts, "input_type": "search_document"}
        found = client.embed(**common, embedding_types=["float", "base64"])
        self.same(found.embeddings.float_)
        self.same(map(base64.b64decode, found.embeddings.base64))
        self.same(client.embed(**common, embedding_types=["float"],
                               output_dimension=64).embeddings.float_, self.short)
        # The older interface: it asks in pieces of 96 at most.
        self.same(first.embed(**common).embeddings)
        self.same(first.embed(**common, embedding_types=["float"]).embeddings.float_)
        for one in (client, first):
            found = one.rerank(model="rerank", query=QUERY, documents=self.documents)
            assert len(found.results) == len(self.documents)
            self.same_scores((entry.index, entry.relevance_score) for entry in found.results)
            found = one.rerank(model="rerank", query=QUERY, documents=self.documents, top_n=2)
            assert len(found.results) == 2
        try:
            client.embed(**common, embedding_types=["int8"])
        except cohere.BadRequestError as error:
            assert "float" in error.body["message"]
        else:
            raise AssertionError("an error was wanted")
        return "cohere"

    def huggingface_hub(self):
        import huggingface_hub

        client = huggingface_hub.InferenceClient(self.url)
        self.same(client.feature_extraction(self.texts))
        self.same(client.feature_extraction(QUERY, normalize=True, truncate=True), self.wanted[:1])
        return "huggingface_hub"

    def curl(self):
        """The examples of text-embeddings-inference's pages."""
        if shutil.which("curl") is None:
            raise Missing("curl")

        def ask(path, body, model=None):
            body = {**body, **({"model": model} if model else {})}
            done = subprocess.run(
                ["curl", "-sS", "--fail-with-body", self.url + path, "-X", "POST", "-d",
                 json.dumps(body), "-H", "Content-Type: application/json"],
                capture_output=True, check=True, timeout=PATIENCE)
            return json.loads(done.stdout)

        self.same(ask("/embed", {"inputs": QUERY}), self.wanted[:1])
        self.same(ask("/embed", {"inputs": self.texts}))
        found = ask("/v1/embeddings", {"input": QUERY, "user": "null"}, "minilm")
        self.same([found["data"][0]["embedding"]], self.wanted[:1])
        self.same_scores((entry["index"], entry["score"]) for entry in
                         ask("/rerank", {"query": QUERY, "texts": self.documents}))
        raw = ask("/rerank", {"query": QUERY, "texts": self.documents, "raw_scores": True})
        assert len(raw) == len(self.documents)
        assert len(ask("/predict", {"inputs": "I like you."})) == 1
        pairs = ask("/predict", {"inputs": [["I like you."], ["I like pineapples"]]})
        assert len(pairs) == 2
        scores = ask("/predict", {"inputs": [[QUERY, text] for text in self.documents]})
        for score, wanted in zip(scores, self.scores, strict=True):
            assert as_f32([score[0]["score"]]) == wanted
        version = subprocess.run(["curl", "--version"], capture_output=True, text=True, check=True)
        return " ".join(version.stdout.split()[:2])

    def wrk(self):
        if shutil.which("wrk") is None:
            raise Missing("wrk")
        body = json.dumps({"inputs": self.texts[:4]})
        connection = self.server.connect()
        connection.request("POST", "/embed", body)
        answer = connection.getresponse().read().decode()
        connection.close()
        self.same(json.loads(answer), self.wanted[:4])
        script = pathlib.Path(self.folder.name) / "check.lua"
        script.write_text(f"""
wrk.method, wrk.body = "POST", [==[{body}]==]
local wanted, threads = [==[{answer}]==], {{}}
function setup(thread) table.insert(threads, thread) end
function init() other, same = 0, 0 end
function response(status, headers, body)
  if status == 200 and body == wanted then same = same + 1 else other = other + 1 end
end
function done()
  for _, thread in ipairs(threads) do
    io.write(thread:get("same"), " ", thread:get("other"), "\\n")
  end
end
""")
        done = subprocess.run(["wrk", "-t", "1", "-c", "16", "-d", "2", "-s", script,
                               self.url + "/embed"], capture_output=True, text=True, check=True,
                              timeout=PATIENCE)
        same, other = map(int, done.stdout.splitlines()[-1].split())
        assert same > 0 and other == 0, done.stdout
        assert "Socket errors" not in done.stdout, done.stdout
        version = subprocess.run(["wrk", "--version"], capture_output=True, text=True, check=False)
        return " ".join((version.stdout + version.stderr).split()[:2])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--encore", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--reranker", type=pathlib.Path,
                        default=ROOT / "tests/data/text/reranker")
    parser.add_argument("--all", action="store_true", help="a client that is missing is a failure")
    arguments = parser.parse_args()
    clients = Clients(arguments.encore.resolve(), arguments.model, arguments.reranker)
    missing = []
    try:
        for name in ("openai", "langchain_openai", "llama_index", "cohere", "huggingface_hub",
                     "curl", "wrk"):
            try:
                called = getattr(clients, name)()
            except (ImportError, Missing) as error:
                missing.append(name)
                print(f"left out: {name}: {error}")
                continue
            version = "" if " " in called else " " + importlib.metadata.version(called)
            print(f"{called}{version}: the bits of encore embed")
    finally:
        clients.end()
    return 1 if arguments.all and missing else 0


if __name__ == "__main__":
    sys.exit(main())
