"""Every kind of file has the bytes it had: a change of format shows as a difference to a dump."""

import pytest

from tests.golden.file_dumps import dumps
from tests.golden.regenerate import FOLDER

NAMES = sorted(path.name for path in FOLDER.iterdir())


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return dumps()


def test_the_dumps_are_those_that_are_checked_in(made: dict[str, str]) -> None:
    assert sorted(made) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_dump(made: dict[str, str], name: str) -> None:
    assert made[name] == (FOLDER / name).read_text(encoding="utf-8"), "see tests/golden/regenerate.py"
