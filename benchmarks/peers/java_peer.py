"""Check whether Java Paimon is available as a contender, and run its process."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.rounds import REPOSITORY, Measured, run_task

HEAP = "4g"
_JARS = REPOSITORY / "tests" / "conformance" / "java" / "jars.sha256"


def java_missing() -> str | None:
    """Why it is not available; None where it is."""
    found = subprocess.run(
        [str(REPOSITORY / "scripts" / "setup-java.sh"), "--print-home"], capture_output=True, check=False
    )
    if found.returncode:
        return "there is no Java 17 or later with javac (make setup-java)"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lakelet" / "jars"
    names = [line.split()[1] for line in _JARS.read_text(encoding="ascii").splitlines()]
    missing = [name for name in names if not (cache / name).is_file()]
    return f"{', '.join(missing)} not in {cache} (make setup-conformance)" if missing else None


def run_java(task: str, arguments: Mapping[str, Any]) -> Measured:
    """One task of `java_tasks.py`, with a heap that is not what slows it down."""
    return run_task("peers/java_tasks.py", task, arguments, more_environment={"JUDGE_MEMORY": HEAP})
