"""The memory in use and its limit, as the operating system says: of the control group (container) that the process runs in, or of
the machine where it has no limit.

    version 2    <group>/memory.max, memory.current, memory.stat         "max" is no limit
    version 1    <group>/memory.limit_in_bytes, memory.usage_in_bytes    a number near 2^63 is no limit
    machine      /proc/meminfo: MemTotal, MemAvailable

Pages of files that the kernel can drop at once (`inactive_file`) count as free. The groups above a group limit it, too: the
tightest is taken. Where nothing can be read, as on other systems than Linux, there is no answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_UNLIMITED = 1 << 60


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes in use, and how many there may be."""

    used: int
    limit: int

    @property
    def ratio(self) -> float:
        """The share in use."""
        return self.used / self.limit


def memory_use(root: Path = Path("/")) -> MemoryUse | None:
    """The memory of the tightest group, of the machine without any; None where it is unknown. `root` holds /proc and /sys."""
    found = [*_groups(root)]
    machine = _machine(root)
    if machine is not None:
        # A limit above the machine's memory is none.
        found = [one for one in found if one.limit < machine.limit]
        if not found:
            return machine
    return max(found, key=lambda one: one.ratio, default=None)


def _groups(root: Path) -> list[MemoryUse]:
    found = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            found += _of_group(root / "sys/fs/cgroup", path, "memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            found += _of_group(root / "sys/fs/cgroup/memory", path, *names)
    return found


def _of_group(mount: Path, path: str, limit_name: str, used_name: str, free_name: str) -> list[MemoryUse]:
    """The group of this path and those above it. In a container its own group is often mounted as the uppermost."""
    found = []
    parts = [part for part in path.split("/") if part not in ("", "..", ".")]
    for depth in range(len(parts), -1, -1):
        folder = mount.joinpath(*parts[:depth])
        limit, used = _number(_text(folder / limit_name)), _number(_text(folder / used_name))
        if limit is None or used is None or not 0 < limit < _UNLIMITED:
            continue
        free = _entry(_text(folder / "memory.stat"), free_name, " ") or 0
        found.append(MemoryUse(max(used - free, 0), limit))
    return found


def _machine(root: Path) -> MemoryUse | None:
    text = _text(root / "proc/meminfo")
    total, available = _entry(text, "MemTotal", ":"), _entry(text, "MemAvailable", ":")
    if not total or available is None:
        return None
    return MemoryUse(max(total - available, 0) * 1024, total * 1024)


def _entry(text: str, name: str, separator: str) -> int | None:
    for line in text.splitlines():
        key, _, value = line.partition(separator)
        if key == name:
            return _number(value.replace("kB", ""))
    return None


def _number(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
