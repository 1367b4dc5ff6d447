"""Which tests a time zone can matter to: those whose file speaks of times; of SQL scripts, the script itself."""

import re
from functools import cache
from pathlib import Path

TIME_WORDS = re.compile(r"timestamp|datetime|timezone|\bzone|\btz\b|\bTIME\b|strftime|localtime", re.IGNORECASE)
ALWAYS = ("tests/sql/test_scripts.py", "tests/unit/predicate/")


def zone_matters(path: Path, root: Path) -> bool:
    relative = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
    return relative.startswith(ALWAYS) or _speaks_of_time(path)


@cache
def _speaks_of_time(path: Path) -> bool:
    return TIME_WORDS.search(path.read_text(encoding="utf-8")) is not None
