# SPDX-License-Identifier: Apache-2.0
"""The folder's model as a PyTorch module (ids, mask) -> hidden states, for engines that convert it.
"""

import torch
from transformers import AutoModel

EXAMPLE = (torch.ones(1, 8, dtype=torch.int64), torch.ones(1, 8, dtype=torch.int64))


class HiddenStates(torch.nn.Module):
    """The last hidden state alone."""

    def __init__(self, folder, attention):
        super().__init__()
        self.model = AutoModel.from_pretrained(str(folder), dtype=torch.float32,
                                               attn_implementation=attention).eval()

    def forward(self, ids, mask):
        return self.model(input_ids=ids, attention_mask=mask).last_hidden_state
