"""Processor time and memory of a process tree: a Spark driver, its JVM and its Python workers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
# Fields of /proc/<pid>/stat after the name: the parent, and the times of the process and of its children that have ended.
_PARENT, _TIMES = 1, slice(11, 15)
_USER_TIME = 11


def processor_seconds() -> float:
    """User and system time of this process and of everything that it started, also of what has ended since."""
    stats = _stats()
    return sum(sum(map(int, stats[pid][_TIMES])) for pid in _family(stats)) / _TICKS


def children_user_seconds() -> float:
    """User time of the living processes that this one started, and of those that they started."""
    stats = _stats()
    return sum(int(stats[pid][_USER_TIME]) for pid in _family(stats) if pid != os.getpid()) / _TICKS


def python_worker_peak_bytes() -> int:
    """The most memory that one Python worker of Spark's has had resident; only those that are alive count."""
    peaks = [_peak(pid) for pid in _family(_stats()) if pid != os.getpid() and _is_worker(pid)]
    return max(peaks, default=0)


def _stats() -> dict[int, list[str]]:
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (text := _read(entry / "stat")):
            found[int(entry.name)] = text.rpartition(")")[2].split()
    return found


def _family(stats: dict[int, list[str]]) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, fields in stats.items():
        children.setdefault(int(fields[_PARENT]), []).append(pid)
    family = [os.getpid()]
    for pid in family:
        family += children.get(pid, [])
    return family


def _is_worker(pid: int) -> bool:
    return "pyspark.daemon" in _read(Path("/proc", str(pid), "cmdline"))


def _peak(pid: int) -> int:
    status = _read(Path("/proc", str(pid), "status"))
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:")), 0)


def _read(path: Path) -> str:
    """A file of /proc; nothing where the process has ended."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


@dataclass(frozen=True)
class TreeBytes:
    """The memory that a process tree has resident: its Python processes, and its JVM."""

    python: int
    jvm: int


def tree_bytes() -> TreeBytes:
    """The memory that this process and everything that it started have resident now."""
    python = jvm = 0
    for pid in _family(_stats()):
        lines = _read(Path(f"/proc/{pid}/status")).splitlines()
        size = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:")), 0)
        if _read(Path("/proc", str(pid), "comm")).strip() == "java":
            jvm += size
        else:
            python += size
    return TreeBytes(python, jvm)
