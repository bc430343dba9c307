# SPDX-License-Identifier: Apache-2.0
"""What becomes of a family's folders, as rows of a table."""
import collections

import numpy as np

from folder_check import own_keys

VERDICTS = ("equal", "rough", "told", "refused", "neither")


class Losses:
    """A family's verdicts, errors of f32 as shares of the largest number, and cosines of the
    precisions with the exact vectors."""

    def __init__(self, family):
        self.verdicts, self.errors = collections.Counter(), []
        self.cosines = collections.defaultdict(list)
        self.varied = own_keys.Varied(family)

    def add_cosines(self, precision, found, wanted):
        for answer, row in zip(found, wanted):
            found_row = np.asarray(answer["row"])
            lengths = np.linalg.norm(found_row) * np.linalg.norm(row)
            if len(row) > 1 and lengths > 0:
                self.cosines[precision].append(found_row @ row / lengths)

    def cells(self, precisions):
        """Nothing looks better than it is."""
        cells = [str(self.verdicts.total()), *(str(self.verdicts[name]) for name in VERDICTS)]
        cells += [f"{max(self.errors):.1e}" if self.errors else ""]
        for precision in precisions:
            cosines = self.cosines[precision]
            cells += [f"{np.floor(value(cosines) * 1e5) / 1e5:.5f}" if cosines else ""
                      for value in (np.mean, np.min)]
        return cells


def print_table(losses, precisions):
    """A row for each family."""
    columns = [f"{precision}, {which}" for precision in precisions for which in ("mean", "worst")]
    print("| " + " | ".join(["family", "folders", *VERDICTS, "f32, worst", *columns]) + " |")
    print("|---|" + "---:|" * (2 + len(VERDICTS) + len(columns)))
    for family, lost in sorted(losses.items()):
        print("| " + " | ".join([family, *lost.cells(precisions)]) + " |")
