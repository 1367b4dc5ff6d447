"""Load the classes that `commit.callbacks` and `tag.callbacks` name, and instantiate them with their arguments.

    commit.callbacks = shop.hooks.Audit, shop.hooks:Outer.Inner
    commit.callback.shop.hooks.Audit.param = /var/log/audit

A colon separates the module from the class; without one the last name is the class. The argument, where one is set, is
the only argument of the constructor.

Whoever can write into a table's folder can name a class there, and to import a module is to run it. So a class is loaded
only from modules that the program itself has named, and from Lakelet's own:

    connect("./warehouse", {"callbacks.allow": "shop.hooks, audit"})

A name under `audit` is one of the module or of the package. Any other name is refused when it is set, and not imported at a
commit.

A table may name classes of Java, which other engines call. They cannot be imported here and must not get in anybody's way:
they are recognised by their package, which is a reversed internet domain, and may be stored. A name that was stored
elsewhere, or whose package is not installed any more, is for the caller to report.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakelet.errors import InvalidError
from lakelet.options import (
    CALLBACKS_ALLOW,
    COMMIT_CALLBACK_PARAM,
    COMMIT_CALLBACKS,
    TAG_CALLBACK_PARAM,
    TAG_CALLBACKS,
    TableOptions,
    publishes_iceberg,
)
from lakelet.options.option import Option

COMMIT_METHODS = ("call",)
TAG_METHODS = ("notify_creation", "notify_deletion")

_DOTTED = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_PATH = re.compile(rf"(?P<module>{_DOTTED})(?P<mark>[.:])(?P<name>{_DOTTED})")
_MAX_NAME = 200
# Lakelet's own callbacks.
_OWN = "lakelet.callbacks"
# Usual prefixes of Java packages.
_DOMAINS = (
    "com",
    "org",
    "net",
    "edu",
    "gov",
    "io",
    "dev",
    "cloud",
    "ai",
    "eu",
    "cn",
    "de",
    "fr",
    "jp",
    "kr",
    "uk",
    "us",
    "ru",
)


@dataclass(frozen=True, slots=True)
class CallbackClass:
    """A class as a table's options name it. `name` is its canonical spelling, and valid in a path."""

    name: str
    spelling: str
    argument: str | None = None


_ICEBERG = f"{_OWN}.iceberg.callbacks"
# The callbacks of a table that is published as an Iceberg table. They are of a package above this one.
_ICEBERG_COMMITS = CallbackClass(f"{_ICEBERG}.IcebergCommitCallback", f"{_ICEBERG}.IcebergCommitCallback")
_ICEBERG_TAGS = CallbackClass(f"{_ICEBERG}.IcebergTagCallback", f"{_ICEBERG}.IcebergTagCallback")


def commit_classes(options: TableOptions) -> tuple[CallbackClass, ...]:
    """The commit callbacks of a table, each once: those its options imply, then in the order of the option."""
    named = _named(options, COMMIT_CALLBACKS, COMMIT_CALLBACK_PARAM)
    return (_ICEBERG_COMMITS, *named) if publishes_iceberg(options.raw) else named


def tag_classes(options: TableOptions) -> tuple[CallbackClass, ...]:
    """The tag callbacks of a table, each once: those its options imply, then in the order of the option."""
    named = _named(options, TAG_CALLBACKS, TAG_CALLBACK_PARAM)
    return (_ICEBERG_TAGS, *named) if publishes_iceberg(options.raw) else named


def _named(options: TableOptions, listed: Option[str], arguments: Option[str | None]) -> tuple[CallbackClass, ...]:
    text = options.get(listed)
    if not text.strip():
        return ()
    given = options.get_family(arguments)
    found: dict[str, CallbackClass] = {}
    for part in text.split(","):
        spelling = part.strip()
        if spelling:
            name = spelling.replace(":", ".")
            found.setdefault(name, CallbackClass(name, spelling, given.get(spelling, given.get(name))))
    return tuple(found.values())


def allowed_modules(text: str | None) -> tuple[str, ...]:
    """The modules that `callbacks.allow` names."""
    names = tuple(name.strip() for name in (text or "").split(",") if name.strip())
    for name in names:
        if re.fullmatch(_DOTTED, name) is None:
            raise InvalidError(f"option '{CALLBACKS_ALLOW.name}': expected modules such as shop.hooks, found {name!r}")
    return names


def check_callbacks(options: Mapping[str, str], allowed: Sequence[str] = ()) -> None:
    """Reject options that are about to be stored and name a class which this program does not allow or cannot import, and which
    is not a Java class."""
    chosen = TableOptions(options)
    for classes, methods in ((commit_classes(chosen), COMMIT_METHODS), (tag_classes(chosen), TAG_METHODS)):
        for each in classes:
            if is_allowed(each.spelling, allowed) or not is_of_java(each):
                find_class(each, methods, allowed)


def is_of_java(callback: CallbackClass) -> bool:
    """Whether the class belongs to a Java package, which only other engines can load."""
    top, *rest = callback.spelling.split(".")
    return len(rest) > 1 and ":" not in callback.spelling and top in _DOMAINS


def is_allowed(name: str, allowed: Sequence[str]) -> bool:
    """Whether a module, or a class by its path, is one of those that the program has named, or Lakelet's own."""
    name = name.replace(":", ".")
    return any(name == module or name.startswith(f"{module}.") for module in (_OWN, *allowed))


def find_class(callback: CallbackClass, methods: Sequence[str], allowed: Sequence[str] = ()) -> type:
    """Import the class; InvalidError where the program does not allow it, it does not exist, or it lacks one of these
    methods.
    """
    path = _PATH.fullmatch(callback.spelling)
    if path is None or len(callback.name) > _MAX_NAME:
        raise InvalidError(
            f"callback '{callback.spelling}': expected package.module.Class or package.module:Class, "
            f"of {_MAX_NAME} characters at most"
        )
    module_name, attributes = path["module"], path["name"].split(".")
    if not is_allowed(module_name, allowed):
        raise _not_allowed(callback, module_name)
    try:
        found: object = importlib.import_module(module_name)
        for attribute in attributes:
            found = getattr(found, attribute)
    except (Exception, SystemExit) as error:
        # The code of a module may fail in any way while it is imported, and may also want to end the program.
        raise InvalidError(
            f"callback '{callback.spelling}' cannot be imported: {type(error).__name__}: {error}"
        ) from error
    missing = [method for method in methods if not callable(getattr(found, method, None))]
    if not isinstance(found, type) or missing:
        raise InvalidError(
            f"callback '{callback.spelling}': expected a class with {' and '.join(methods)}, "
            f"found {'one without ' + ' and '.join(missing) if isinstance(found, type) else type(found).__name__}"
        )
    if not is_allowed(found.__module__, allowed):
        # A module has the classes that it imports among its names.
        raise _not_allowed(callback, found.__module__)
    return found


def _not_allowed(callback: CallbackClass, module: str) -> InvalidError:
    return InvalidError(
        f"callback '{callback.spelling}' is not run: this program allows no classes of {module!r}; whoever trusts them opens the "
        f"lake by connect(…, {{'{CALLBACKS_ALLOW.name}': '{module}'}})"
    )


def make(callback: CallbackClass, methods: Sequence[str], allowed: Sequence[str] = ()) -> object:
    """Instantiate the class, with its argument where one is set."""
    found = find_class(callback, methods, allowed)
    made: object = found() if callback.argument is None else found(callback.argument)
    return made
