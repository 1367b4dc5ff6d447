"""Which of the collected tests a run takes: `--depth`, `--after-check`, `--zone-tests`, `--slice` and `--within`.

Every test is in one tier:

- *check*: tidy tests, and of unit tests that are cheap as many cases as fit into what a function may cost; `make check`.
- *test*: everything else but what is deep; `make test` takes it with the first.
- *deep*: marked `deep`, or one of the cases of a `sampled` test that are not in its sample; `make test-all`, and slices.
  Tests of other engines are sampled without being marked: of a cross product of parameters, every value comes once. So are the
  cases of a function that together cost more than 0.6 processor seconds, 0.2 of unit tests, as many as fit.

A plain `pytest` takes all of them. A sample always shows every value of every parameter (tests/tiers/sample.py), and is the same
in every run, so that a test that fails fails again.

A run of `make test` in which a folder of tests, or a peer, has nothing but deep tests ends before it begins: no mark and no
budget takes a capability out of it.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path

import pytest

from tests.tiers.cost_table import seconds_of
from tests.tiers.sample import filled, sampled, stable_order
from tests.tiers.zone_tests import zone_matters

CHECK_FOLDERS = ("tests/unit/", "tests/tidy/")
# Taken whole by `make check`, whatever they cost.
WHOLE_FOLDER = "tests/tidy/"
# Where every case costs a round through another engine, tests with parameters are sampled without being marked.
SAMPLED_FOLDERS = ("tests/conformance/", "tests/spark/")
# What the cases of one function may cost together in `make test`; correctness rules and crash tests are whole.
TEST_SECONDS = {
    "tests/unit/": 0.2,
    "tests/conformance/": 0.6,
    "tests/spark/": 0.6,
    "tests/integration/": 0.6,
    "tests/e2e/": 0.6,
    "tests/iceberg/": 0.6,
}
# What a case, and all cases of a function together, may cost in `make check`; the rest waits for `make test`.
CASE_SECONDS = 0.1
FUNCTION_SECONDS = 0.06

# Marks of tests that need a peer.
PEERS = ("s3", "redis", "java", "pypaimon", "iceberg_spark", "iceberg_rest", "spark")

Wanted = Callable[[pytest.Item], bool]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tiers", "which tests to take (docs/testing.md)")
    group.addoption("--depth", choices=("check", "test", "all"), default="all", help="the deepest tier to run")
    group.addoption("--after-check", action="store_true", help="leave out what --depth=check runs")
    group.addoption(
        "--zone-tests",
        action="store_true",
        help="only tests that a time zone can matter to, of unit tests the cheap ones",
    )
    group.addoption("--without-cache", action="store_true", help="leave out tests of the metadata cache itself")
    group.addoption(
        "--slice", metavar="COMMIT", help="a part, chosen by the commit, of what --depth=test does not run whole"
    )
    group.addoption("--slice-seconds", type=float, default=700.0, help="processor seconds that a slice may cost")
    group.addoption("--within", type=float, metavar="SECONDS", help="skip what has not begun by then")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "deep: left to `make test-all` and to slices; something shallower covers it")
    config.addinivalue_line(
        "markers",
        "sampled(pairs=False, at_most=None): `make test` runs cases that show every value, or pair of values, of parameters",
    )
    config.addinivalue_line("markers", "caches: needs the metadata cache, which `--without-cache` runs do not have")
    within = config.getoption("--within")
    if within is not None:
        config.pluginmanager.register(TimeLimit(within), "lakelet-within")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = _wanted(config, items)
    taken = [item for item in items if all(want(item) for want in wanted)]
    if len(taken) < len(items):
        kept = set(map(id, taken))
        config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
        items[:] = taken


class TimeLimit:
    """Skips every test that would begin after the limit."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seconds = seconds
        self._end = clock() + seconds

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        if self._clock() > self._end:
            pytest.skip(f"the {self._seconds:.0f} s of this run have passed")


def _wanted(config: pytest.Config, items: list[pytest.Item]) -> list[Wanted]:
    deep = _deep(items)
    if config.getoption("--depth") == "test" and _takes_everything(config) and (missing := uncovered(items, deep)):
        raise pytest.UsageError(f"nothing but deep tests: {', '.join(missing)} (docs/testing.md)")
    check = _check(items, deep)
    found: list[Wanted] = []
    if config.getoption("--depth") != "all":
        found.append(lambda item: item.nodeid not in deep)
    if config.getoption("--depth") == "check":
        found.append(lambda item: item.nodeid in check)
    if config.getoption("--after-check"):
        found.append(lambda item: item.nodeid not in check)
    if config.getoption("--zone-tests"):
        found.append(lambda item: zone_matters(_spoken_in(item), config.rootpath))
        found.append(lambda item: item.nodeid in check or not item.nodeid.startswith(CHECK_FOLDERS))
    if config.getoption("--without-cache"):
        found.append(lambda item: "cache" not in item.nodeid.lower() and item.get_closest_marker("caches") is None)
    commit = config.getoption("--slice")
    if commit is not None:
        chosen = _slice(items, deep, commit, config.getoption("--slice-seconds"))
        found.append(lambda item: item.nodeid in chosen)
    return found


def _takes_everything(config: pytest.Config) -> bool:
    """Whether no part of the tests was asked for by name or mark."""
    return not any(config.getoption(name) for name in ("file_or_dir", "keyword", "markexpr"))


def uncovered(items: list[pytest.Item], deep: set[str]) -> list[str]:
    """Folders and peers all of whose tests are deep."""
    there, covered = set[str](), set[str]()
    for item in items:
        if item.get_closest_marker("soak") is None:
            subjects = {item.nodeid.partition("::")[0].rpartition("/")[0]}
            subjects |= {f"peer {peer}" for peer in PEERS if item.get_closest_marker(peer) is not None}
            there |= subjects
            if item.nodeid not in deep:
                covered |= subjects
    return sorted(there - covered)


def _check(items: list[pytest.Item], deep: set[str]) -> set[str]:
    """Tidy tests, and every cheap function with at least one case."""
    functions = defaultdict(list)
    found = set()
    for item in items:
        if item.nodeid in deep or not item.nodeid.startswith(CHECK_FOLDERS):
            continue
        if item.nodeid.startswith(WHOLE_FOLDER):
            found.add(item.nodeid)
        elif seconds_of(item.nodeid) <= CASE_SECONDS:
            functions[item.nodeid.partition("[")[0]].append(item.nodeid)
    for cases in functions.values():
        first, *others = stable_order(cases)
        left = FUNCTION_SECONDS - seconds_of(first)
        found |= {first, *filled([(name, seconds_of(name)) for name in others], left)}
    return found


def _slice(items: list[pytest.Item], deep: set[str], commit: str, seconds: float) -> set[str]:
    """Deep tests, and random ones, whose examples are fewer in `make test`; soak tests have a target of their own."""
    rest = [
        item.nodeid
        for item in items
        if (item.nodeid in deep or _draws_examples(item)) and item.get_closest_marker("soak") is None
    ]
    return filled([(name, seconds_of(name)) for name in stable_order(rest, commit)], seconds)


def _draws_examples(item: pytest.Item) -> bool:
    """By Hypothesis, or from a seed that it is given as a parameter."""
    drawn = getattr(getattr(item, "function", None), "is_hypothesis_test", False)
    return bool(drawn) or "seed" in _parameters(item)


def _sample_mark(item: pytest.Item) -> pytest.Mark | None:
    return item.get_closest_marker("sampled")


def _parameters(item: pytest.Item) -> Mapping[str, object]:
    return getattr(getattr(item, "callspec", None), "params", {})


def _deep(items: list[pytest.Item]) -> set[str]:
    found = {item.nodeid for item in items if item.get_closest_marker("deep") is not None}
    functions = defaultdict(dict)
    for item in items:
        if item.nodeid not in found and (
            _parameters(item) if item.nodeid.startswith(SAMPLED_FOLDERS) else _sample_mark(item)
        ):
            functions[item.nodeid.partition("[")[0]][item.nodeid] = item
    for cases in functions.values():
        wishes = getattr(_sample_mark(next(iter(cases.values()))), "kwargs", {})
        values = {
            name: {key: _identity(value) for key, value in _parameters(item).items()} for name, item in cases.items()
        }
        found |= set(cases) - sampled(values, at_once=2 if wishes.get("pairs") else 1, at_most=wishes.get("at_most"))
    return found | _beyond_budget(items, found)


def _beyond_budget(items: list[pytest.Item], deep: set[str]) -> set[str]:
    """Cases that do not fit into what a function may cost; its first case in stable order always stays."""
    functions = defaultdict(list)
    for item in items:
        if (
            item.nodeid.startswith(tuple(TEST_SECONDS))
            and item.nodeid not in deep
            and "::test_rule_" not in item.nodeid
        ):
            functions[item.nodeid.partition("[")[0]].append(item.nodeid)
    found = set()
    for cases in functions.values():
        first, *others = stable_order(cases)
        budget = next(seconds for folder, seconds in TEST_SECONDS.items() if first.startswith(folder))
        left = budget - seconds_of(first)
        found |= set(others) - filled([(name, seconds_of(name)) for name in others], left)
    return found


def _spoken_in(item: pytest.Item) -> Path:
    """The file that says what a test does: the script that it runs, or its own."""
    script = _parameters(item).get("path")
    return script if isinstance(script, Path) else item.path


def _identity(value: object) -> Hashable:
    """What tells two values of a parameter apart; the cases of a test share the objects that have no hash."""
    return value if isinstance(value, Hashable) else id(value)
