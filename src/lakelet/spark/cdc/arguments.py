"""The keyword arguments that `sync_cdc` and `replay_cdc` share, and the settings that they make."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TypedDict, Unpack

from lakelet.errors import InvalidError
from lakelet.spark.cdc.evolution import EvolutionPolicy
from lakelet.spark.cdc.route import Route
from lakelet.spark.cdc.rows.column_rule import computed_columns, metadata_columns
from lakelet.spark.cdc.settings import CdcSettings
from lakelet.spark.cdc.value.type_rules import TypeRules


class CdcArguments(TypedDict, total=False):
    """What is to be done with change events; `sync_cdc` tells what each of them means."""

    format: str
    table: str | None
    database: str | None
    including: str
    excluding: str | None
    table_mapping: Mapping[str, str] | None
    table_prefix: str
    table_suffix: str
    primary_key: Sequence[str] | str | Mapping[str, Sequence[str] | str]
    partitioned_by: Sequence[str] | str
    table_options: Mapping[str, object] | None
    create: bool
    type_mapping: Sequence[str] | str
    computed: Mapping[str, str] | None
    metadata: Sequence[str] | str
    metadata_prefix: str
    evolve: bool
    on_conflict: str
    truncate: str
    order: str
    decimals: str
    quarantine: str | None
    options: Mapping[str, str] | None


def settings_of(warehouse: str | os.PathLike[str], **given: Unpack[CdcArguments]) -> CdcSettings:
    """The settings of these arguments; InvalidError for one that is unknown or makes no sense."""
    unknown = [name for name in given if name not in CdcArguments.__annotations__]
    if unknown:
        known = ", ".join(CdcArguments.__annotations__)
        raise InvalidError(f"unknown argument {', '.join(map(repr, unknown))}: expected some of {known}")
    route = Route(
        given.get("table"),
        given.get("database"),
        given.get("including", ".*"),
        given.get("excluding"),
        dict(given.get("table_mapping") or {}),
        given.get("table_prefix", ""),
        given.get("table_suffix", ""),
    )
    beside = route.database if route.database is not None else str(route.table).split(".", 1)[0]
    mapping = TypeRules.of(given.get("type_mapping", ()))
    policy = EvolutionPolicy(given.get("evolve", True), given.get("on_conflict", "fail"), mapping.to_nullable)
    metadata = metadata_columns(_names(given.get("metadata", ())), given.get("metadata_prefix", ""))
    keys = given.get("primary_key", ())
    return CdcSettings(
        os.fspath(warehouse),
        given.get("format", "debezium"),
        route,
        given.get("quarantine") or f"{beside}.cdc_quarantine",
        mapping=mapping,
        policy=policy,
        made={**metadata, **computed_columns(given.get("computed") or {})},
        primary_key={table: _names(key) for table, key in keys.items()} if isinstance(keys, Mapping) else _names(keys),
        partitioned_by=_names(given.get("partitioned_by", ())),
        table_options=dict(given.get("table_options") or {}),
        create=given.get("create", True),
        truncate=given.get("truncate", "quarantine"),
        order=given.get("order", "auto"),
        decimals=given.get("decimals", "precise"),
        options=dict(given.get("options") or {}),
    )


def _names(given: Sequence[str] | str) -> Sequence[str]:
    """Names of columns; a text is one name, as in `create_table`, and no list of letters."""
    return (given,) if isinstance(given, str) else given
