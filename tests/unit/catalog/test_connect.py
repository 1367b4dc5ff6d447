"""The arguments of connect()."""

from pathlib import Path

import pytest

import lakelet
from lakelet import InvalidError


@pytest.mark.parametrize("location", [None, 5, b"warehouse", ["warehouse"]])
def test_a_location_is_a_text_or_a_path(location: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidError, match="warehouse location: expected a path"):
        lakelet.connect(location)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_location_may_be_a_path(tmp_path: Path) -> None:
    assert lakelet.connect(tmp_path / "w h").location == lakelet.connect(str(tmp_path / "w h")).location


@pytest.mark.parametrize("options", ["s3.endpoint=x", [("s3.endpoint", "x")], {5: "x"}, {None: "x"}])
def test_options_are_a_mapping_of_names(options: object, tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="connection option"):
        lakelet.connect(tmp_path, options)  # type: ignore[arg-type]
