"""A sample of a test's cases that shows every value, or every pair of values, of its parameters.

case        store   format   mode
a-1-x       a       1        x        taken: three new values
a-1-y       a       1        y        taken: y is new
a-2-x       a       2        x        taken: 2 is new
a-2-y       a       2        y        left out: nothing new; taken where every pair counts (2 with y)
"""

import hashlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import PurePath

Values = Mapping[str, Hashable]


def stable_order(names: Iterable[str], salt: str = "") -> list[str]:
    """The names in an order that looks random, the same on every machine for one salt, in whatever folder a test's file is."""

    def digest(name: str) -> bytes:
        path, _, test = name.partition("::")
        return hashlib.sha256(f"{salt}\0{PurePath(path).name}\0{test}".encode()).digest()

    return sorted(names, key=digest)


def sampled(cases: Mapping[str, Values], *, at_once: int = 1, at_most: int | None = None) -> set[str]:
    """Names of cases in which every `at_once` values of different parameters that meet in some case meet in one.

    `at_most` is for tests of which that number of cases covers what all cover.
    """
    taken: list[str] = []
    seen: set[tuple[tuple[str, Hashable], ...]] = set()
    for name in stable_order(cases):
        shown = set(_meetings(cases[name], at_once))
        if not shown <= seen or not shown:
            taken.append(name)
        seen |= shown
    return set(taken[:at_most])


def filled(costs: Sequence[tuple[str, float]], seconds: float) -> set[str]:
    """The first names whose costs fit into the time."""
    names, spent = set(), 0.0
    for name, cost in costs:
        spent += cost
        if spent > seconds:
            break
        names.add(name)
    return names


def _meetings(values: Values, at_once: int) -> Iterator[tuple[tuple[str, Hashable], ...]]:
    yield from combinations([(name, values[name]) for name in sorted(values)], min(at_once, len(values)))
