"""The files of deploy/ name settings and flags that exist, and a unit that systemd takes."""

import re
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest

from lakelet.cli import commands
from lakelet.service.settings import ServiceSettings, load_settings
from tests.tidy.sources import REPOSITORY

DEPLOY = REPOSITORY / "deploy"


def test_the_settings_of_the_unit_load() -> None:
    found = load_settings({}, {}, str(DEPLOY / "service.toml"))
    unit = (DEPLOY / "lakelet.service").read_text()
    # Only these folders can be written to.
    assert "StateDirectory=lakelet" in unit
    assert "LogsDirectory=lakelet" in unit
    assert found.warehouse.startswith("/var/lib/lakelet/")
    assert str(found.wal_folder).startswith("/var/lib/lakelet/")
    assert str(found.audit_file).startswith("/var/log/lakelet/")
    stop = re.search(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert stop is not None
    assert int(stop.group(1)) > found.drain_seconds
    known = {one.name for one in fields(ServiceSettings)}
    named = re.findall(r"^#? ?(\w+) = ", (DEPLOY / "service.toml").read_text(), re.MULTILINE)
    assert set(named) <= known


@pytest.mark.parametrize("name", ["lakelet.service", "Containerfile"])
def test_flags_and_variables_exist(name: str) -> None:
    text = (DEPLOY / name).read_text()
    variables = {f"LAKELET_{one.name.upper()}" for one in fields(ServiceSettings)} | {"LAKELET_CONFIG"}
    assert set(re.findall(r"LAKELET_\w+", text)) <= variables
    flags = set(re.findall(r"lakelet serve.*?(--[a-z-]+)", text))
    assert flags <= set(commands()["serve"])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "lakelet.service"
    # The program and the user are not on this machine.
    text = (DEPLOY / "lakelet.service").read_text().replace("/opt/lakelet/bin/lakelet", "/bin/true")
    unit.write_text(text.replace("User=lakelet", "User=root"))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert "lakelet.service" not in done.stderr, done.stderr
