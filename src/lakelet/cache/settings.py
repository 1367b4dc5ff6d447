"""The settings of a cache, from the options that a connection was opened with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lakelet.cache.level import CacheLevel
from lakelet.cache.tier import TierLimits
from lakelet.errors import InvalidError
from lakelet.model.near_names import nearest
from lakelet.options.cache import (
    CACHE_LOAD_THREADS,
    CACHE_MAX_BYTES,
    CACHE_OPTIONS,
    CACHE_STALENESS,
    ENABLE_TIERED_CACHE,
    TIER_OPTIONS,
)
from lakelet.options.option import Option
from lakelet.options.staleness import STRICT, Staleness

_BY_NAME: Mapping[str, Option[Any]] = {option.name: option for option in CACHE_OPTIONS}


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """How large the cache may become, how old its pointers, and whether it is used at all."""

    enabled: bool = True
    staleness: Staleness = STRICT
    max_bytes: int = 256 << 20
    load_threads: int = 8
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
        value = option.parse(text)
        if option is ENABLE_TIERED_CACHE:
            return replace(self, enabled=value)
        if option is CACHE_STALENESS:
            return replace(self, staleness=value)
        if option is CACHE_MAX_BYTES:
            return replace(self, max_bytes=value)
        if option is CACHE_LOAD_THREADS:
            return replace(self, load_threads=value)
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
    return option.default if text is None else option.parse(text)


def _settings(parsed: Mapping[str, Any]) -> CacheSettings:
    limits = {
        level: TierLimits(parsed[entries.name], parsed[nbytes.name], parsed[expire.name])
        for level, (expire, entries, nbytes) in zip(CacheLevel, TIER_OPTIONS, strict=True)
    }
    return CacheSettings(
        parsed[ENABLE_TIERED_CACHE.name],
        parsed[CACHE_STALENESS.name],
        parsed[CACHE_MAX_BYTES.name],
        parsed[CACHE_LOAD_THREADS.name],
        limits,
    )
