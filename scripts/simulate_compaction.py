#!/usr/bin/env python3
"""Run Lakelet's compaction policy over commits of made-up sizes, without any file, and print or draw what the levels do.

    scripts/simulate_compaction.py --commits 2000 --trigger 5 --option num-levels=8
    scripts/simulate_compaction.py --picture docs/compaction.svg     the picture in docs/compaction.md

Sizes are in units of an average commit. With --keys n the rows fall on n keys at random, so that merged runs shrink as
rows replace each other; without it every row is new.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakelet.lsm.levels import level_runs
from lakelet.lsm.universal import UniversalPolicy
from lakelet.model.data_file import DataFile, Stats
from lakelet.options import TableOptions, check_options

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "compaction.svg"

_COMMIT_BYTES = 1_000_000
_NO_STATS = Stats(b"", b"", None)
_LEFT, _WIDTH, _LANE, _CURVE, _GAP = 70, 900, 40, 90, 34
_COLOURS = ("#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#08519c", "#08306b")


@dataclass(frozen=True, slots=True)
class Load:
    """What is written: how many commits, how much their sizes differ, and on how many keys (0: all are new)."""

    commits: int = 64
    jitter: float = 0.0
    keys: int = 0
    seed: int = 1
    commit_bytes: int = _COMMIT_BYTES


@dataclass(frozen=True, slots=True)
class Life:
    """A file from the commit that made it to the one that merged it away; `died` is the last commit + 1 if it still lives."""

    level: int
    size: float
    born: int
    died: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the levels did: the life of every file, and after each commit the number of runs and the bytes written so far."""

    policy: UniversalPolicy
    lives: tuple[Life, ...]
    runs: tuple[int, ...]
    flushed: tuple[float, ...]
    written: tuple[float, ...]

    @property
    def amplification(self) -> list[float]:
        """Bytes written for each byte flushed, after each commit."""
        return [written / flushed for written, flushed in zip(self.written, self.flushed, strict=True)]


def simulate(policy: UniversalPolicy, load: Load) -> Outcome:
    """Commits one after the other, with all compactions that the policy asks for right after each."""
    chance = random.Random(load.seed)
    live: dict[str, tuple[DataFile, int]] = {}
    lives: list[Life] = []
    runs, flushed, written = [], [], []
    total_flushed = total_written = 0

    def add(level: int, size: int, commit: int, sequence: int) -> None:
        nonlocal total_written
        name = f"{commit}-{level}-{len(lives)}-{len(live)}"
        live[name] = (_file(name, level, size, sequence), commit)
        total_written += size

    for commit in range(1, load.commits + 1):
        size = round(load.commit_bytes * (1 + chance.uniform(-load.jitter, load.jitter)))
        total_flushed += size
        add(0, size, commit, commit)
        while unit := policy.pick(level_runs(file for file, _ in live.values()), now_ms=0):
            for file in unit.files:
                born = live.pop(file.name)[1]
                lives.append(Life(file.level, file.size / load.commit_bytes, born, commit))
            add(
                unit.output_level,
                _merged([file.size for file in unit.files], load.keys * load.commit_bytes),
                commit,
                commit,
            )
        runs.append(len(level_runs(file for file, _ in live.values())))
        flushed.append(total_flushed / load.commit_bytes)
        written.append(total_written / load.commit_bytes)
    ends = load.commits + 1
    lives.extend(Life(file.level, file.size / load.commit_bytes, born, ends) for file, born in live.values())
    return Outcome(policy, tuple(lives), tuple(runs), tuple(flushed), tuple(written))


def _file(name: str, level: int, size: int, sequence: int) -> DataFile:
    return DataFile(
        name=name,
        size=size,
        row_count=size,
        min_key=b"",
        max_key=b"",
        key_stats=_NO_STATS,
        value_stats=_NO_STATS,
        min_sequence=sequence,
        max_sequence=sequence,
        schema_id=0,
        level=level,
    )


def _merged(sizes: Sequence[int], space: int) -> int:
    """Bytes that runs have together: their sum, or the expected share of all keys, whose total is given in bytes."""
    if not space:
        return sum(sizes)
    missed = 1.0
    for size in sizes:
        missed *= 1 - min(size / space, 1.0)
    return max(1, round(space * (1 - missed)))


def report(outcome: Outcome) -> Iterator[str]:
    """Lines that say how it went: at ten points of time, and in all."""
    commits = len(outcome.runs)
    yield "commit  runs  write amplification  levels (size)"
    for place in sorted({max(1, commits * part // 10) for part in range(1, 11)}):
        sizes: dict[int, float] = {}
        for life in outcome.lives:
            if life.born <= place < life.died:
                sizes[life.level] = sizes.get(life.level, 0) + life.size
        levels = "  ".join(f"{level}: {sizes[level]:.1f}" for level in sorted(sizes))
        yield f"{place:6}  {outcome.runs[place - 1]:4}  {outcome.amplification[place - 1]:19.2f}  {levels}"
    merges = sum(life.level > 0 for life in outcome.lives)
    yield f"{commits} commits, {merges} compactions, at most {max(outcome.runs)} runs"


def draw(outcome: Outcome) -> str:
    """The picture: a lane for each level with its files, below it the runs and the write amplification."""
    commits = len(outcome.runs)
    levels = sorted({life.level for life in outcome.lives} | {0, outcome.policy.num_levels - 1})
    tops = {level: _GAP + place * _LANE for place, level in enumerate(levels)}
    bottom = _GAP + len(levels) * _LANE
    height = bottom + 2 * (_GAP + _CURVE) + _GAP
    scale = _WIDTH / commits
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 20} {height}" font-family="sans-serif"'
        ' font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{_LEFT}" y="20">files of each level over {commits} commits; a number is a size in commits</text>',
    ]
    for level, top in tops.items():
        parts.append(f'<text x="8" y="{top + 24}">level {level}</text>')
        parts.append(f'<path d="M{_LEFT} {top + _LANE - 1}h{_WIDTH}" stroke="#ddd"/>')
    slots = _slots([life for life in outcome.lives if life.level == 0])
    for life in sorted(outcome.lives, key=lambda life: (life.level, life.born, life.died)):
        parts.extend(_bar(life, tops[life.level], scale, slots))
    trigger = outcome.policy.trigger
    parts.extend(_curve("sorted runs", [float(count) for count in outcome.runs], bottom + _GAP, trigger))
    parts.extend(_curve("write amplification", outcome.amplification, bottom + 2 * _GAP + _CURVE, None))
    parts.append(f'<text x="{_LEFT}" y="{height - 8}">commit 1</text>')
    parts.append(f'<text x="{_LEFT + _WIDTH}" y="{height - 8}" text-anchor="end">commit {commits}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _slots(fresh: Sequence[Life]) -> dict[Life, tuple[int, int]]:
    """For each file of level 0 the line it is drawn on, and how many lines there are; no file covers another."""
    ends: list[int] = []
    places: dict[Life, int] = {}
    for life in sorted(fresh, key=lambda life: life.born):
        place = next((slot for slot, end in enumerate(ends) if end <= life.born), len(ends))
        if place == len(ends):
            ends.append(0)
        ends[place] = life.died
        places[life] = place
    return {life: (place, len(ends)) for life, place in places.items()}


def _bar(life: Life, top: int, scale: float, slots: dict[Life, tuple[int, int]]) -> Iterator[str]:
    if life.born == life.died and life.level > 0:
        return
    x, width = _LEFT + (life.born - 1) * scale, max((life.died - life.born) * scale - 1, 1.5)
    slot, lines = slots.get(life, (0, 1))
    room = (_LANE - 4) / lines
    colour = _COLOURS[min(life.level, len(_COLOURS) - 1)]
    yield (
        f'<rect x="{x:.1f}" y="{top + slot * room + 1:.1f}" width="{width:.1f}" height="{room - 1:.1f}" fill="{colour}">'
        f"<title>level {life.level}, {life.size:.1f} commits, from {life.born} to {life.died - 1}</title></rect>"
    )
    label = f"{life.size:.0f}"
    if lines == 1 and width > 7 * len(label):
        ink = "black" if life.level < 2 else "white"
        yield f'<text x="{x + width / 2:.1f}" y="{top + 23}" text-anchor="middle" fill="{ink}">{label}</text>'


def _curve(title: str, values: Sequence[float], top: int, mark: int | None) -> Iterator[str]:
    most = max(*values, mark or 0)
    step = _WIDTH / len(values)
    heights = [top + _CURVE - value / most * _CURVE for value in values]
    path = (
        f"M{_LEFT} {heights[0]:.1f}" + "".join(f"h{step:.2f}V{height:.1f}" for height in heights[1:]) + f"h{step:.2f}"
    )
    yield f'<text x="{_LEFT}" y="{top - 6}">{title}, at most {max(values):.2g}</text>'
    yield f'<path d="M{_LEFT} {top + _CURVE}h{_WIDTH}" stroke="#ddd"/>'
    if mark is not None:
        y = top + _CURVE - mark / most * _CURVE
        yield f'<path d="M{_LEFT} {y:.1f}h{_WIDTH}" stroke="#c33" stroke-dasharray="4 3"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#c33">trigger {mark}</text>'
    yield f'<path d="{path}" fill="none" stroke="#2171b5" stroke-width="1.5"/>'


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=64)
    parser.add_argument("--jitter", type=float, default=0.0, help="by which share commits are larger or smaller")
    parser.add_argument("--keys", type=int, default=0, help="number of keys in units of a commit; 0 means all are new")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--size", type=int, default=_COMMIT_BYTES, help="bytes of a commit")
    parser.add_argument("--trigger", help="num-sorted-run.compaction-trigger")
    parser.add_argument("--ratio", help="compaction.size-ratio")
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="any other table option")
    parser.add_argument("--picture", type=Path, help="an SVG file to draw")
    given = parser.parse_args()
    named = {"num-sorted-run.compaction-trigger": given.trigger, "compaction.size-ratio": given.ratio}
    options = {key: text for key, text in named.items() if text is not None}
    options.update(text.split("=", 1) for text in given.option)
    check_options(options)
    load = Load(given.commits, given.jitter, given.keys, given.seed, given.size)
    outcome = simulate(UniversalPolicy.of(TableOptions(options)), load)
    print("\n".join(report(outcome)))
    if given.picture:
        given.picture.write_text(draw(outcome), encoding="utf-8")


if __name__ == "__main__":
    main()
