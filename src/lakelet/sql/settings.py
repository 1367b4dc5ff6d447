"""Lakelet's own settings of a session, declared once."""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.errors import InvalidError


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting: its name, what it may be, what it is at first, what it does."""

    name: str
    values: tuple[str, ...]
    default: str
    meaning: str

    def check(self, value: str) -> None:
        """InvalidError unless the setting may have this value."""
        if value.lower() not in self.values:
            raise InvalidError(f"setting {self.name!r}: expected {' or '.join(self.values)}, found {value!r}")


EXECUTION_ENGINE = Setting(
    "execution.engine",
    ("local", "spark"),
    "local",
    "Where the query of an INSERT into an Iceberg table runs and its rows are written: in this process, or on the active Spark "
    "session, once lakelet.spark is imported; its text is Spark SQL then.",
)
_OWN = (
    Setting(
        "dynamic-partition-overwrite",
        ("true", "false"),
        "true",
        "Whether INSERT OVERWRITE without a fully named partition replaces only the partitions it has rows for; goes before the "
        "table's option of that name.",
    ),
    EXECUTION_ENGINE,
)
OWN_SETTINGS: dict[str, Setting] = {setting.name: setting for setting in _OWN}
