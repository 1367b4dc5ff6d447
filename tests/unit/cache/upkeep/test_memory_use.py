"""The memory in use, read from a made-up /proc and /sys."""

from pathlib import Path

from lakelet.cache.upkeep.memory_use import MemoryUse, memory_use

MEMINFO = "MemTotal:       1000 kB\nMemFree:         10 kB\nMemAvailable:    400 kB\n"


def made(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_the_machine_where_there_is_no_group(tmp_path: Path) -> None:
    found = memory_use(made(tmp_path, {"proc/meminfo": MEMINFO}))
    assert found == MemoryUse(600 * 1024, 1000 * 1024)
    assert found.ratio == 0.6


def test_a_group_of_version_2_without_pages_that_can_be_dropped(tmp_path: Path) -> None:
    group = "sys/fs/cgroup/pods/one"
    files = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": "0::/pods/one\n",
        f"{group}/memory.max": "1000\n",
        f"{group}/memory.current": "900\n",
        f"{group}/memory.stat": "anon 100\ninactive_file 300\nactive_file 5\n",
        "sys/fs/cgroup/pods/memory.max": "max\n",
        "sys/fs/cgroup/pods/memory.current": "5000\n",
    }
    assert memory_use(made(tmp_path, files)) == MemoryUse(600, 1000)


def test_the_tightest_of_the_groups_above(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": "0::/a/b\n",
        "sys/fs/cgroup/a/b/memory.max": "1000",
        "sys/fs/cgroup/a/b/memory.current": "100",
        "sys/fs/cgroup/a/memory.max": "2000",
        "sys/fs/cgroup/a/memory.current": "1900",
    }
    assert memory_use(made(tmp_path, files)) == MemoryUse(1900, 2000)


def test_a_container_that_is_mounted_as_the_uppermost_group(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": "0::/../../kubepods/x\n",
        "sys/fs/cgroup/memory.max": "500",
        "sys/fs/cgroup/memory.current": "450",
    }
    assert memory_use(made(tmp_path, files)) == MemoryUse(450, 500)


def test_a_group_of_version_1(tmp_path: Path) -> None:
    group = "sys/fs/cgroup/memory/docker/x"
    files = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": "5:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n0::/\n",
        f"{group}/memory.limit_in_bytes": "1000",
        f"{group}/memory.usage_in_bytes": "900",
        f"{group}/memory.stat": "total_inactive_file 50\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "1",
    }
    assert memory_use(made(tmp_path, files)) == MemoryUse(850, 1000)


def test_a_limit_above_the_machines_memory_is_none(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/memory.max": str(1 << 40),
        "sys/fs/cgroup/memory.current": "1",
    }
    assert memory_use(made(tmp_path, files)) == MemoryUse(600 * 1024, 1000 * 1024)


def test_nothing_to_read_is_no_answer(tmp_path: Path) -> None:
    assert memory_use(tmp_path) is None
    assert memory_use(made(tmp_path, {"proc/meminfo": "nonsense\n", "proc/self/cgroup": "x\n"})) is None


def test_this_machine_can_be_asked() -> None:
    found = memory_use()
    assert found is None or 0 < found.ratio < 10
