"""How many random examples a run draws, and from which seed.

`LAKELET_CASES` multiplies the number of examples: `make check` and `make test` draw a part of them, `make test-all` and slices
all. `LAKELET_SEED` is where seeds begin; Hypothesis gets the same number, so that it repeats a run.
"""

import os

SHARE = float(os.environ.get("LAKELET_CASES", "1"))
SEED = int(os.environ["LAKELET_SEED"]) if "LAKELET_SEED" in os.environ else None
FIRST_SEED = SEED or 0


def examples(count: int) -> int:
    """The number of examples for this run, of `count` at full depth; three at least, where there are as many."""
    return max(round(count * SHARE), min(count, 3))
