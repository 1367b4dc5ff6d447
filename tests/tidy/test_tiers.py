"""Which tests a run takes, how a sample is drawn, and how work is spread over workers."""

import json
import os
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from tests.tidy.sources import REPOSITORY
from tests.tiers.cost_table import cost_key, medians, rescaled, seconds_of, updated
from tests.tiers.processor_time import processor_seconds
from tests.tiers.sample import filled, sampled, stable_order
from tests.tiers.schedule import dearest_first, work_unit
from tests.tiers.selection import CASE_SECONDS, TimeLimit
from tests.tiers.zone_tests import zone_matters

CASES = {f"{a}-{b}-{c}": {"a": a, "b": b, "c": c} for a, b, c in product(range(4), range(3), range(2))}

MODULE = """
import pytest
from hypothesis import given, strategies as st

@pytest.mark.deep
def test_deep(): ...

@pytest.mark.sampled
@pytest.mark.parametrize("a", range(4))
@pytest.mark.parametrize("b", range(3))
def test_sampled(a, b): ...

@given(st.none())
def test_random(none): ...

@pytest.mark.parametrize("seed", [7])
def test_seeded(seed): ...

@pytest.mark.soak
@pytest.mark.deep
def test_long(): ...

@pytest.mark.parametrize("number", range(20))
def test_many(number): ...
"""


class Collected:
    """Remembers the names of the tests that a run took."""

    names: tuple[str, ...] = ()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.names = tuple(item.nodeid.rpartition("::")[2] for item in session.items)


@pytest.fixture
def module(tmp_path: Path) -> Path:
    target = tmp_path / "tests" / "unit" / "test_module.py"
    target.parent.mkdir(parents=True)
    target.write_text(MODULE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = soak\n")
    return target


def taken(module: Path, *arguments: str) -> tuple[str, ...]:
    collected = Collected()
    root = module.parents[2]
    options = [
        "--collect-only",
        "-qq",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:unraisableexception",
        "-p",
        "tests.tiers.selection",
        "--import-mode=importlib",
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_ADDOPTS", "")
        status = pytest.main(
            [*options, *arguments, f"--rootdir={root}", "-c", str(root / "pytest.ini"), str(module)],
            plugins=[collected],
        )
    assert status in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}
    return collected.names


def test_a_plain_run_takes_everything(module: Path) -> None:
    assert len(taken(module)) == 1 + 12 + 1 + 1 + 1 + 20


def test_make_test_takes_a_sample_and_nothing_deep(module: Path) -> None:
    names = taken(module, "--depth=test")
    assert {name.partition("[")[0] for name in names} == {"test_sampled", "test_random", "test_seeded", "test_many"}
    shown = [name[len("test_sampled[") : -1].split("-") for name in names if "sampled" in name]
    assert len(shown) < 12
    assert {b for b, _ in shown} == {"0", "1", "2"}
    assert {a for _, a in shown} == {"0", "1", "2", "3"}


def test_other_engines_are_sampled_without_a_mark(module: Path) -> None:
    other = module.parents[1] / "spark" / module.name
    other.parent.mkdir()
    other.write_text(MODULE.replace("@pytest.mark.sampled\n", "").replace("test_sampled", "test_rule_1"))
    assert 4 <= len([name for name in taken(other, "--depth=test") if "rule_1" in name]) < 12


def test_values_that_are_equal_are_one(module: Path) -> None:
    values = "[(a, ''.join(['x', 'y'])) for a in (1, 1, 2)]"
    equal = module.with_name("test_equal.py")
    equal.write_text(
        f"import pytest\n@pytest.mark.sampled\n@pytest.mark.parametrize(('a', 'b'), {values})\ndef test_e(a, b): ...\n"
    )
    assert len(taken(equal, "--depth=test")) == 2


def test_what_a_function_may_cost_is_bounded_but_for_rules(module: Path) -> None:
    other = module.parents[1] / "spark" / "test_budget.py"
    other.parent.mkdir()
    text = "@pytest.mark.parametrize('a', range(9))\ndef test_{}(a): ...\n"
    other.write_text("import pytest\n" + text.format("dear") + text.format("rule_1"))
    names = taken(other, "--depth=test")
    assert len([name for name in names if "dear" in name]) == 1
    assert len([name for name in names if "rule_1" in name]) == 9


def test_no_folder_and_no_peer_is_left_to_deep_tests_alone(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = module.parents[1] / "other" / "test_other.py"
    other.parent.mkdir()
    root = module.parents[2]
    (root / "pytest.ini").write_text("[pytest]\nmarkers = soak\n  redis\ntestpaths = tests\n")
    other.write_text(
        "import pytest\n@pytest.mark.deep\n@pytest.mark.redis\ndef test_a(): ...\n@pytest.mark.soak\ndef test_b(): ...\n"
    )
    options = [
        "--collect-only",
        "-qq",
        "-p",
        "no:cacheprovider",
        "-p",
        "tests.tiers.selection",
        "--import-mode=importlib",
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_ADDOPTS", "")
        patch.chdir(root)
        for arguments, status in (
            (["--depth=test"], pytest.ExitCode.USAGE_ERROR),
            (["--depth=test", "-k", "test_a"], pytest.ExitCode.NO_TESTS_COLLECTED),
            ([], pytest.ExitCode.OK),
        ):
            capsys.readouterr()
            assert pytest.main([*options, *arguments, f"--rootdir={root}", "-c", str(root / "pytest.ini")]) == status
            told = "".join(capsys.readouterr())
            assert ("nothing but deep tests: peer redis, tests/other" in told) == (
                status == pytest.ExitCode.USAGE_ERROR
            )


def test_what_check_runs_is_left_out_after_it(module: Path) -> None:
    check, after = taken(module, "--depth=check"), taken(module, "--depth=test", "--after-check")
    assert sorted(check + after) == sorted(taken(module, "--depth=test"))
    assert {name.partition("[")[0] for name in check} == {"test_sampled", "test_random", "test_seeded", "test_many"}
    assert 0 < len([name for name in after if "many" in name]) < 20


def test_tidy_tests_are_all_in_check(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Named like one that is recorded as dear, which may be loaded already.
    monkeypatch.delitem(sys.modules, "tests.tidy.test_tidy", raising=False)
    other = module.parents[1] / "tidy" / "test_tidy.py"
    other.parent.mkdir()
    other.write_text("import pytest\n@pytest.mark.parametrize('a', range(90))\ndef test_functions_are_short(a): ...\n")
    assert seconds_of("tests/tidy/test_tidy.py::test_functions_are_short") > CASE_SECONDS
    assert len(taken(other, "--depth=check")) == 90


def test_a_slice_holds_what_make_test_leaves_out_or_draws(module: Path) -> None:
    names = set(taken(module, "--slice=abc"))
    assert names == set(taken(module)) - set(taken(module, "--depth=test")) - {"test_long"} | {
        "test_random",
        "test_seeded[7]",
    }


def test_slices_of_all_commits_hold_everything_and_repeat(module: Path) -> None:
    small = [taken(module, f"--slice={commit}", "--slice-seconds=0.085") for commit in range(6)]
    assert all(len(names) == 8 for names in small)
    assert {name for names in small for name in names} == set(taken(module, "--slice=abc"))
    assert taken(module, "--slice=3", "--slice-seconds=0.085") == small[3]


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_a_sample_shows_every_meeting(at_once: int) -> None:
    names = sampled(CASES, at_once=at_once)
    pairs = {(CASES[name]["a"], CASES[name]["b"]) for name in names}
    assert {a for a, _ in pairs} == set(range(4))
    assert at_once == 1 or pairs == set(product(range(4), range(3)))
    assert len(names) < 24 if at_once < 3 else len(names) == 24
    assert names == sampled(dict(reversed(CASES.items())), at_once=at_once)


def test_a_sample_has_no_more_than_asked_for_and_is_never_empty() -> None:
    assert len(sampled(CASES, at_most=2)) == 2
    assert sampled(CASES, at_most=2) < sampled(CASES)
    assert sampled({"only": {}}) == {"only"}


def test_orders_differ_by_salt_and_stay() -> None:
    names = [str(number) for number in range(50)]
    assert stable_order(names, "a") == stable_order(reversed(names), "a")
    assert stable_order(names, "a") != stable_order(names, "b")


def test_a_slice_ends_where_its_time_is_spent() -> None:
    assert filled([("a", 3), ("b", 4), ("c", 1)], 7.5) == {"a", "b"}


def test_a_cost_goes_with_the_file_wherever_it_is() -> None:
    assert cost_key("tests/unit/lsm/test_winners.py::test_y[a::b-1]") == "test_winners::test_y"
    assert cost_key("tests/unit/test_winners.py::TestX::test_y") == "test_winners::test_y"
    lines = [
        json.dumps({"test": f"a/test_x.py::test_{name}", "setup": 0, "call": call, "teardown": 1})
        for name, call in (("y[1]", 1), ("y[2]", 3), ("z", -0.99))
    ]
    assert medians(lines) == {"test_x::test_y": 3.0, "test_x::test_z": 0.01}
    table = {"test_w::test_w": 2.0, "test_x::test_y": 9.0, "test_x::test_z": 9.0}
    assert updated(table, medians(lines)) == {"test_w::test_w": 2.0, "test_x::test_y": 3.0}


def test_costs_of_another_machine_are_those_of_the_tables() -> None:
    table = {f"test_x::test_{number}": 2.0 + number for number in range(40)}
    measured = {name: cost / 2 for name, cost in table.items()} | {"test_x::test_0": 50.0, "test_x::test_new": 1.0}
    assert rescaled(table, measured)["test_x::test_new"] == 2.0
    assert rescaled(table, {"test_x::test_1": 9.0}) == {"test_x::test_1": 9.0}


def test_a_test_that_was_never_measured_costs_what_its_neighbours_cost() -> None:
    assert seconds_of("tests/spark/test_new.py::test_new") > seconds_of("tests/unit/test_new.py::test_new")


def test_one_seed_is_printed_and_used() -> None:
    lines = subprocess.run(
        ["make", "-n", "test-all"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
    assert len(re.findall(r"seed[ =]\d+", lines, re.IGNORECASE)) == 5
    assert len(set(re.findall(r"seed[ =](\d+)", lines, re.IGNORECASE))) == 1


def test_a_commit_gives_its_slice_a_seed_and_a_zone() -> None:
    script = REPOSITORY / "scripts" / "slice.sh"
    elsewhere = {name: value for name, value in os.environ.items() if name != "TZ"}
    told = [
        subprocess.run(
            [script, commit, "Asia/Kolkata", "echo"], env=elsewhere, capture_output=True, text=True, check=True
        ).stdout
        for commit in ("a", "b", "c", "d", "a")
    ]
    assert told[0].splitlines()[:2] == told[4].splitlines()[:2]
    assert {"zone Asia/Kolkata" in lines for lines in told} == {True, False}
    assert all(("tests/unit" in lines) == ("zone Asia/Kolkata" in lines) for lines in told)
    assert all(
        re.search(r"slice of (\w): seed (\d+)[^\n]*SLICE=\1\n.*--hypothesis-seed \2", lines, re.DOTALL)
        for lines in told
    )


def test_all_that_share_a_session_are_one_piece_of_work() -> None:
    assert work_unit("tests/spark/read/test_a.py::test_a") == work_unit("tests/spark/sql/test_b.py::test_b[x]")
    assert work_unit("tests/spark/cdc/test_a.py::test_a") == work_unit("tests/spark/stream/test_b.py::test_b[x]")
    assert work_unit("tests/spark/cdc/test_a.py::test_a") != work_unit("tests/spark/read/test_a.py::test_a")
    assert work_unit("tests/conformance/iceberg/test_iceberg_rest.py::t") != work_unit(
        "tests/conformance/append/test_random.py::t"
    )
    assert work_unit("tests/unit/test_a.py::TestB::test_c") == "tests/unit/test_a.py"


def test_the_dearest_piece_begins() -> None:
    tests = [
        "tests/unit/test_a.py::t",
        *(f"tests/unit/test_b.py::t[{number}]" for number in range(3)),
        "tests/unit/test_c.py::t",
    ]
    assert dearest_first(tests) == [*tests[1:4], tests[0], tests[4]]


def test_zones_matter_where_times_are_spoken_of(tmp_path: Path) -> None:
    (tmp_path / "test_t.py").write_text("column = 'TIMESTAMP(3)'")
    (tmp_path / "test_n.py").write_text("column = 'INT'")
    assert zone_matters(tmp_path / "test_t.py", tmp_path)
    assert not zone_matters(tmp_path / "test_n.py", tmp_path)
    assert zone_matters(tmp_path / "tests" / "sql" / "test_scripts.py", tmp_path)


def test_of_scripts_those_run_in_a_zone_that_speak_of_times(module: Path) -> None:
    folder = module.parents[1] / "sql"
    folder.mkdir()
    for name, text in (("times", "TIMESTAMP"), ("others", "INT")):
        (folder / name).write_text(text)
    other = folder / "test_scripts.py"
    other.write_text(
        "import pytest\nfrom pathlib import Path\n"
        "FILES = [Path(__file__).with_name(one) for one in ('times', 'others')]\n"
        "@pytest.mark.parametrize('path', FILES, ids=lambda one: one.name)\n"
        "def test_script(path): ...\n"
    )
    assert taken(other, "--zone-tests") == ("test_script[times]",)


def test_nothing_begins_after_the_limit() -> None:
    now = iter([0.0, 5.0, 10.5])
    limit = TimeLimit(10, clock=lambda: next(now))
    limit.pytest_runtest_setup()
    with pytest.raises(pytest.skip.Exception):
        limit.pytest_runtest_setup()


def test_processor_time_grows_with_work() -> None:
    before = processor_seconds()
    sum(number * number for number in range(500_000))
    assert processor_seconds() > before
