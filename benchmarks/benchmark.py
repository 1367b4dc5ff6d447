"""The scale and the results of a benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.rounds import Measured


@dataclass(frozen=True)
class Scale:
    """The scale of a run, as a share of the full size, and its working folder."""

    share: float
    rounds: int
    folder: Path

    @property
    def quick(self) -> bool:
        """Whether less than everything is measured."""
        return self.share < 1

    def of(self, full: int) -> int:
        """That share of the number, at least 1."""
        return max(1, round(full * self.share))


@dataclass(frozen=True)
class Result:
    """One comparison: Lakelet's number, a peer's, their ratio, and the target.

    `text` says it in words; `reached` is whether the target holds, None where there is none.
    """

    name: str
    ours: Measured
    peer: Measured
    ratio: float
    text: str
    target: str
    reached: bool | None

    def line(self) -> str:
        """For the terminal."""
        if self.reached is None:
            return f"        {self.name}: {self.text}"
        return f"{'ok    ' if self.reached else 'MISSED'}  {self.name}: {self.text}; target {self.target}"

    def as_json(self) -> dict[str, Any]:
        """For the results file."""
        return {field: getattr(self, field) for field in ("name", "ratio", "target", "reached", "text", "ours", "peer")}


def at_most(name: str, ours: Measured, peer: Measured, limit: float, key: str = "seconds") -> Result:
    """Lakelet may take at most `limit` times as long as the peer."""
    ratio = ours[key] / peer[key]
    return Result(
        name, ours, peer, ratio, _sentence(f"{ratio:.2f} × its time", ours, peer, key), f"≤ {limit} ×", ratio <= limit
    )


def beside(name: str, ours: Measured, peer: Measured, key: str = "seconds") -> Result:
    """How long Lakelet takes beside a peer that does less; for information."""
    ratio = ours[key] / peer[key]
    return Result(name, ours, peer, ratio, _sentence(f"{ratio:.2f} × its time", ours, peer, key), "", None)


def under(name: str, ours: Measured, value: float, limit: float, text: str, unit: str) -> Result:
    """A number of Lakelet's own, without a peer, has to be less than `limit` of that unit."""
    return Result(name, ours, {}, value / limit, text, f"< {limit:g} {unit}", value < limit)


def faster(name: str, ours: Measured, peer: Measured, least: float | None, key: str = "seconds") -> Result:
    """Lakelet is to be at least `least` times as fast as the peer; None is for information."""
    ratio = peer[key] / ours[key]
    text = _sentence(f"{ratio:.1f} × as fast", ours, peer, key)
    target, reached = ("", None) if least is None else (f"≥ {least} ×", ratio >= least)
    return Result(name, ours, peer, ratio, text, target, reached)


def _sentence(comparison: str, ours: Measured, peer: Measured, key: str) -> str:
    clock = f"{_ms(ours[key])} against {_ms(peer[key])} ms"
    if "user_seconds" not in ours or "user_seconds" not in peer or key != "seconds":
        return f"{comparison} ({clock})"
    return f"{comparison} ({clock}; processor {_ms(ours['user_seconds'])} against {_ms(peer['user_seconds'])} ms)"


def _ms(seconds: float) -> str:
    if seconds < 0.001:
        return f"{seconds * 1000:.4f}"
    return f"{seconds * 1000:.1f}" if seconds < 0.1 else f"{seconds * 1000:.0f}"
