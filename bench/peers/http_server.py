#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server that people write themselves: FastAPI and uvicorn, with text-embeddings-inference's
/embed, over ONNX Runtime or OpenVINO with Hugging Face's tokenizers, or over
sentence-transformers. For bench/serve/load.py.

    http_server.py onnx|openvino|sentence-transformers FOLDER PORT [ONNX_FILE]
"""

import sys
import threading

import numpy
import uvicorn
from fastapi import FastAPI
from fastapi.responses import JSONResponse

kind, folder, port = sys.argv[1:4]
app = FastAPI()

if kind in ("onnx", "openvino"):
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding()
    if kind == "onnx":
        import onnxruntime

        session = onnxruntime.InferenceSession(sys.argv[4], providers=["CPUExecutionProvider"])
        names = {one.name for one in session.get_inputs()}

        def run(inputs):
            return session.run(None, inputs)[0]
    else:
        import openvino

        # f32, as the others compute. One request for each thread of FastAPI's pool.
        compiled = openvino.Core().compile_model(
            sys.argv[4], "CPU", {"INFERENCE_PRECISION_HINT": "f32",
                                 "PERFORMANCE_HINT": "LATENCY"})
        names = {name for one in compiled.inputs for name in one.names}
        requests = threading.local()

        def run(inputs):
            if not hasattr(requests, "one"):
                requests.one = compiled.create_infer_request()
            return requests.one.infer(inputs)[compiled.output(0)]

    def encode(texts):
        made = tokenizer.encode_batch(texts)
        mask = numpy.array([one.attention_mask for one in made], numpy.int64)
        inputs = {"input_ids": numpy.array([one.ids for one in made], numpy.int64),
                  "attention_mask": mask, "token_type_ids": numpy.zeros_like(mask)}
        hidden = run({name: inputs[name] for name in names & inputs.keys()})
        weights = mask[..., None].astype(numpy.float32)
        rows = (hidden * weights).sum(1) / weights.sum(1)
        return rows / numpy.linalg.norm(rows, axis=1, keepdims=True)
else:
    import sentence_transformers

    model = sentence_transformers.SentenceTransformer(folder, device="cpu")

    def encode(texts):
        return model.encode(texts)


# Without async, FastAPI runs it on a thread of its pool.
@app.post("/embed")
def embed(body: dict):
    texts = body["inputs"]
    return JSONResponse(encode([texts] if isinstance(texts, str) else texts).tolist())


uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning", access_log=False)
