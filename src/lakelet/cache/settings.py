"""The settings of a cache, from the options that a connection was opened with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from lakelet.cache.level import CacheLevel
from lakelet.cache.tier import TierLimits
from lakelet.errors import InvalidError
from lakelet.model.near_names import nearest
from lakelet.options.cache import (
    CACHE_ADAPTIVE_SIZE,
    CACHE_LOAD_THREADS,
    CACHE_MAX_BYTES,
    CACHE_OPTIONS,
    CACHE_PERSIST_FOLDER,
    CACHE_PERSIST_INTERVAL,
    CACHE_PREFETCH,
    CACHE_REFRESH_INTERVAL,
    CACHE_STALENESS,
    COMPATIBILITY_MODE,
    ENABLE_TIERED_CACHE,
    ROLLOUT_PERCENTAGE,
    TIER_OPTIONS,
)
from lakelet.options.option import Option
from lakelet.options.staleness import STRICT, Staleness

SWITCH = "LAKELET_ENABLE_TIERED_CACHE"
"""The environment variable that switches the cache off for programs that say nothing else."""
_BY_NAME: Mapping[str, Option[Any]] = {option.name: option for option in CACHE_OPTIONS}
# The field of each option that is not one of a tier.
_FIELDS: Mapping[str, str] = {
    ENABLE_TIERED_CACHE.name: "enabled",
    CACHE_STALENESS.name: "staleness",
    CACHE_MAX_BYTES.name: "max_bytes",
    CACHE_LOAD_THREADS.name: "load_threads",
    COMPATIBILITY_MODE.name: "compares",
    ROLLOUT_PERCENTAGE.name: "rollout_percentage",
    CACHE_PERSIST_FOLDER.name: "persist_folder",
    CACHE_PERSIST_INTERVAL.name: "persist_interval",
    CACHE_ADAPTIVE_SIZE.name: "adaptive_size",
    CACHE_PREFETCH.name: "prefetch",
    CACHE_REFRESH_INTERVAL.name: "refresh_interval",
}


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """How large the cache may become, how old its pointers, and whether it is used at all."""

    enabled: bool = True
    staleness: Staleness = STRICT
    max_bytes: int = 256 << 20
    load_threads: int = 8
    compares: bool = False
    rollout_percentage: int = 100
    persist_folder: str | None = None
    persist_interval: timedelta = timedelta(minutes=1)
    adaptive_size: bool = True
    prefetch: bool = True
    refresh_interval: timedelta = timedelta(0)
    limits: Mapping[CacheLevel, TierLimits] = field(default_factory=dict)

    @staticmethod
    def of(options: Mapping[str, str]) -> CacheSettings:
        """The settings that options ask for; options of others are ignored."""
        parsed = {option.name: _parsed(option, options) for option in CACHE_OPTIONS}
        return _settings(parsed)

    def changed(self, name: str, text: str) -> CacheSettings:
        """The same with one option changed; InvalidError where there is no such option or value."""
        option = _BY_NAME.get(name)
        if option is None:
            raise InvalidError(f"cache option {name!r} is unknown{nearest(name, tuple(_BY_NAME))}")
        if option is CACHE_PERSIST_FOLDER:
            raise InvalidError(
                f"option {name!r} names a folder of this machine: it is given to connect(), and not changed by statements"
            )
        value = option.parse(text)
        if name in _FIELDS:
            changes: dict[str, Any] = {_FIELDS[name]: value}
            return replace(self, **changes)
        limits = dict(self.limits)
        for level, (expire, entries, nbytes) in zip(CacheLevel, TIER_OPTIONS, strict=True):
            before = limits[level]
            if option is expire:
                limits[level] = replace(before, expire_seconds=value)
            elif option is entries:
                limits[level] = replace(before, max_entries=value)
            elif option is nbytes:
                limits[level] = replace(before, max_bytes=value)
        return replace(self, limits=limits)


def cache_option_names() -> tuple[str, ...]:
    """The names of all options of the cache."""
    return tuple(_BY_NAME)


def _parsed(option: Option[Any], options: Mapping[str, str]) -> Any:
    text = options.get(option.name)
    if text is None and option is ENABLE_TIERED_CACHE:
        text = os.environ.get(SWITCH) or None
    return option.default if text is None else option.parse(text)


def _settings(parsed: Mapping[str, Any]) -> CacheSettings:
    limits = {
        level: TierLimits(parsed[entries.name], parsed[nbytes.name], parsed[expire.name])
        for level, (expire, entries, nbytes) in zip(CacheLevel, TIER_OPTIONS, strict=True)
    }
    return CacheSettings(**{field: parsed[name] for name, field in _FIELDS.items()}, limits=limits)
