"""A text without a zone that meets a TIMESTAMP_LTZ is a moment in UTC, whatever zone the machine is in."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_ZONES = ("Asia/Kolkata", "America/St_Johns")


def test_rows_are_the_same_in_every_zone(tmp_path: Path) -> None:
    found = [_outcome(zone, tmp_path / str(number)) for number, zone in enumerate(_ZONES)]
    differing = {key: [one[key] for one in found] for key in found[0] if found[0][key] != found[1][key]}
    assert differing == {}
    first = found[0]
    assert first["millis: z < '2024-07-01 09:30:00' scan"] == list(range(8))
    for name in ("millis", "nanos", "orc"):
        assert first[f"{name}: deleted"] == list(range(8, 24))
    assert first["parted: deleted"] == first["keyed: left"] == [*range(9, 24), 100]
    assert first["get"] == {"id": 8}
    assert first["zone"] == [["UTC"]]
    assert set(first["inserted"]) == {1_719_826_200_000}
    assert first["Tokyo"] == [[4]]
    assert first["Tokyo: changed"] == [[-2], [3], [4]]
    assert first["back"] == [[3]]


def _outcome(zone: str, folder: Path) -> dict[str, object]:
    command = [sys.executable, "-m", "tests.unit.zone_paths", str(folder)]
    run = subprocess.run(command, env={**os.environ, "TZ": zone}, capture_output=True, text=True, check=False)
    if run.returncode:
        pytest.fail(run.stderr[-2000:])
    outcome: dict[str, object] = json.loads(run.stdout)
    return outcome
