"""Write the results of a run into RESULTS.md: one section per benchmark, between two comments, replaced by the next run.

    <!-- merge_read -->
    ## merge_read
    …
    <!-- /merge_read -->

The text around these sections is written by people and never touched. A section that is new goes to the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.benchmark import Result

PAGE = Path(__file__).parent / "RESULTS.md"


def put_section(name: str, description: str, results: Sequence[Result], report: dict[str, Any], rounds: int) -> None:
    """Writes the section of one benchmark."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    section = "\n".join([begin, *_lines(name, description, results, report, rounds), end])
    page = PAGE.read_text(encoding="utf-8")
    if begin in page:
        before, rest = page.split(begin, 1)
        _, after = rest.split(end, 1)
        page = f"{before}{section}{after}"
    else:
        page = f"{page.rstrip()}\n\n{section}\n"
    PAGE.write_text(page, encoding="utf-8")


def _lines(name: str, description: str, results: Sequence[Result], report: dict[str, Any], rounds: int) -> list[str]:
    machine = report["machine"]
    share = "" if report["share"] == 1 else f", {report['share']:g} of the full size"
    return [
        f"## {name}",
        "",
        description,
        f"Commit {report['commit']}, {machine['time'][:10]}, {rounds} rounds{share}; load of the machine before: "
        f"{machine['load_before']:.1f}.",
        "",
        "| what | target | found | |",
        "| --- | --- | --- | --- |",
        *(f"| {one.name} | {one.target} | {one.text} | {_verdict(one)} |" for one in results),
    ]


def _verdict(result: Result) -> str:
    if result.reached is None:
        return ""
    return "held" if result.reached else "missed"
