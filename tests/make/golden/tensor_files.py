# SPDX-License-Identifier: Apache-2.0
"""Reads, writes and compares safetensors files with numpy alone, as old distributions lack that
package.

The format: u64 length of the header, the header in JSON padded to 8 bytes, the data.
"""
import json

import numpy as np

NUMPY_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "BOOL": "|b1"}


def write_safetensors(path, tensors, metadata=None):
    """tensors: name -> numpy array; one of uint16 holds the bits of bfloat16."""
    type_of = {np.dtype(n): d for d, n in NUMPY_TYPES.items()}
    header, data = ({"__metadata__": metadata} if metadata else {}), b""
    for name, t in sorted(tensors.items(), key=lambda e: -e[1].itemsize):  # wide first: aligned
        header[name] = {"dtype": type_of[t.dtype], "shape": list(t.shape),
                        "data_offsets": [len(data), len(data) + t.nbytes]}
        data += np.ascontiguousarray(t).tobytes()
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def read_safetensors(path):
    """Returns name -> numpy array (bfloat16 widened to float32), and the metadata."""
    raw = path.read_bytes()
    data = 8 + int.from_bytes(raw[:8], "little")
    header, tensors = json.loads(raw[8:data]), {}
    metadata = header.pop("__metadata__", {})
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        t = np.frombuffer(raw[data + begin:data + end], NUMPY_TYPES[entry["dtype"]])
        t = (t.astype("<u4") << 16).view("<f4") if entry["dtype"] == "BF16" else t
        tensors[name] = t.reshape(entry["shape"])
    return tensors, metadata


def largest_error(got, expected):
    """Over all tensors, relative to each one's largest magnitude; NaN if any element is NaN."""
    return float(np.max([np.abs(got[n] - t).max() / np.abs(t).max() for n, t in expected.items()]))


def header(path):
    raw = path.read_bytes()
    return raw[:8 + int.from_bytes(raw[:8], "little")]


def agree(a, b, tolerance):
    """Whether two files have the same header and tensors. Results may differ by the tolerance: all
    of a file NAME.expected.safetensors, or the tensors expected.NAME."""
    if header(a) != header(b):
        return False
    (old, _), (new, _) = read_safetensors(a), read_safetensors(b)
    return all(old[n].tobytes() == new[n].tobytes()
               or (".expected." in a.name or n.startswith("expected."))
               and largest_error({n: new[n]}, {n: old[n]}) <= tolerance for n in old)


def differences(stored, made, key, tolerance):
    """Between two folders: a line for each file, and for what their manifests have under key but
    for PyTorch's own errors, which differ between its builds."""
    entries = []
    for folder in (stored, made):
        manifest = json.loads((folder / "manifest.json").read_text())
        print(f"made by torch {manifest['torch']}, numpy {manifest['numpy']}")
        entries.append({name: {k: v for k, v in entry.items() if not k.startswith("torch_f32")}
                        for name, entry in manifest[key].items()})
    wrong = [] if entries[0] == entries[1] else [f"manifest.json: other {key}"]
    old, new = ({p.name: p for p in folder.glob("*.safetensors")} for folder in (stored, made))
    wrong += [f"{name}: only on one side" for name in sorted(old.keys() ^ new.keys())]
    return wrong + [f"{name}: differs" for name in sorted(old.keys() & new.keys())
                    if not agree(old[name], new[name], tolerance)]
