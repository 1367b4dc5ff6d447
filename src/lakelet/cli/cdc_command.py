"""`lakelet cdc sync` and `replay`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import typer

from lakelet.cli.call import Call
from lakelet.cli.deferred_pandas import defer_pandas
from lakelet.errors import InvalidError

# Arguments that are lists of names, mappings or switches; all others are text.
_LISTS = ("metadata", "partitioned_by", "type_mapping")
_MAPPINGS = ("computed", "table_mapping")
_SWITCHES = ("create", "evolve")


@dataclass(frozen=True, slots=True)
class CdcCall:
    """The arguments that the commands have in common."""

    call: Call
    given: Mapping[str, str | None]
    others: Mapping[str, str]
    table_options: Mapping[str, str]
    master: str | None
    settings: Mapping[str, str]

    def arguments(self) -> dict[str, Any]:
        """The arguments of `ls.sync_cdc`."""
        found: dict[str, Any] = {name: text for name, text in self.given.items() if text is not None}
        if "primary_key" in found:
            found["primary_key"] = _names(found["primary_key"])
        if (found.get("table") is None) == (found.get("database") is None):
            raise typer.BadParameter("expected --table or --database, one of them", param_hint="'--table'")
        for name, text in self.others.items():
            found[name] = _value(name, text)
        return {**found, "table_options": dict(self.table_options), "options": dict(self.call.options)}

    def session(self) -> AbstractContextManager[Any]:
        """The Spark session of a command."""
        if find_spec("pyspark") is None:
            raise InvalidError("change events are applied on Spark: pip install 'lakelet[spark]'")
        defer_pandas()
        from lakelet.spark.jobs.quiet_session import quiet_session  # noqa: PLC0415 - it loads pyspark.

        chosen = {} if self.master is None else {"spark.master": self.master}
        return quiet_session("lakelet cdc", config={**chosen, **self.settings})


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _value(name: str, text: str) -> object:
    if name in _LISTS:
        return _names(text)
    if name in _SWITCHES:
        if text.lower() not in ("true", "false"):
            raise typer.BadParameter(f"{name}: expected true or false, found {text!r}", param_hint="'--set'")
        return text.lower() == "true"
    if name not in _MAPPINGS:
        return text
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise typer.BadParameter(f'{name}: expected JSON such as {{"a": "b"}}, found {text!r}', param_hint="'--set'")
    return {str(key): str(value) for key, value in found.items()}


def sync_command(
    asked: CdcCall, source: str | None, kafka: str | None, topic: str | None, checkpoint: str | None, *, follow: bool
) -> None:
    """Applies events of files or of Kafka, and shows how many."""
    if (source is None) == (kafka is None):
        raise typer.BadParameter("expected a folder or --kafka, one of them", param_hint="'[PATH]'")
    if kafka is not None and (topic is None or checkpoint is None):
        raise typer.BadParameter("expected --topic and --checkpoint with it", param_hint="'--kafka'")
    if follow and checkpoint is None:
        raise typer.BadParameter("expected --checkpoint with it", param_hint="'--follow'")
    arguments = asked.arguments()
    with asked.session() as spark:
        from lakelet.spark.cdc.arguments import settings_of  # noqa: PLC0415
        from lakelet.spark.cdc.batch import apply_batch  # noqa: PLC0415
        from lakelet.spark.cdc.event_files import event_files  # noqa: PLC0415
        from lakelet.spark.cdc.stream import run_stream  # noqa: PLC0415

        settings = settings_of(asked.call.warehouse, **arguments)
        if checkpoint is None:
            counts = apply_batch(event_files(spark, str(source), streaming=False), settings, None)
            totals = {"rows": counts.rows, "skipped": counts.skipped, "quarantined": counts.quarantined}
            asked.call.output.values("cdc", {**totals, "tables": ", ".join(sorted(counts.snapshots))})
            return
        if kafka is None:
            frame = event_files(spark, str(source), streaming=True)
        else:
            reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", kafka)
            frame = reader.option("subscribe", str(topic)).option("startingOffsets", "earliest").load()
        trigger = {"processingTime": "1 second"} if follow else {"availableNow": True}
        batches = run_stream(frame, settings, checkpoint, trigger)
        asked.call.output.values("cdc", batches)


def replay_command(asked: CdcCall, *, overwrite: bool) -> None:
    """Replays the quarantine, and shows what became of its rows."""
    arguments = asked.arguments()
    with asked.session() as spark:
        from lakelet.spark.cdc.replay import replay_cdc  # noqa: PLC0415

        counts = replay_cdc(spark, asked.call.warehouse, overwrite=overwrite, **arguments)
        asked.call.output.values("cdc replay", {"applied": counts.applied, "remaining": counts.remaining})
