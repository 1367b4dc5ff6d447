"""The start of `lakelet serve` without left-over logs, and the memory that it has before its first query."""

from __future__ import annotations

from benchmarks.benchmark import Result, Scale, under
from benchmarks.rounds import Contender, Measured, best_of
from benchmarks.service.server_process import ServerProcess

START_SECONDS = 1.5
IDLE_MIB = 150
STARTS = 5


def measure_start(scale: Scale) -> list[Result]:
    """`lakelet serve` with REST and gRPC: from the start of its process to its first answer, and its memory then."""

    def start(number: int) -> Measured:
        with ServerProcess("with_grpc", scale.folder / str(number)) as server:
            return {
                "seconds": server.start_seconds,
                "processor_seconds": server.start_processor_seconds,
                "resident_bytes": server.resident_bytes(),
            }

    ours = best_of(max(scale.rounds, STARTS), Contender("start", start))["start"]
    idle = ours["resident_bytes"] / (1 << 20)
    text = f"{ours['seconds']:.2f} s on the clock, {ours['processor_seconds']:.2f} s of processor"
    return [
        under("start", ours, ours["processor_seconds"], START_SECONDS, text, "s"),
        under("idle memory", ours, idle, IDLE_MIB, f"{idle:.0f} MiB", "MiB"),
    ]
