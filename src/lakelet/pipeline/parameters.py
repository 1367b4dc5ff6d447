"""Values of parameters in the texts of a pipeline file: `${day}` is the value of `day`, `$${` a plain `${`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lakelet.model.near_names import nearest
from lakelet.pipeline.place import Place
from lakelet.pipeline.yaml_node import Listed, Mapped, Node, Scalar

_USE = re.compile(r"\$(\$\{)|\$\{([^{}]*)\}")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def filled(node: Node, values: Mapping[str, str]) -> Node:
    """The node with every parameter replaced by its value; InvalidError for one that has none. Names of mappings stay."""
    match node:
        case Scalar(text, place, literal):
            return node if text is None else Scalar(fill_text(text, values, place), place, literal)
        case Listed(items, place):
            return Listed(tuple(filled(item, values) for item in items), place)
        case Mapped(entries, keys, place):
            return Mapped({name: filled(value, values) for name, value in entries.items()}, keys, place)


def fill_text(text: str, values: Mapping[str, str], place: Place) -> str:
    """A text with the values of its parameters."""

    def value(match: re.Match[str]) -> str:
        if match[1]:
            return match[1]
        name = match[2].strip()
        if name not in values:
            line = None if place.line is None else place.line + text.count("\n", 0, match.start())
            raise Place(place.file, line).invalid(f"parameter {name!r} has no value{nearest(name, values)}")
        return values[name]

    return _USE.sub(value, text)
