"""Options of the mapping from source types to table types, under Paimon's names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakelet.errors import InvalidError

NAMES = (
    "tinyint1-not-bool",
    "to-nullable",
    "to-string",
    "char-to-string",
    "longtext-to-bytes",
    "bigint-unsigned-to-bigint",
)


@dataclass(frozen=True, slots=True)
class TypeRules:
    """Which of the mapping options are on."""

    tinyint1_not_bool: bool = False
    to_nullable: bool = False
    to_string: bool = False
    char_to_string: bool = False
    longtext_to_bytes: bool = False
    bigint_unsigned_to_bigint: bool = False

    @classmethod
    def of(cls, names: Iterable[str] | str) -> TypeRules:
        """The mapping with these options; InvalidError for a name that is none of them."""
        given = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
        wrong = [name for name in given if name not in NAMES]
        if wrong:
            raise InvalidError(f"type_mapping {', '.join(map(repr, wrong))}: expected some of {', '.join(NAMES)}")
        return cls(**{name.replace("-", "_"): True for name in given})
