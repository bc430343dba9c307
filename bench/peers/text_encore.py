# SPDX-License-Identifier: Apache-2.0
"""encore from text to vector, by pyencore. An engine of text_to_vector.py."""

import pyencore

NAME = "encore"


class Engine:
    """A model, ready to encode again and again."""

    def __init__(self, folder, threads):
        self.version = pyencore.__version__
        self.encode = pyencore.TextEncoder(folder, threads=threads).encode
