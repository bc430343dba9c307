# SPDX-License-Identifier: Apache-2.0
"""OpenVINO behind HF's tokenizer, f32. An engine of text_to_vector.py."""

import openvino

import text_model_torch
import texts

NAME = "OpenVINO"


class Engine(texts.TokenizedEngine):
    """A model, ready to encode again and again."""

    def __init__(self, folder, threads):
        super().__init__(folder)
        self.version = openvino.get_version().split("-")[0]
        model = openvino.convert_model(text_model_torch.HiddenStates(folder, "sdpa"),
                                       example_input=text_model_torch.EXAMPLE)
        compiled = openvino.Core().compile_model(model, "CPU", {
            "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1,
            "INFERENCE_PRECISION_HINT": "f32"})
        self.request = compiled.create_infer_request()

    def hidden_states(self, ids, mask):
        return self.request.infer([ids, mask], share_inputs=True, share_outputs=True)[0]
