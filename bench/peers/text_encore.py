# SPDX-License-Identifier: Apache-2.0
"""encore from text to vector: its C interface, through ctypes. An engine of text_to_vector.py."""

import ctypes

import numpy

NAME = "encore"

SIZE, TEXT, INT = ctypes.c_size_t, ctypes.c_char_p, ctypes.c_int32


class Text(ctypes.Structure):
    """encore_text."""
    _fields_ = [("data", TEXT), ("size", SIZE)]


class OpenOptions(ctypes.Structure):
    """encore_open_options."""
    _fields_ = [("size", SIZE), ("threads", INT), ("normalize", INT), ("pooling", INT),
                ("ignore_unknown_keys", INT), ("max_length", SIZE)]


class Library:
    """A shared libencore_text."""

    def __init__(self, path):
        try:
            self.functions = ctypes.CDLL(str(path))
        except OSError as error:
            raise SystemExit(f"{error}\nTo build it: tools/build.sh build/shared "
                             "-DBUILD_SHARED_LIBS=ON --target encore_text") from error
        for name in ("encore_last_error", "encore_version", "encore_describe"):
            getattr(self.functions, name).restype = TEXT
        self.functions.encore_dimensions.restype = SIZE

    def check(self, status):
        if status != 0:
            raise SystemExit("encore: " + self.functions.encore_last_error().decode())

    def version(self):
        return self.functions.encore_version().decode()

    def open(self, folder, threads):
        """A handle, which lives as long as the process."""
        handle = ctypes.c_void_p()
        options = OpenOptions(size=ctypes.sizeof(OpenOptions), threads=threads)
        self.check(self.functions.encore_open(str(folder).encode(), ctypes.byref(options),
                                              ctypes.byref(handle)))
        return handle


def views(texts):
    """An array of encore_text, and what keeps its bytes alive."""
    data = [text.encode() for text in texts]
    return (Text * len(data))(*((part, len(part)) for part in data)), data


class Engine:
    """A model, ready to encode again and again."""

    def __init__(self, folder, threads, library):
        self.library = Library(library)
        self.version = self.library.version()
        self.handle = self.library.open(folder, threads)
        self.dimensions = self.library.functions.encore_dimensions(self.handle)

    def encode(self, texts):
        array, _ = views(texts)
        vectors = numpy.empty((len(texts), self.dimensions), numpy.float32)
        self.library.check(self.library.functions.encore_encode(
            self.handle, array, SIZE(len(texts)), None, ctypes.c_void_p(vectors.ctypes.data),
            SIZE(vectors.size), None, None))
        return vectors
