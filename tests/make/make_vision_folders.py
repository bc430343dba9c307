#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the tiny folders of tests/data/vision with transformers, and what transformers computes
from them in float64 on the pixels of its processors on Pillow, or where it has none on torchvision
(DINOv3). tests/text/image_encoder_test.cc runs encore on them. Needs torch, transformers,
torchvision and Pillow, from PyPI.

Every tensor is random, as in make_model_fixtures.py. expected.safetensors has `vectors`, a row for
each of PICTURES, and `states`, the last ones of the first picture. Of classifiers it has `logits`
and `scores` too, which the pipeline makes of them. Folders named zero_shot have tokenizers, and in
zero_shot.json the scores of the pipeline "zero-shot-image-classification".

  tests/make/make_vision_folders.py [FOLDER [NAME ...]]   default: all of tests/data/vision
"""
import json
import os
import pathlib
import re
import shutil
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
import transformers
from safetensors.numpy import load_file, save_file
from transformers.image_transforms import convert_to_rgb

from made_files import require
from make_image_fixtures import VERSIONS, picture, pillow_image
from make_model_fixtures import randomise
from model_fixture_families import write_config

# Seed, height, width and channels: wide, tall, tiny, large, of the very size, grey, of few colours,
# with alpha, and turned. tests/text/image_encoder_test.cc has the same.
PICTURES = [(1, 30, 91, 3), (4, 80, 21, 3), (3, 2, 3, 3), (6, 301, 257, 3), (9, 32, 32, 3),
            (7, 50, 41, 1), (5, 45, 64, 3), (10, 37, 33, 4), (12, 64, 45, 3)]
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 32,
         "patch_size": 8}
INNER = {**SIZES, "intermediate_size": 37}
FEW = {**SIZES, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
SMALL = {**INNER, **FEW}
NAMES = ["a cat", "dog", "LABEL_2"]
TEXT = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1,
        "vocab_size": 8, "max_position_embeddings": 8, "bos_token_id": 1, "eos_token_id": 2,
        "pad_token_id": 0}
SQUARE = {"size": {"height": 32, "width": 32}}
CROPPED = {"size": {"shortest_edge": 36}, "crop_size": {"height": 32, "width": 32}}


@dataclass
class Case:
    name: str
    kind: str  # the class of transformers
    processor: str  # the start of the class
    sizes: dict
    settings: dict = field(default_factory=dict)  # of the processor
    dtype: torch.dtype = torch.float16
    whole: bool = False  # with a text side
    reference: str = ""  # the class that computes vectors, where it is another
    labels: list = field(default_factory=list)  # of a classifier; none: transformers' two
    problem: str = None
    publish: Callable = None  # makes the folder what published ones are


def unprefixed(folder):
    """As files of the base class alone."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    save_file({re.sub(r"^(vit|vision_model|dinov2)\.", "", k): v for k, v in tensors.items()}, path,
              {"format": "pt"})


def sentence_folder(folder):
    """As sentence-transformers' clip-ViT-B-32, and with a normalization behind."""
    inner = folder / "0_CLIPModel"
    inner.mkdir()
    for file in list(folder.glob("*.json")) + [folder / "model.safetensors"]:
        shutil.move(file, inner / file.name)
    modules = [("0_CLIPModel", "CLIPModel"), ("1_Normalize", "Normalize")]
    (folder / "modules.json").write_text(json.dumps(
        [{"idx": i, "name": str(i), "path": path, "type": "sentence_transformers.models." + kind}
         for i, (path, kind) in enumerate(modules)], indent=2) + "\n")


CLIP = {**INNER, "projection_dim": 24}
CASES = [
    Case("clip", "CLIPModel", "CLIP", CLIP, CROPPED, whole=True, dtype=torch.bfloat16),
    Case("clip_sentence", "CLIPModel", "CLIP", {**CLIP, "hidden_act": "gelu"}, CROPPED, whole=True,
         publish=sentence_folder),
    Case("clip_vision", "CLIPVisionModel", "CLIP", CLIP, CROPPED, publish=unprefixed),
    Case("clip_projection", "CLIPVisionModelWithProjection", "CLIP",
         {**CLIP, "layer_norm_eps": 0.03}, {**CROPPED, "crop_size": {"height": 40, "width": 24}}),
    Case("siglip", "SiglipModel", "Siglip", INNER, SQUARE, whole=True),
    Case("siglip_vision", "SiglipVisionModel", "Siglip", {**INNER, "num_attention_heads": 2},
         {"size": {"height": 24, "width": 48}}, dtype=torch.float32),
    Case("vit", "ViTModel", "ViT", INNER, SQUARE),
    Case("vit_pooler", "ViTModel", "ViT", {**INNER, "pooler_output_size": 20, "qkv_bias": False,
                                           "pooler_act": "gelu", "hidden_act": "relu"},
         {"size": {"height": 48, "width": 40}}, publish=unprefixed),
    Case("vit_classifier", "ViTForImageClassification", "ViT", INNER, SQUARE,
         reference="ViTModel"),
    Case("deit", "DeiTModel", "DeiT", INNER, {**CROPPED, "size": {"height": 36, "width": 36}}),
    Case("deit_classifier", "DeiTForImageClassificationWithTeacher", "DeiT", INNER,
         {"do_center_crop": False, "size": {"height": 48, "width": 56}}, reference="DeiTModel"),
    Case("dinov2", "Dinov2Model", "Bit", {**SIZES, "mlp_ratio": 2}, CROPPED),
    Case("dinov2_gated", "Dinov2ForImageClassification", "Bit",
         {**SIZES, "use_swiglu_ffn": True, "image_size": 56}, CROPPED, reference="Dinov2Model"),
    Case("dinov2_registers", "Dinov2WithRegistersModel", "Bit",
         {**SIZES, "num_register_tokens": 3, "image_size": 72},
         {**CROPPED, "crop_size": {"height": 40, "width": 24}}),
    Case("dinov2_registers_up", "Dinov2WithRegistersModel", "Bit",
         {**SIZES, "use_swiglu_ffn": True, "qkv_bias": False, "mlp_ratio": 3},
         {"size": {"shortest_edge": 50}, "crop_size": {"height": 48, "width": 56}}),
    Case("dinov3", "DINOv3ViTModel", "DINOv3ViT", {**INNER, "num_register_tokens": 4},
         {"size": {"height": 40, "width": 24}}, dtype=torch.bfloat16),
    Case("dinov3_gated", "DINOv3ViTModel", "DINOv3ViT",
         {**INNER, "num_attention_heads": 2, "use_gated_mlp": True, "hidden_act": "silu",
          "key_bias": True, "value_bias": False, "mlp_bias": False, "rope_theta": 30.0},
         {**SQUARE, "resample": 3, "image_mean": [0.5, 0.4, 0.3]}),
    Case("deit_labels", "DeiTForImageClassification", "DeiT", SMALL, {**CROPPED, **SQUARE},
         reference="DeiTModel", labels=NAMES, problem="multi_label_classification"),
    Case("dinov2_labels", "Dinov2WithRegistersForImageClassification", "Bit",
         {**FEW, "num_register_tokens": 3, "image_size": 24}, CROPPED,
         reference="Dinov2WithRegistersModel", labels=NAMES[:1]),
    Case("siglip_labels", "SiglipForImageClassification", "Siglip", SMALL, SQUARE, whole=True,
         reference="SiglipVisionModel", labels=NAMES, problem="single_label_classification"),
    Case("clip_labels", "CLIPForImageClassification", "CLIP", SMALL, CROPPED, whole=True,
         reference="CLIPVisionModel", labels=NAMES, problem="regression"),
]
# Of tests/data/sentences, whose tokenizers zero-shot folders have, and the processors.
ZERO_SHOT = {"clip": ("CLIP", {"size": {"shortest_edge": 9},
                               "crop_size": {"height": 8, "width": 8}}),
             "siglip": ("Siglip", {"size": {"height": 8, "width": 8}})}
CANDIDATES = ["a cat", "boats", "tea", "x"]
TEMPLATE = "so {}!"  # short: the models have few positions


def build(case):
    kind = getattr(transformers, case.kind)
    top = {"problem_type": case.problem} if case.problem else {}
    if case.labels:
        top["id2label"] = dict(enumerate(case.labels))
    if not case.whole:
        return kind(kind.config_class(**case.sizes, **top)).eval()
    if "CLIP" in case.kind:
        top["projection_dim"], text = case.sizes.get("projection_dim", 24), TEXT
    else:  # SigLIP's base has the same layers on both sides
        text = {**TEXT, **{key: case.sizes[key] for key in TEXT if key in case.sizes}}
    return kind(kind.config_class(text_config=text, vision_config=case.sizes, **top)).eval()


def run(model, case, pixels):
    """The vectors, the last states and a classifier's logits. Those of ViT and its kin have no
    pooler: the first row counts."""
    base = model
    more = {}
    if not case.kind.lower().startswith("dino"):
        more["interpolate_pos_encoding"] = True
    if case.whole and not case.reference:
        out = model.get_image_features(pixel_values=pixels, **more)
    else:
        if case.reference:
            base = getattr(model, "vision_model" if case.whole else model.base_model_prefix)
        out = base(pixel_values=pixels, **more)
    vectors = getattr(out, "image_embeds", None)
    if vectors is None:
        vectors = getattr(out, "pooler_output", None)
    if vectors is None:
        vectors = out.last_hidden_state[:, 0]
    if case.publish is sentence_folder:
        vectors = torch.nn.functional.normalize(vectors, dim=-1)
    logits = model(pixel_values=pixels, **more).logits.double() if case.reference else None
    return vectors.double().numpy(), out.last_hidden_state.double().numpy(), logits


def scores_of(model, logits):
    """What the pipeline makes of each picture's logits, in the labels' order."""
    pipeline = object.__new__(transformers.ImageClassificationPipeline)
    pipeline.model = model
    rows = []
    for row in logits:
        found = pipeline.postprocess({"logits": row[None]}, top_k=len(row))
        by_label = {one["label"]: one["score"] for one in found}
        rows.append([by_label[model.config.id2label[i]] for i in range(len(row))])
    return np.array(rows)


def zero_shot(root, data):
    """Folders with tokenizers, and zero_shot.json in each: the pipeline's scores of PICTURES in
    float64."""
    for name, (kind, settings) in ZERO_SHOT.items():
        folder, source = root / f"{name}_zero_shot", data / "sentences" / name
        shutil.rmtree(folder, ignore_errors=True)
        if (source / "0_CLIPModel").is_dir():
            source = source / "0_CLIPModel"
        config = transformers.AutoConfig.from_pretrained(source)
        if name == "siglip":  # its sides have other widths
            config.vision_config.hidden_size = config.text_config.hidden_size
        model = transformers.AutoModel.from_config(config).eval()
        randomise(model, np.random.RandomState(zlib.crc32(folder.name.encode())), torch.float16)
        with torch.no_grad():
            model.logit_scale.fill_(2.625)
        processor = getattr(transformers, kind + "ImageProcessorPil")(**settings)
        pipeline = transformers.pipeline(
            "zero-shot-image-classification", model=model.double(), image_processor=processor,
            tokenizer=transformers.AutoTokenizer.from_pretrained(source), device="cpu")
        length = {}
        if name == "siglip":
            length["max_length"] = config.text_config.max_position_embeddings
        scores = []
        for one in PICTURES:
            inputs = pipeline.preprocess(convert_to_rgb(pillow_image(picture(*one))), CANDIDATES,
                                         TEMPLATE, tokenizer_kwargs=length)
            by_label = {row["label"]: row["score"]
                        for row in pipeline.postprocess(pipeline.forward(inputs))}
            scores.append([by_label[label] for label in CANDIDATES])
        model.half().save_pretrained(folder)
        processor.save_pretrained(folder)
        (folder / "model.safetensors").chmod(0o644)
        for file in source.iterdir():
            if file.name.startswith(("spiece", "token", "vocab", "merges", "special")):
                shutil.copy(file, folder)
        expected = {"candidate_labels": CANDIDATES, "hypothesis_template": TEMPLATE,
                    "scores": scores}
        (folder / "zero_shot.json").write_text(json.dumps(expected, indent=1) + "\n")


def process(processor):
    images = [convert_to_rgb(pillow_image(picture(*p))) for p in PICTURES]
    return torch.stack([processor(image, return_tensors="pt")["pixel_values"][0]
                        for image in images])


def generate(root, names):
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    for case in CASES:
        if names and case.name not in names:
            continue
        folder = root / case.name
        shutil.rmtree(folder, ignore_errors=True)
        model = build(case)
        randomise(model, np.random.RandomState(zlib.crc32(case.name.encode())), case.dtype)
        name = case.processor + "ImageProcessor"
        on_pillow = getattr(transformers, name + "Pil", None)
        processor = (on_pillow or getattr(transformers, name))(**case.settings)
        pixels = process(processor)
        with torch.no_grad():
            vectors, states, logits = run(model.double(), case, pixels.double())
            single, *_ = run(model.float(), case, pixels)
        worst = np.abs(single - vectors).max() / np.abs(vectors).max()
        model.to(case.dtype).save_pretrained(folder)
        processor.save_pretrained(folder)
        if case.publish:
            case.publish(folder)
        expected = {"vectors": vectors, "states": states[0]}
        if logits is not None:
            expected |= {"logits": logits.numpy(), "scores": scores_of(model, logits)}
        save_file({key: np.ascontiguousarray(value) for key, value in expected.items()},
                  folder / "expected.safetensors")
        for file in folder.rglob("*"):
            if file.is_file():
                file.chmod(0o644)
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        print(f"{case.name:20} {size:7} bytes, {vectors.shape}, f32 differs by {worst:.1e}")
    if not names or "zero_shot" in names:
        zero_shot(root, pathlib.Path(__file__).resolve().parents[1] / "data")


if __name__ == "__main__":
    require({**VERSIONS, "torch": "2.15.0"})
    here = pathlib.Path(__file__).resolve().parents[2]
    generate(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "tests" / "data" / "vision",
             sys.argv[2:])
