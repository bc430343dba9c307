# SPDX-License-Identifier: Apache-2.0
"""A picture of 640 x 480 to the vector of a CLIP, processing included: ViT-B/32 (50 rows) and
ViT-B/16 (197 rows), with drawn weights; and resizing alone, of bytes beside Pillow and of floats
beside torch, which computes as fast as it can here and not to encore's bits.

    .deps/venv/bin/pip install pillow torchvision
    tools/build.sh build/release --target image_calls
    .deps/venv/bin/python bench/peers/compare.py images --markdown

The peers process pictures by Pillow and numpy, in fewer steps than transformers' processors: these
take as long or longer. encore's are the bytes of Pillow too. The graph of ONNX Runtime and OpenVINO
is what PyTorch exports. int8 is ONNX Runtime's dynamic quantization and nncf's static one, with 16
drawn pictures; bf16 PyTorch's model.to(bfloat16) and OpenVINO's inference precision.
"""

import json
import pathlib
import subprocess
import types

import numpy as np

import compare
import remote

ENGINES_ACROSS = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = {"ViT-B/32": 32, "ViT-B/16": 16}
HEIGHT, WIDTH = 480, 640
LARGE = 3000, 4000
RESIZING = ("resize", "floats")
FILTERS = {"bicubic": 3, "bilinear": 2, "Lanczos": 1}


def picture(height=HEIGHT, width=WIDTH, seed=1):
    """Smooth as a whole, rough from pixel to pixel."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (height // 40 + 1, width // 40 + 1, 3))
    smooth = np.kron(coarse, np.ones((40, 40, 1), int))[:height, :width]
    return np.clip(smooth + rng.integers(-20, 20, smooth.shape), 0, 255).astype(np.uint8)


# ---- In an engine's process ---------------------------------------------------------------------

def encore(job):
    resize = job["model"] in RESIZING
    first = [job["model"], job["precision"] if not resize else job["filter"],
             job["threads"] if not resize else 224]
    pixels = picture(*job["size"])
    program = subprocess.Popen([job["program"], *map(str, [*first, *pixels.shape[:2]])],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    program.stdin.write(pixels.tobytes())
    program.stdin.flush()
    output = np.array(program.stdout.readline().split(), np.float32)

    def turn(count):
        program.stdin.write(f"{count} {job['seconds']}\n".encode())
        program.stdin.flush()
        return remote.summary([float(word) for word in program.stdout.readline().split()])

    return turn, output


def processed(image):
    """[3, 224, 224] as CLIPImageProcessor on Pillow makes it."""
    from PIL import Image
    image = image.resize(tuple(224 * edge // min(image.size) for edge in image.size),
                         Image.BICUBIC)
    left, top = (image.width - 224) // 2, (image.height - 224) // 2
    pixels = np.asarray(image.crop((left, top, left + 224, top + 224)), np.float32)
    mean, deviation = (np.array(values, np.float32) for values in (
        [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]))
    return np.ascontiguousarray(((pixels * np.float32(1 / 255) - mean) / deviation)
                                .transpose(2, 0, 1))


def loaded(folder):
    import torch
    import transformers
    model = transformers.CLIPVisionModelWithProjection.from_pretrained(folder).eval()

    class Vectors(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, pixel_values):
            return self.model(pixel_values).image_embeds

    return Vectors().eval()


def torch_model(job):
    import torch
    torch.set_num_threads(job["threads"])
    kind = {"f32": torch.float32, "bf16": torch.bfloat16}[job["precision"]]
    model = loaded(job["model"]).to(kind)

    @torch.inference_mode()
    def encode(pixels):
        return model(torch.from_numpy(pixels).to(kind)).float().numpy()

    return encode


def exported(job):
    import torch
    path = pathlib.Path(job["model"], "model.onnx")
    if not path.exists():
        torch.onnx.export(loaded(job["model"]), (torch.zeros(2, 3, 224, 224),), path, dynamo=False,
                          input_names=["pixel_values"], output_names=["vectors"],
                          dynamic_axes={"pixel_values": {0: "n"}, "vectors": {0: "n"}})
    return path


def onnxruntime_model(job):
    import onnxruntime
    path = exported(job)
    if job["precision"] == "int8":
        from onnxruntime.quantization import QuantType, quantize_dynamic
        target = path.with_name("int8.onnx")
        if not target.exists():
            quantize_dynamic(path, target, weight_type=QuantType.QInt8,
                             op_types_to_quantize=["MatMul", "Gemm"])
        path = target
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = job["threads"]
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda pixels: session.run(None, {"pixel_values": pixels})[0]


def openvino_model(job):
    import openvino
    model = openvino.Core().read_model(exported(job))
    hint = job["precision"]
    if hint == "int8":
        import openvino_peer
        from PIL import Image
        drawn = [processed(Image.fromarray(picture(seed=i)))[None] for i in range(16)]
        model, hint = openvino_peer.quantized(model, drawn), "f32"
    compiled = openvino.Core().compile_model(model, "CPU", {
        "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "ENABLE_CPU_PINNING": False,
        "INFERENCE_NUM_THREADS": job["threads"], "INFERENCE_PRECISION_HINT": hint})
    return lambda pixels: compiled(pixels)[0]


PEERS = {"torch": torch_model, "onnxruntime": onnxruntime_model, "openvino": openvino_model}


def opened(job):
    if job["model"] not in RESIZING:
        job["model"] = str(pathlib.Path(job["folder"], "model"))
    if job["engine"] == "encore":
        turn, output = encore(job)
        calls = {label: (lambda count=count: turn(count)) for label, (count, _) in
                 job["labels"].items()}
        return types.SimpleNamespace(calls=calls, output=lambda: output, about={})
    from PIL import Image
    image = Image.fromarray(picture(*job["size"]))
    if job["model"] == "floats":
        import torch
        torch.set_num_threads(1)
        pixels = torch.from_numpy(picture(*job["size"]))
        size = 224, 224 * image.width // image.height

        def call(_count):
            floats = (pixels.permute(2, 0, 1)[None] * (1 / 255)).contiguous()
            made = torch.nn.functional.interpolate(
                floats, size, mode={2: "bilinear", 3: "bicubic"}[job["filter"]],
                align_corners=False, antialias=True)
            return made[0].permute(1, 2, 0).numpy().ravel()
    elif job["model"] == "resize":
        size = 224 * image.width // image.height, 224

        def call(_count):
            return np.asarray(image.resize(size, job["filter"]), np.float32).ravel()
    else:
        encode = PEERS[job["engine"]](job)

        def call(count):
            return encode(np.stack([processed(image) for _ in range(count)]))

    def turn(count):
        return remote.summary(remote.call_times(lambda: call(count), job["seconds"]))

    return types.SimpleNamespace(
        calls={label: (lambda count=count: turn(count)) for label, (count, _) in
               job["labels"].items()}, output=lambda: call(1).ravel(), about={})


# ---- In the process that compares ---------------------------------------------------------------

def add_options(parser):
    parser.add_argument("--program", metavar="BINARY",
                        default=ROOT / "build/release/bench/image_calls")
    parser.add_argument("--model", nargs="+", choices=[*MODELS, *RESIZING],
                        default=[*MODELS, *RESIZING], metavar="NAME")
    parser.add_argument("--pictures", nargs="+", type=int, default=[1, 8], metavar="N",
                        help="of a call")
    parser.add_argument("--precision", nargs="+", choices=["f32", "bf16", "int8"],
                        default=["f32", "bf16", "int8"], metavar="NAME")


def prepare(case, folder):
    if not case.work or case.work.get("model") not in MODELS:
        return
    import torch
    import transformers
    torch.manual_seed(1)
    config = transformers.CLIPVisionConfig(hidden_size=768, intermediate_size=3072, image_size=224,
                                           num_hidden_layers=12, num_attention_heads=12,
                                           patch_size=MODELS[case.work["model"]], projection_dim=512)
    transformers.CLIPVisionModelWithProjection(config).save_pretrained(folder / "model")
    (folder / "model/preprocessor_config.json").write_text(json.dumps(
        {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 224},
         "crop_size": {"height": 224, "width": 224}}), "utf-8")


def cases(options):
    for name in options.model:
        if name in MODELS:
            for threads in options.threads:
                for count in options.pictures:
                    yield compare.Case(f"{name}, {count} picture{'s' * (count > 1)}", threads,
                                       {"": (count, "pictures")},
                                       {"size": [HEIGHT, WIDTH], "model": name})
            continue
        of = " of floats" if name == "floats" else ""
        for kind, number in FILTERS.items():
            if of and kind == "Lanczos":
                continue  # torch has none
            for size in ([HEIGHT, WIDTH], LARGE):
                yield compare.Case(f"{size[1]} x {size[0]} to a height of 224, {kind}{of}", 1,
                                   {"": (1, "pictures")},
                                   {"size": list(size), "filter": number, "model": name})


def engines(options, case):
    common = {**case.work, "program": str(options.program), "labels": case.labels,
              "whole_turns": True}
    if "filter" in case.work:
        for name in ("encore", "torch" if case.work["model"] == "floats" else "Pillow"):
            yield {**common, "engine": name, "precision": "", "is_base": name == "encore"}
        return
    for precision in options.precision:
        for name in ("encore", *PEERS):
            if (name, precision) not in (("torch", "int8"), ("onnxruntime", "bf16")):
                yield {**common, "engine": name, "precision": precision, "model": "model",
                       "is_base": name == "encore"}


def difference(_options, engine, found, wanted):
    if engine.name == "torch" and not engine.precision:
        apart = float(np.abs(found - wanted).max())
        return f"{apart:.1e} apart", None if apart < 1e-5 else "its pixels differ"
    if engine.name in ("Pillow",) or found.shape != wanted.shape:
        same = np.array_equal(found, wanted)
        return "", None if same else "its pixels differ"
    cosine = float(found @ wanted / np.linalg.norm(found) / np.linalg.norm(wanted))
    return f"cosine {cosine:.5f}", None if cosine > 0.9 else f"its vector differs: {cosine:.3f}"
