"""The options of one table: typed access, and the checks before they are stored, changed or relied on.

    create table   check_options    unknown names, bad values and refused values
    alter table    check_alter      the same for what changes, and nothing that is fixed on a live table
    open table     check_stored     refused values only: other engines may have stored keys of their own

Nothing here reads or writes a file, and nothing fills in values that were not set.
"""

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from lakelet.errors import InvalidError
from lakelet.options.connection import CATALOG_PREFIX, CONNECTION_OPTIONS
from lakelet.options.option import Option
from lakelet.options.table.files import CHANGELOG_FILE_PREFIX, DATA_FILE_PREFIX
from lakelet.options.table.layout import (
    DATA_FILE_PATH_DIRECTORY,
    DELETION_VECTORS_ENABLED,
    DELETION_VECTORS_MODIFIABLE,
    TABLE_FOLDERS,
)
from lakelet.options.table.merge import IGNORE_DELETE, IGNORE_UPDATE_BEFORE
from lakelet.options.table.table_options import TABLE_OPTIONS

T = TypeVar("T")


class TableOptions:
    """A frozen set of options as text, read with `get`. Hashable and picklable."""

    __slots__ = ("_raw",)
    _raw: Mapping[str, str]

    def __init__(self, raw: Mapping[str, str] | None = None) -> None:
        object.__setattr__(self, "_raw", MappingProxyType(dict(raw or {})))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"TableOptions is frozen: cannot set '{name}'; use with_values")

    @property
    def raw(self) -> Mapping[str, str]:
        """The options as they are stored, read-only."""
        return self._raw

    def get(self, option: Option[T]) -> T:
        """The value of an option, or its default where it is not set."""
        if option.is_family:
            raise TypeError(f"'{option.name}' is a family of options: use get_family")
        for key in (option.name, *option.older_names):
            if key in self._raw:
                return option.parse(self._raw[key], key=key)
        return option.default

    def get_family(self, family: Option[T]) -> dict[str, T]:
        """The values that are set in a family, by the part of the key at its placeholder."""
        found = ((family.member(key), key) for key in self._raw)
        return {member: family.parse(self._raw[key], key=key) for member, key in found if member is not None}

    def is_set(self, option: Option[Any]) -> bool:
        """Whether the option itself is stored, even with its default value."""
        return any(key in self._raw for key in (option.name, *option.older_names))

    def with_values(self, changes: Mapping[str, str | None]) -> "TableOptions":
        """A copy with some options set, or removed where the value is None."""
        merged: dict[str, str | None] = {**self._raw, **changes}
        return TableOptions({key: value for key, value in merged.items() if value is not None})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableOptions) and self._raw == other._raw

    def __hash__(self) -> int:
        return hash(frozenset(self._raw.items()))

    def __repr__(self) -> str:
        return f"TableOptions({dict(self._raw)!r})"

    def __reduce__(self) -> tuple[type["TableOptions"], tuple[dict[str, str]]]:
        return TableOptions, (dict(self._raw),)


_BY_NAME: Mapping[str, Option[Any]] = {
    key: option for option in TABLE_OPTIONS if not option.is_family for key in (option.name, *option.older_names)
}
_FAMILIES = tuple(option for option in TABLE_OPTIONS if option.is_family)
_CONNECTION_BY_NAME: Mapping[str, Option[Any]] = {option.name: option for option in CONNECTION_OPTIONS}

# Names of files and folders that users choose.
_NAMES_ON_DISK = (DATA_FILE_PREFIX, CHANGELOG_FILE_PREFIX, DATA_FILE_PATH_DIRECTORY)

# These may be enabled on a live table, but disabling them does not restore the rows they dropped.
_ONE_WAY = (IGNORE_DELETE, IGNORE_UPDATE_BEFORE)


def find_option(key: str) -> Option[Any] | None:
    """The declaration a table option's key belongs to: by name, by an older name, or by a family."""
    if key in _BY_NAME:
        return _BY_NAME[key]
    return next((family for family in _FAMILIES if family.member(key) is not None), None)


def check_options(options: Mapping[str, str]) -> None:
    """Refuse what a new table must not be created with."""
    for key, text in options.items():
        option = find_option(key)
        if option is None:
            raise _unknown_table_option(key)
        _check_value(option, key, text)
        if option in _NAMES_ON_DISK:
            _check_visible(key, text)


def check_stored(options: Mapping[str, str]) -> None:
    """Refuse to use a stored table whose options would make Lakelet give other rows than they ask for."""
    for key, text in options.items():
        option = find_option(key)
        if option is not None and option.refuses_values:
            _check_value(option, key, text)


def check_alter(old: Mapping[str, str], new: Mapping[str, str]) -> None:
    """Refuse a change of options that a table with data cannot take.

    Only what changes is checked, so that keys which another engine stored do not block the change.
    """
    check_options({key: text for key, text in new.items() if old.get(key) != text})
    before, after = TableOptions(old), TableOptions(new)
    for key in sorted(old.keys() | new.keys()):
        option = find_option(key)
        if option is None or old.get(key) == new.get(key):
            continue
        was, becomes = _effective(before, option, key), _effective(after, option, key)
        if was == becomes:
            continue
        if not _may_change(option, becomes, after):
            hint = ""
            if option is DELETION_VECTORS_ENABLED:
                hint = f"; set '{DELETION_VECTORS_MODIFIABLE.name}' = 'true' to allow it"
            raise InvalidError(
                f"option '{key}' cannot be changed on a live table: "
                f"it is {_shown(old.get(key), option)}, {_shown(new.get(key), option)} was asked for{hint}"
            )


def check_connection(options: Mapping[str, str]) -> None:
    """Refuse unknown names and bad values among the options a connection is opened with."""
    if not isinstance(options, Mapping):
        raise InvalidError(f"connection options: expected a mapping of names to values, found {type(options).__name__}")
    for key, text in options.items():
        if not isinstance(key, str):
            raise InvalidError(f"connection option {key!r}: expected text for its name, found {type(key).__name__}")
        if key.startswith(CATALOG_PREFIX):
            if key.count(".") < 2 or not all(key.split(".")[1:3]):
                raise InvalidError(f"connection option '{key}': expected {CATALOG_PREFIX}<name>.<property>")
            continue
        if key not in _CONNECTION_BY_NAME:
            raise InvalidError(f"unknown connection option '{key}'{_suggestion(key, _CONNECTION_BY_NAME)}")
        _CONNECTION_BY_NAME[key].parse(text)


def _check_value(option: Option[Any], key: str, text: str) -> None:
    value = option.parse(text, key=key)
    if not option.supports(value):
        supported = option.supported or (() if option.default_text is None else (option.default_text,))
        takes = f"only {' or '.join(repr(item) for item in supported)} is" if supported else "it must not be set to be"
        raise InvalidError(
            f"option '{key}' = '{text}' is not supported by Lakelet and would change results: {takes} accepted"
        )


def _check_visible(key: str, text: str) -> None:
    """Refuse user-chosen names that look like temporaries or metadata: deletions distinguish these by their names."""
    segments = text.strip("/").split("/")
    if any(segment.startswith(".") for segment in segments):
        raise InvalidError(
            f"option '{key}' = '{text}': expected no name that begins with '.', for such names are those of unfinished files"
        )
    if key == DATA_FILE_PATH_DIRECTORY.name and segments[0] in TABLE_FOLDERS:
        raise InvalidError(
            f"option '{key}' = '{text}': the folder {segments[0]!r} of a table holds its metadata, expected another name"
        )


def _effective(options: TableOptions, option: Option[Any], key: str) -> Any:
    if option.is_family:
        text = options.raw.get(key)
        return option.default if text is None else option.parse(text, key=key)
    return options.get(option)


def _may_change(option: Option[Any], becomes: Any, after: TableOptions) -> bool:
    if option is DELETION_VECTORS_ENABLED:
        return after.get(DELETION_VECTORS_MODIFIABLE)
    if option in _ONE_WAY:
        return becomes is True
    return option.mutable


def _shown(text: str | None, option: Option[Any]) -> str:
    if text is not None:
        return f"'{text}'"
    return "unset" if option.default_text is None else f"'{option.default_text}' by default"


def _unknown_table_option(key: str) -> InvalidError:
    if key in _CONNECTION_BY_NAME:
        return InvalidError(f"option '{key}' belongs to the connection, not to a table")
    names = [*_BY_NAME, *(family.name for family in _FAMILIES)]
    return InvalidError(f"unknown table option '{key}'{_suggestion(key, names)}")


def _suggestion(key: str, names: Iterable[str]) -> str:
    nearest = difflib.get_close_matches(key.lower(), list(names), n=1, cutoff=0.5)
    return f"; did you mean '{nearest[0]}'?" if nearest else ""
