# SPDX-License-Identifier: Apache-2.0
"""sentence-transformers on a folder, in float64 throughout."""
import logging

import numpy as np
import torch
import transformers
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import transformer as transformer_module

from model_fixture_families import set_exact


# Without the packages for images, of which texts need none.
transformer_module.AutoProcessor = transformers.AutoTokenizer


def quiet():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    transformers.utils.logging.disable_progress_bar()
    logging.disable(logging.CRITICAL)


def opened(folder, classifies, single):
    kind = CrossEncoder if classifies else SentenceTransformer
    model = kind(str(folder), device="cpu", local_files_only=True,
                 model_kwargs={"dtype": torch.float32, "attn_implementation": "eager"})
    set_exact(model[0].auto_model, not single)
    return model if single else model.double()


def inputs_of(request):
    if "seconds" in request:
        return list(zip(request["texts"], request["seconds"]))
    return request["texts"]


class Reference:
    """What sentence-transformers makes of a folder."""

    def __init__(self, folder, request):
        self.folder, self.request = folder, request
        self.model = opened(folder, request["classifies"], False)

    def results(self, single=False, raw=False, exact=True):
        """A row of numbers for each text, or None where the text is refused; one by one: without
        padding, where eager attention gives NaN. `raw` scores are those before the activation.
        Not exact: with what transformers rounds to float32 in a model of float64."""
        model = opened(self.folder, self.request["classifies"], True) if single else self.model
        set_exact(model[0].auto_model, exact and not single)
        rows = [self.row(model, text, raw) for text in inputs_of(self.request)]
        set_exact(model[0].auto_model, False)
        return rows

    def row(self, model, text, raw):
        try:
            if self.request["classifies"]:
                with torch.inference_mode():  # predict() takes a list of texts for one pair
                    scores = model.eval()(model.preprocess([text]))["scores"]
                    scores = scores if raw else model.activation_fn(scores)
                    return scores[0].double().numpy().reshape(-1)
            name = self.request.get("prompt_name")
            return model.encode([text], prompt_name=name)[0].astype(np.float64)
        except Exception:  # no token, more than there are positions, an unknown word: many kinds
            return None

    def rows_of_ids(self, lists, single=False):
        """A row for each list of ids, or None where the model takes no such list."""
        model = opened(self.folder, self.request["classifies"], True) if single else self.model
        return [self.row_of_features({"input_ids": ids}, model, not single) for ids in lists]

    def row_of_features(self, features, model=None, exact=True):
        """The row of what features() gives, or None where the model does not take it."""
        model = model or self.model
        features = {key: torch.tensor([value]) for key, value in features.items()}
        features["attention_mask"] = torch.ones_like(features["input_ids"])
        set_exact(model[0].auto_model, exact)
        try:
            with torch.inference_mode():
                if self.request["classifies"]:
                    scores = model.eval()(features)["scores"]
                    return model.activation_fn(scores)[0].double().numpy().reshape(-1)
                row = model(features)["sentence_embedding"][0].double().numpy()
                return row[:model.truncate_dim]
        except Exception:  # more than there are positions
            return None
        finally:
            set_exact(model[0].auto_model, False)

    def features(self, i):
        """What the model is given of one text."""
        name = self.request.get("prompt_name") or self.model.default_prompt_name
        prompt = self.model.prompts.get(name) if name else None
        given = self.model.preprocess([inputs_of(self.request)[i]], prompt=prompt)
        return {key: given[key][0].tolist() for key in ("input_ids", "token_type_ids")
                if key in given}
