"""The configuration of a served table, kept in the options of the table itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from lakelet.errors import InvalidError
from lakelet.options import (
    SERVICE_BACKUP_ENABLED,
    SERVICE_BUFFER_SIZE,
    SERVICE_FLUSH_INTERVAL,
    SERVICE_RETENTION_DAYS,
    TableOptions,
)
from lakelet.service.values import (
    DEFAULT_BUFFER_SIZE,
    DEFAULT_FLUSH_INTERVAL_SECONDS,
    AlterTableRequest,
    TableConfig,
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
_LARGEST = 2**31 - 1
_SERVICE = "service."
# Decided by the layout: a table with the same properties gets the same.
_OWN = frozenset(("sequence.field",))


def check_table_name(name: object) -> str:
    """The name itself; InvalidError unless it is one of a served table."""
    if not isinstance(name, str) or not is_table_name(name):
        shown = repr(name)
        raise InvalidError(
            "table name: expected a letter or underscore, then up to 63 letters, digits or underscores, found "
            + (shown if len(shown) <= 80 else f"{shown[:80]}…")
        )
    return name


def is_table_name(name: str) -> bool:
    """Whether a text can be the name of a served table."""
    return _NAME.fullmatch(name) is not None


def effective_config(given: TableConfig | None) -> TableConfig:
    """A config with 0 replaced by the defaults of sizes and intervals; InvalidError for negative and too large numbers."""
    config = TableConfig() if given is None else given
    for name in ("buffer_size", "flush_interval_seconds", "retention_days"):
        number = getattr(config, name)
        if not 0 <= number <= _LARGEST:
            raise InvalidError(f"config.{name}: expected a whole number from 0 to {_LARGEST}, found {number}")
    return replace(
        config,
        buffer_size=config.buffer_size or DEFAULT_BUFFER_SIZE,
        flush_interval_seconds=config.flush_interval_seconds or DEFAULT_FLUSH_INTERVAL_SECONDS,
    )


def config_options(config: TableConfig) -> dict[str, str]:
    """The table options of a config, without those of its properties."""
    return {
        SERVICE_BUFFER_SIZE.name: str(config.buffer_size),
        SERVICE_FLUSH_INTERVAL.name: str(config.flush_interval_seconds),
        SERVICE_RETENTION_DAYS.name: str(config.retention_days),
        SERVICE_BACKUP_ENABLED.name: str(config.backup_enabled).lower(),
    }


def config_of(stored: Mapping[str, str]) -> TableConfig:
    """The config that a table's options carry; its properties are the options that are not the service's own."""
    options = TableOptions(stored)
    return TableConfig(
        buffer_size=options.get(SERVICE_BUFFER_SIZE),
        flush_interval_seconds=options.get(SERVICE_FLUSH_INTERVAL),
        retention_days=options.get(SERVICE_RETENTION_DAYS),
        backup_enabled=options.get(SERVICE_BACKUP_ENABLED),
        properties={
            key: text for key, text in sorted(stored.items()) if not key.startswith(_SERVICE) and key not in _OWN
        },
    )


def altered_config(config: TableConfig, request: AlterTableRequest) -> TableConfig:
    """A config with what a request changes."""
    given = {
        name: value
        for name in ("buffer_size", "flush_interval_seconds", "retention_days", "backup_enabled")
        if (value := getattr(request, name)) is not None
    }
    return effective_config(replace(config, **given))
