"""The declaration of an option: its name, kind, default, meaning, and whether Lakelet acts on it.

Every option is declared exactly once, by `declare`, in the file of its theme; parsing, checking, the reference page
and the error messages all come from that declaration. This file holds no option and reads no table.
"""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar, overload

from lakelet.errors import InvalidError
from lakelet.options.kinds import Kind

T = TypeVar("T")

_PLACEHOLDER = re.compile(r"<[a-z ]+>|#")


class Effect(Enum):
    """What Lakelet does about an option that is set."""

    ACTED = "acted"
    """Lakelet acts on it."""

    KEPT = "kept"
    """It stays in the schema for other engines; ignoring it gives the same rows."""

    REFUSED = "refused"
    """Ignoring it would give other rows, so a table that sets it away from its default is refused by name."""


ACTED, KEPT, REFUSED = Effect.ACTED, Effect.KEPT, Effect.REFUSED


@dataclass(frozen=True, slots=True, eq=False)
class Option(Generic[T]):
    """One declared option, or a family of options that differ in one part of the name.

    The name of a family has a placeholder, `fields.<column>.stats-mode` or `commit.callback.#.param`; its keys
    are found with `member`. `supported` lists the values that are not refused: none listed means all of them,
    or only the default one for a REFUSED option. `older_names` are spellings that earlier Paimon versions wrote.
    """

    name: str
    kind: Kind[Any]
    default: T
    default_text: str | None
    meaning: str
    effect: Effect
    mutable: bool
    supported: tuple[Any, ...]
    older_names: tuple[str, ...]
    _pattern: re.Pattern[str] | None

    def parse(self, text: str, *, key: str | None = None) -> T:
        """Parse a value; `key` is the spelling used, where it is not the option's name."""
        try:
            value: T = self.kind.convert(text if self.kind.verbatim else text.strip())
        except ValueError:
            raise InvalidError(f"option '{key or self.name}': expected {self.kind.expected}, found '{text}'") from None
        return value

    def supports(self, value: T) -> bool:
        """Whether Lakelet reads and writes a table with this value correctly."""
        if self.supported:
            return value in self.supported
        return self.effect is not Effect.REFUSED or value == self.default

    @property
    def refuses_values(self) -> bool:
        """Whether there are values of the right kind that are not supported."""
        return bool(self.supported) or self.effect is Effect.REFUSED

    @property
    def is_family(self) -> bool:
        return self._pattern is not None

    def of(self, member: str) -> str:
        """The key of a family's option."""
        return _PLACEHOLDER.sub(lambda _: member, self.name)

    def member(self, key: str) -> str | None:
        """The part of a key at the family's placeholder, or None if the key is not of the family."""
        match = self._pattern.fullmatch(key) if self._pattern else None
        return match[1] if match else None


@overload
def declare(
    name: str,
    kind: Kind[T],
    default: str,
    meaning: str,
    effect: Effect = ...,
    *,
    mutable: bool = ...,
    supported: tuple[T, ...] = ...,
    older_names: tuple[str, ...] = ...,
) -> Option[T]: ...


@overload
def declare(
    name: str,
    kind: Kind[T],
    default: None,
    meaning: str,
    effect: Effect = ...,
    *,
    mutable: bool = ...,
    supported: tuple[T, ...] = ...,
    older_names: tuple[str, ...] = ...,
) -> Option[T | None]: ...


def declare(
    name: str,
    kind: Kind[Any],
    default: str | None,
    meaning: str,
    effect: Effect = KEPT,
    *,
    mutable: bool = True,
    supported: tuple[Any, ...] = (),
    older_names: tuple[str, ...] = (),
) -> Option[Any]:
    """An option; its default is written as the text a user would write, or None where it is unset."""
    parts = _PLACEHOLDER.split(name)
    pattern = None
    if len(parts) > 1:
        # The name of a column may have line ends in it.
        pattern = re.compile(re.escape(parts[0]) + "(.+)" + re.escape(parts[1]), re.DOTALL)
    return Option(
        name=name,
        kind=kind,
        default=None if default is None else kind.convert(default),
        default_text=default,
        meaning=meaning,
        effect=effect,
        mutable=mutable,
        supported=supported,
        older_names=older_names,
        _pattern=pattern,
    )
