"""The rules find what they are for, and leave alone what they should."""

import ast
from collections.abc import Callable, Iterator
from pathlib import PurePath

import pytest

from tests.tidy import rules

TreeRule = Callable[[ast.Module], Iterator[str]]
TextRule = Callable[[str], Iterator[str]]


def whole(text: str) -> str:
    """Banned text is written here with a bar in it, so that this file keeps the rules too."""
    return text.replace("|", "")


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        (rules.banned_names, "class SnapshotManager: ..."),
        (rules.banned_names, "class StoreImpl: ..."),
        (rules.banned_names, "class BaseStore: ..."),
        (rules.banned_names, "def read_v2(): ..."),
        (rules.unnamed_errors, "raise ValueError('no')"),
        (rules.unnamed_errors, "raise Exception"),
        (rules.unnamed_errors, "try: ...\nexcept: raise"),
        (rules.unnamed_errors, "try: ...\nexcept Exception: pass"),
        (rules.no_docstring, "import os"),
        (rules.no_docstring, "' '"),
        (rules.ambient_calls, "import time\ntime.time()"),
        (rules.ambient_calls, "import time\ndef f(now=time.time_ns): ..."),
        (rules.ambient_calls, "from time import sleep as nap\nnap(1)"),
        (rules.ambient_calls, "import datetime as dt\ndt.datetime.now()"),
        (rules.ambient_calls, "from datetime import datetime\ndatetime.now()"),
        (rules.ambient_calls, "import random\nrandom.random()"),
        (rules.ambient_calls, "from uuid import uuid4\nuuid4()"),
        (rules.ambient_calls, "import numpy as np\nnp.random.default_rng()"),
        (rules.long_functions, "def f():\n" + "    pass\n" * 70),
    ],
)
def test_found_in_code(rule: TreeRule, code: str) -> None:
    assert len(list(rule(ast.parse(code)))) == 1


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        (rules.banned_names, "class Database: ...\nclass Implied: ...\nclass Management: ..."),
        (rules.unnamed_errors, "raise InvalidError('no')\ntry: ...\nexcept OSError: pass"),
        (rules.no_docstring, "'''Encodes rows.'''"),
        (rules.ambient_calls, "import datetime\nimport uuid\ndatetime.datetime(2024, 1, 1)\nuuid.UUID('0')"),
        (rules.ambient_calls, "def f(clock, random): return clock.time.time() + random.random()"),
        (rules.long_functions, "def f():\n" + "    pass\n" * 69),
    ],
)
def test_left_alone_in_code(rule: TreeRule, code: str) -> None:
    assert list(rule(ast.parse(code))) == []


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (rules.too_long, "\n" * 501),
        (rules.unfinished, "# TO|DO: later"),
        (rules.machine_details, "cd /wo|rk/main"),
        (rules.machine_details, "see ../sha|red/notes.md"),
        (rules.machine_details, "https://py|pi.org/simple"),
        (rules.machine_details, "--index|-url https://example.com"),
        (rules.riddles, "Which files co|me and go."),
        (rules.riddles, "Snapshots co|mes\n    and goes with them."),
        (rules.riddles, "# That is a mat|ter\n    # of taste."),
        (rules.riddles, "Rows that do not cou|nt any more."),
        (rules.riddles, "A table that is no mo|re."),
        (rules.riddles, "The statement, tak|en apart."),
        (rules.riddles, "Tasks that are dea|lt to executors."),
        (rules.riddles, "Letting go o|f old snapshots."),
        (rules.riddles, "Manifests that are put\n# togeth|er."),
        (rules.riddles, "Rows that are told apa|rt."),
        (rules.riddles, "Once the commit stan|ds."),
        (rules.riddles, "Tags whose time is ov|er."),
        (rules.riddles, "Batches of at most so ma|ny rows."),
    ],
)
def test_found_in_text(rule: TextRule, text: str) -> None:
    assert len(list(rule(whole(text)))) == 1


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (rules.too_long, "\n" * 500),
        (rules.unfinished, "todos los días"),
        (rules.riddles, "Files that are added; it does not matter, of course, how many. Anything more counts."),
        (rules.riddles, "A window that is no more than a batch. Dealing with so many rows is slow."),
        (rules.machine_details, "s3://bucket/work/orders, $HOME/work/x, ~/.cache, --no-emit-index|-url"),
    ],
)
def test_left_alone_in_text(rule: TextRule, text: str) -> None:
    assert list(rule(whole(text))) == []


def test_module_names() -> None:
    assert list(rules.banned_module_name(PurePath("src/lakelet/utils/rows.py")))
    assert list(rules.banned_module_name(PurePath("src/lakelet/row_helpers.py")))
    assert list(rules.banned_module_name(PurePath("src/lakelet/scan_v2.py")))
    assert not list(rules.banned_module_name(PurePath("src/lakelet/scan/rows.py")))


def test_modules_are_named_after_things() -> None:
    assert list(rules.gerund_module_name(PurePath("src/lakelet/storage/trying.py")))
    assert list(rules.gerund_module_name(PurePath("src/lakelet/scan/file_packing.py")))
    for noun in ("scan/key_pruning", "model/string", "storage/retry", "compact/all_or_nothing", "scan/ingest"):
        assert not list(rules.gerund_module_name(PurePath(f"src/lakelet/{noun}.py")))


def test_crowded_folders() -> None:
    modules = [PurePath(f"src/lakelet/scan/m{number}.py") for number in range(rules.MAX_FOLDER_MODULES)]
    beside = [
        PurePath("src/lakelet/scan/__init__.py"),
        PurePath("src/lakelet/scan/plan/splits.py"),
        PurePath("src/lakelet/scan/x.md"),
    ]
    assert not list(rules.crowded_folders([*modules, *beside]))
    assert len(list(rules.crowded_folders([*modules, PurePath("src/lakelet/scan/one_more.py")]))) == 1
