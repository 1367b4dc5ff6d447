"""The fields of one definition in YAML, read as the types that they have."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from lakelet.model.near_names import nearest
from lakelet.pipeline.definition import Action, Cdc, Expectation, PythonStep, Read, SqlStep, Step
from lakelet.pipeline.file_trust import check_options, check_settings
from lakelet.pipeline.place import Place, absolute_path
from lakelet.pipeline.sql_inputs import quoted, read_of
from lakelet.pipeline.yaml_node import Listed, Mapped, Node, Scalar


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping of the file; `what` says in messages what it defines."""

    node: Mapped
    what: str
    called: str | None
    defined: Place | None = None

    @staticmethod
    def of(node: Node, what: str, called: str | None = None, defined: Place | None = None) -> Fields:
        """The fields of a node, which has to be a mapping."""
        if not isinstance(node, Mapped):
            raise (defined or node.place).invalid(f"{what}: expected a mapping of fields, found {_shown(node)}")
        return Fields(node, what, called, defined)

    @property
    def name(self) -> str:
        """The name under which the file has it."""
        assert self.called is not None
        return self.called

    @property
    def place(self) -> Place:
        """Where it is defined."""
        return self.defined or self.node.place

    def text(self, name: str) -> str | None:
        """A single value as text; None where it is not there."""
        node = self.node.entries.get(name)
        if node is None:
            return None
        if not isinstance(node, Scalar):
            raise node.place.invalid(f"{name} of {self.what}: expected a text, found {_shown(node)}")
        return node.text

    def required(self, name: str) -> str:
        """A single value that has to be there."""
        found = self.text(name)
        if found is None or not found.strip():
            raise self.place.invalid(f"{self.what} lacks {name}")
        return found

    def flag(self, name: str) -> bool:
        """True or false; false where it is not there."""
        found = self.text(name)
        if found is not None and found.lower() not in ("true", "false"):
            raise self._place(name).invalid(f"{name} of {self.what}: expected true or false, found {found!r}")
        return found is not None and found.lower() == "true"

    def number(self, name: str) -> int | None:
        """A whole number from 0 on."""
        found = self.text(name)
        if found is None:
            return None
        if not re.fullmatch(r"[0-9]{1,9}", found):
            raise self._place(name).invalid(f"{name} of {self.what}: expected a number from 0 on, found {found!r}")
        return int(found)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts; a single one may stand without the list."""
        node = self.node.entries.get(name)
        if node is None or (isinstance(node, Scalar) and node.text is None):
            return ()
        items = node.items if isinstance(node, Listed) else (node,)
        found = []
        for item in items:
            if not isinstance(item, Scalar) or not item.text:
                raise item.place.invalid(f"{name} of {self.what}: expected texts, found {_shown(item)}")
            found.append(item.text)
        return tuple(found)

    def pairs(self, name: str) -> dict[str, str]:
        """A mapping of texts to texts, each as it is written."""
        node = self.node.entries.get(name)
        if node is None or (isinstance(node, Scalar) and node.text is None):
            return {}
        if not isinstance(node, Mapped):
            raise node.place.invalid(f"{name} of {self.what}: expected a mapping, found {_shown(node)}")
        found = {}
        for key, value in node.entries.items():
            if not isinstance(value, Scalar) or value.text is None:
                raise node.keys[key].invalid(f"{name} of {self.what}: {key} has to be a text, found {_shown(value)}")
            found[key] = value.text
        return found

    def options(self, name: str) -> dict[str, str]:
        """Options of a connection, a source or a sink, none of which loads code."""
        found = self.pairs(name)
        check_options(found, self._places(name))
        return found

    def settings(self, name: str) -> dict[str, str]:
        """Settings of a Spark session, none of which loads code."""
        found = self.pairs(name)
        check_settings(found, self._places(name))
        return found

    def _places(self, name: str) -> dict[str, Place]:
        node = self.node.entries.get(name)
        return node.keys if isinstance(node, Mapped) else {}

    def path(self, name: str) -> str | None:
        """A path; a relative one starts from the folder of the file."""
        found = self.text(name)
        return None if found is None else self._absolute(found)

    def paths(self, name: str) -> tuple[str, ...]:
        """Several paths."""
        return tuple(self._absolute(one) for one in self.texts(name))

    def _absolute(self, path: str) -> str:
        return absolute_path(path, os.path.dirname(os.path.abspath(self.node.place.file)))

    def expectations(self, name: str) -> tuple[Expectation, ...]:
        """Conditions by name: `positive: amount > 0`, or `positive: {condition: amount > 0, action: drop}`."""
        node = self.node.entries.get(name)
        if node is None:
            return ()
        found = []
        section = Fields.of(node, f"{name} of {self.what}")
        for key, value in section.node.entries.items():
            place = section.node.keys[key]
            if isinstance(value, Scalar):
                found.append(Expectation(key, section.required(key), Action.WARN, place))
                continue
            fields = Fields.of(value, f"expectation {key!r} of {self.what}", key, place)
            fields.node.check(("condition", "action"), fields.what)
            action = fields.text("action") or Action.WARN.value
            if action not in set(Action):
                raise fields._place("action").invalid(
                    f"action {action!r} of {fields.what}{nearest(action, [one.value for one in Action])}"
                )
            found.append(Expectation(key, fields.required("condition"), Action(action), place))
        return tuple(found)

    def cdc(self) -> Cdc:
        """How an auto CDC flow applies changes."""
        keys = self.texts("keys")
        if not keys:
            raise self.place.invalid(f"{self.what} lacks keys")
        kind = self.text("scd_type") or "1"
        if kind not in ("1", "2"):
            raise self._place("scd_type").invalid(f"scd_type of {self.what}: expected 1 or 2, found {kind!r}")
        return Cdc(
            keys,
            self.required("sequence_by"),
            self.text("apply_as_deletes"),
            self.texts("columns"),
            self.texts("except_columns"),
            int(kind),
        )

    def _place(self, name: str) -> Place:
        return self.node.keys.get(name, self.place)


def step_of(fields: Fields, *, streaming: bool, required: bool) -> Step | None:
    """The query of a definition: `sql`, `source` (all of another one) or `python`; None where it has none."""
    there = [name for name in fields.node.entries if name in ("sql", "source", "python")]
    if len(there) > 1:
        raise fields.node.keys[there[1]].invalid(
            f"{fields.what}: expected one of sql, source and python, found {' and '.join(there)}"
        )
    if "reads" in fields.node.entries and there != ["python"]:
        raise fields.node.keys["reads"].invalid(f"{fields.what}: reads goes with python")
    if not there:
        if required:
            raise fields.place.invalid(f"{fields.what} has no query: expected sql, source or python")
        return None
    text, node = fields.required(there[0]), fields.node.entries[there[0]]
    if there == ["sql"]:
        return SqlStep(text, node.place)
    if there == ["source"]:
        name = ".".join(quoted(part) for part in text.split("."))
        return SqlStep(f"SELECT * FROM {f'STREAM({name})' if streaming else name}", node.place)
    file, colon, called = text.rpartition(":")
    if not colon or not file.endswith(".py") or not called.isidentifier():
        raise node.place.invalid(f"python of {fields.what}: expected file.py:function, found {text!r}")
    return PythonStep(called, _reads(fields), node.place, file=fields._absolute(file))


def _reads(fields: Fields) -> tuple[Read, ...]:
    """The arguments of a Python step: names, STREAM(name), or a mapping of arguments to these."""
    node = fields.node.entries.get("reads")
    if isinstance(node, Mapped):
        return tuple(read_of(text, argument) for argument, text in fields.pairs("reads").items())
    return tuple(read_of(text) for text in fields.texts("reads"))


def _shown(node: Node) -> str:
    match node:
        case Scalar(None):
            return "nothing"
        case Scalar(text):
            return repr(text)
        case Listed():
            return "a list"
        case Mapped():
            return "a mapping"
