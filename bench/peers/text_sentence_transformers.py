# SPDX-License-Identifier: Apache-2.0
"""sentence-transformers on PyTorch, f32. An engine of text_to_vector.py."""

import sentence_transformers
import torch
from sentence_transformers import SentenceTransformer

import texts

NAME = "sentence-transformers"


class Engine:
    """A model, ready to encode again and again."""

    def __init__(self, folder, threads):
        torch.set_num_threads(threads)
        self.version = f"{sentence_transformers.__version__}, torch {torch.__version__}"
        self.model = SentenceTransformer(str(folder), device="cpu",
                                         model_kwargs={"dtype": torch.float32})

    def encode(self, batch):
        return self.model.encode(batch, batch_size=texts.BATCH, show_progress_bar=False)
