"""Every file of the project keeps the rules."""

import ast
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from tests.tidy import rules
from tests.tidy.sources import project_files, python_files, text_of, tree_of

CODE_SUFFIXES = (".py", ".sh", ".java")
# The root is the first that a stranger sees; what a program leaves behind there would be committed with the next change.
ROOT_FILES = frozenset(
    (
        *(
            ".gitattributes",
            ".gitignore",
            ".pre-commit-config.yaml",
            ".python-version",
            "ARCHITECTURE.md",
            "CHANGELOG.md",
        ),
        *("CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "SECURITY.md", "pyproject.toml"),
        *("requirements-dev.lock", "requirements.lock"),
    )
)
ROOT_FOLDERS = frozenset((".ci", ".github", "benchmarks", "deploy", "docs", "examples", "scripts", "src", "tests"))
DUCKDB_INSTANCE = Path("src/lakelet/predicate/instance.py")
CLOCK_AND_IDS = (Path("src/lakelet/clock.py"), Path("src/lakelet/ids.py"))


def assert_none(findings: Iterable[tuple[Path, str]]) -> None:
    listed = [f"{path}:{finding}" for path, finding in findings]
    assert not listed, "\n" + "\n".join(listed)


def in_trees(paths: Iterable[Path], rule: Callable[[ast.Module], Iterator[str]]) -> Iterator[tuple[Path, str]]:
    return ((path, finding) for path in paths for finding in rule(tree_of(path)))


def in_texts(paths: Iterable[Path], rule: Callable[[str], Iterator[str]]) -> Iterator[tuple[Path, str]]:
    return ((path, finding) for path in paths for finding in rule(text_of(path) or ""))


def test_there_is_something_to_check() -> None:
    assert python_files("src")


def test_files_are_short() -> None:
    assert_none(in_texts((path for path in project_files() if path.suffix in CODE_SUFFIXES), rules.too_long))


def test_functions_are_short() -> None:
    assert_none(in_trees(python_files(), rules.long_functions))


def test_modules_have_telling_names() -> None:
    assert_none((path, finding) for path in python_files() for finding in rules.banned_module_name(path))


def test_modules_are_named_after_things() -> None:
    assert_none((path, finding) for path in python_files("src") for finding in rules.gerund_module_name(path))


def test_folders_are_small() -> None:
    assert not list(rules.crowded_folders(python_files("src")))


def test_words_are_the_fields_own() -> None:
    """The changelog tells history, in the words that it had."""
    read = (path for path in project_files() if path.suffix in (".md", *CODE_SUFFIXES) and path.name != "CHANGELOG.md")
    assert_none(in_texts(read, rules.riddles))


@pytest.mark.parametrize(
    "rule", [rules.banned_names, rules.unnamed_errors, rules.no_docstring], ids=lambda rule: rule.__name__
)
def test_source(rule: Callable[[ast.Module], Iterator[str]]) -> None:
    assert_none(in_trees(python_files("src"), rule))


def test_clock_and_randomness_are_injected() -> None:
    injected = (path for path in python_files("src") if path not in CLOCK_AND_IDS)
    assert_none(in_trees(injected, rules.ambient_calls))


@pytest.mark.parametrize("rule", [rules.unfinished, rules.machine_details], ids=lambda rule: rule.__name__)
def test_text(rule: Callable[[str], Iterator[str]]) -> None:
    assert_none(in_texts(project_files(), rule))


def test_the_root_holds_nothing_unknown() -> None:
    firsts = {path.parts[0] for path in project_files() if len(path.parts) > 1}
    files = {path.name for path in project_files() if len(path.parts) == 1}
    assert firsts - ROOT_FOLDERS == set()
    assert files - ROOT_FILES == set()


def test_duckdb_is_opened_in_one_place() -> None:
    """Where its time zone is set: a text means the same moment on every machine."""
    others = (path for path in python_files("src") if path != DUCKDB_INSTANCE)
    assert_none((path, "opens DuckDB itself") for path in others if "duckdb.connect(" in (text_of(path) or ""))
