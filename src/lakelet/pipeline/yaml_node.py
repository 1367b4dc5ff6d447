"""YAML text as nodes that know their lines.

The text is only composed, never constructed: a tag is a name here and makes no object, so that a file from a stranger runs
nothing. Scalars keep the text they were written with: `no` and `1.10` are what they are. Tags other than YAML's own for plain
values are refused, and so are a key that comes twice, aliases that grow beyond a bound, and files beyond a size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from lakelet.errors import InvalidError
from lakelet.model.near_names import nearest
from lakelet.pipeline.place import Place

_MOST_BYTES = 4 << 20
_MOST_NODES = 100_000
_PLAIN = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "timestamp", "value")
)
_NULL = "tag:yaml.org,2002:null"
_SEQUENCE, _MAPPING = "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value as it is written, None where it is null or nothing; `place` is where its content begins. `literal` is
    whether it is in quotes or in a block."""

    text: str | None
    place: Place
    literal: bool = False


@dataclass(frozen=True, slots=True)
class Listed:
    """A list."""

    items: tuple[Node, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Mapped:
    """A mapping, in the order of the file; `keys` are the places of its names."""

    entries: dict[str, Node]
    keys: dict[str, Place]
    place: Place

    def check(self, known: tuple[str, ...], what: str) -> None:
        """InvalidError for the first name that is none of the known ones."""
        for name in self.entries:
            if name in known:
                continue
            cut = " " in name and isinstance(self.entries[name], Scalar)
            hint = "; a text with commas within {…} needs quotes" if cut else nearest(name, known)
            raise self.keys[name].invalid(f"unknown field {name!r} of {what}{hint}")


Node = Scalar | Listed | Mapped


def parse_yaml(text: str, file: str) -> Node:
    """The document of a file; InvalidError with the line of what is wrong with it."""
    if len(text.encode("utf-8", "surrogatepass")) > _MOST_BYTES:
        raise InvalidError(f"{file}: expected at most {_MOST_BYTES >> 20} MB of YAML, found more")
    try:
        # libyaml's composer recurses in C, where a deeply nested file ends the process; this one raises.
        documents = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(file, None if mark is None else mark.line + 1)
        raise place.invalid(f"this is no YAML: {_reason(error)}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise InvalidError(f"{file}: this is no YAML: {_one_line(str(error))}") from None
    except RecursionError:
        raise InvalidError(f"{file}: the YAML is nested too deeply") from None
    if len(documents) != 1 or documents[0] is None:
        raise InvalidError(
            f"{file}: expected one YAML document, found {len([one for one in documents if one is not None])}"
        )
    try:
        return _Converter(file).node(documents[0])
    except RecursionError:
        raise InvalidError(f"{file}: the YAML is nested too deeply") from None


def _reason(error: yaml.MarkedYAMLError) -> str:
    return _one_line(", ".join(part for part in (error.context, error.problem) if part))


def _one_line(text: str) -> str:
    return " ".join(text.split())


class _Converter:
    """Composed nodes to ours."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._nodes = 0
        self._open: set[int] = set()

    def node(self, found: yaml.Node) -> Node:
        place = Place(self._file, found.start_mark.line + 1)
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            raise place.invalid(f"expected at most {_MOST_NODES} values, found more (aliases count each time)")
        if id(found) in self._open:
            raise place.invalid("an alias is part of what it names")
        self._open.add(id(found))
        try:
            return self._converted(found, place)
        finally:
            self._open.discard(id(found))

    def _converted(self, found: yaml.Node, place: Place) -> Node:
        if isinstance(found, yaml.ScalarNode):
            if found.tag not in _PLAIN:
                raise place.invalid(f"tag {found.tag!r}: expected plain values, for a pipeline file makes no objects")
            # The content of a block begins on the line after its mark.
            line = found.start_mark.line + (2 if found.style in ("|", ">") else 1)
            text = None if found.tag == _NULL else found.value
            return Scalar(text, Place(self._file, line), found.style is not None)
        if isinstance(found, yaml.SequenceNode) and found.tag == _SEQUENCE:
            return Listed(tuple(self.node(item) for item in found.value), place)
        if isinstance(found, yaml.MappingNode) and found.tag == _MAPPING:
            return self._mapped(found, place)
        raise place.invalid(f"tag {found.tag!r}: expected plain values, for a pipeline file makes no objects")

    def _mapped(self, found: yaml.MappingNode, place: Place) -> Mapped:
        entries: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        for name, key_place, value in self._pairs(found):
            if name in entries:
                raise key_place.invalid(f"{name!r} is there twice, first on line {keys[name].line}")
            entries[name] = self.node(value)
            keys[name] = key_place
        return Mapped(entries, keys, place)

    def _pairs(self, found: yaml.MappingNode) -> Iterator[tuple[str, Place, yaml.Node]]:
        for key, value in found.value:
            place = Place(self._file, key.start_mark.line + 1)
            if not isinstance(key, yaml.ScalarNode) or key.tag not in _PLAIN:
                shown = "<<" if getattr(key, "value", None) == "<<" else "a list, a mapping or a tag"
                raise place.invalid(f"expected a name before the colon, found {shown}")
            yield key.value, place, value
