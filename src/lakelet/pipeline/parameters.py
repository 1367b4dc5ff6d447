"""Values of parameters in the texts of a pipeline file: `${day}` is the value of `day`, `$${` a plain `${`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lakelet.model.near_names import nearest
from lakelet.pipeline.place import Place
from lakelet.pipeline.yaml_node import Listed, Mapped, Node, Scalar

_USE = re.compile(r"\$(\$\{)|\$\{([^{}]*)\}")
# More than any pipeline has, for all texts of a section.
_MOST_FILLED = 8 << 20
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def filled(node: Node, values: Mapping[str, str]) -> Node:
    """The node with every parameter replaced by its value; InvalidError for one that has none, and where values that are used
    again and again make more text than a file may have. Names of mappings stay."""
    return _Filled(values).node(node)


class _Filled:
    """Fills in texts up to a bound, all of them together."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self._size = 0

    def node(self, node: Node) -> Node:
        match node:
            case Scalar(text, place, literal):
                return node if text is None else Scalar(self.text(text, place), place, literal)
            case Listed(items, place):
                return Listed(tuple(map(self.node, items)), place)
            case Mapped(entries, keys, place):
                return Mapped({name: self.node(value) for name, value in entries.items()}, keys, place)

    def text(self, text: str, place: Place) -> str:
        def value(match: re.Match[str]) -> str:
            if match[1]:
                return match[1]
            name = match[2].strip()
            line = None if place.line is None else place.line + text.count("\n", 0, match.start())
            if name not in self._values:
                raise Place(place.file, line).invalid(f"parameter {name!r} has no value{nearest(name, self._values)}")
            found = self._values[name]
            self._size += len(found)
            if self._size > _MOST_FILLED:
                raise Place(place.file, line).invalid(
                    f"parameter {name!r}: the values of parameters make more than {_MOST_FILLED >> 20} MB of text"
                )
            return found

        return _USE.sub(value, text)
