"""The lock files pin what pyproject.toml asks for, by version and hash, and name no index."""

import re
import tomllib

import pytest

from tests.tidy.sources import REPOSITORY

PYPAIMON = "tests/conformance/pypaimon/requirements.lock"


def pinned(lock: str) -> set[str]:
    text = (REPOSITORY / lock).read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z0-9.-]+)==", text, flags=re.MULTILINE))


def asked(requirements: list[str]) -> set[str]:
    names = (re.match(r"[A-Za-z0-9._-]+", requirement) for requirement in requirements)
    return {re.sub(r"[._-]+", "-", name.group()).lower() for name in names if name is not None}


def test_the_locks_have_every_dependency() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    runtime = asked(project["project"]["dependencies"])
    assert runtime
    assert runtime - pinned("requirements.lock") == set()
    assert (runtime | asked(project["dependency-groups"]["dev"])) - pinned("requirements-dev.lock") == set()
    wanted = (REPOSITORY / PYPAIMON).with_suffix(".in").read_text(encoding="utf-8").splitlines()
    assert asked(wanted) - pinned(PYPAIMON) == set()


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock", PYPAIMON])
def test_every_pin_has_hashes_and_no_address(lock: str) -> None:
    text = (REPOSITORY / lock).read_text(encoding="utf-8")
    entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(entries) > 5
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    assert "://" not in text
