"""The rules as pure functions: a syntax tree or a text in, findings as `line: what` out."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import PurePath

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 70
MAX_FOLDER_MODULES = 20

# A module is named after the thing it defines. These end like gerunds and are nouns of the field.
NOUNS_IN_ING = frozenset(
    {"listing", "nothing", "pruning", "ring", "sorting", "spelling", "string", "testing", "widening"}
)
BANNED_MODULES = frozenset({"utils", "util", "helpers", "helper", "common", "misc"})
BANNED_CLASS_WORDS = re.compile(r"(Manager|Impl|Base|Abstract)(?=[A-Z0-9_]|$)")
UNNAMED_ERRORS = frozenset({"Exception", "BaseException", "ValueError", "RuntimeError"})

# Clocks, randomness and ids are injected, so that tests can decide them; these are the ways around that.
AMBIENT = (
    "datetime.date.today",
    "datetime.datetime.now",
    "datetime.datetime.today",
    "datetime.datetime.utcnow",
    "numpy.random",
    "os.urandom",
    "random",
    "secrets",
    "time.monotonic",
    "time.perf_counter",
    "time.sleep",
    "time.time",
    "uuid.uuid1",
    "uuid.uuid4",
)
AMBIENT_PATTERN = re.compile("(?:" + "|".join(map(re.escape, AMBIENT)) + r")(?:_ns)?(?:\.|$)")

# Written with a bracket in each, so that this file does not match itself.
UNFINISHED = re.compile(r"\b(TOD[O]|FIXM[E]|XX[X]|HAC[K])\b")
MACHINE = re.compile(
    r"(?<![\w.}$*])/(?:wor[k]|roo[t]|hom[e]|opt/wheel[s]|tmp/scratc[h])/"
    r"|\.\./share[d]/"
    r"|\b(?:pypi\.or[g]|pythonhosted\.or[g]|repo1?\.maven(?:\.apache)?\.or[g]|deb\.debian\.or[g]|proxy\.golang\.or[g]"
    r"|conda\.anaconda\.or[g]|registry\.npmjs\.or[g])\b"
    r"|(?<!emit-)index-ur[l]"
)

# Phrases that must be translated back into the field's words, and what to say instead. A phrase joins once no file has it any
# more, so that it cannot come back; each is written with a bracket in it, as above.
RIDDLES = (
    (r"come[s]? and go(?:es)?", "is added and removed"),
    (r"matter o[f]", "drop it"),
    (r"count[s]? any more", "superseded, deleted"),
    (r"is no mor[e](?! than)", "is deleted"),
    (r"take[n]? apart", "parse, split"),
    (r"hang[s]? together", "overlap"),
    (r"deal[t]", "assigned"),
    (r"let[s]? go o[f]|letting go o[f]", "expire, delete, release"),
    (r"(?:put|puts|putting) togethe[r]", "merge, assemble"),
    (r"(?:tell|tells|told) apar[t]", "distinguish"),
    (r"(?:commit|write) stand[s]", "is committed"),
    (r"time is (?:ove[r]|pas[t])", "expired"),
    (r"(?:about|at most|just|keep|of|only) so man[y]", "the number's name"),
)
# A line may end inside a phrase, and the next one begin with the mark of a comment.
RIDDLE_PATTERNS = tuple(
    (re.compile(rf"\b(?:{phrase})\b".replace(" ", r"\s+(?:#\s+)?"), re.IGNORECASE), better)
    for phrase, better in RIDDLES
)


def too_long(text: str) -> Iterator[str]:
    lines = text.count("\n")
    if lines > MAX_FILE_LINES:
        yield f"{lines} lines, {MAX_FILE_LINES} is the ceiling"


def long_functions(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > MAX_FUNCTION_LINES:
                yield f"{node.lineno}: {node.name} has {lines} lines, {MAX_FUNCTION_LINES} is the ceiling"


def banned_module_name(path: PurePath) -> Iterator[str]:
    for part in (*path.parent.parts, path.stem):
        if part in BANNED_MODULES or part.rsplit("_", 1)[-1] in {"utils", "helpers", "v2"}:
            yield f"the name {part} says nothing about what is inside"


def gerund_module_name(path: PurePath) -> Iterator[str]:
    last = path.stem.rsplit("_", 1)[-1]
    if last.endswith("ing") and last not in NOUNS_IN_ING:
        yield f"the name {path.stem} says what is done, not what is defined; name the thing"


def crowded_folders(paths: Iterable[PurePath]) -> Iterator[str]:
    """Folders that a reader cannot take in at one look."""
    modules = Counter(path.parent for path in paths if path.suffix == ".py" and path.name != "__init__.py")
    for folder, count in sorted(modules.items()):
        if count > MAX_FOLDER_MODULES:
            yield f"{folder} has {count} modules, {MAX_FOLDER_MODULES} is the ceiling; sub-folders are named after subjects"


def banned_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and BANNED_CLASS_WORDS.search(node.name):
            yield f"{node.lineno}: class {node.name}"
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name.endswith("_v2"):
            yield f"{node.lineno}: {node.name}"


def unnamed_errors(tree: ast.Module) -> Iterator[str]:
    """Errors no caller can act on, and errors nobody hears of."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if isinstance(raised, ast.Name) and raised.id in UNNAMED_ERRORS:
                yield f"{node.lineno}: raises {raised.id}; lakelet.errors has the kinds"
        if isinstance(node, ast.ExceptHandler):
            broad = node.type is None or (isinstance(node.type, ast.Name) and "Exception" in node.type.id)
            if node.type is None:
                yield f"{node.lineno}: bare except"
            elif broad and all(isinstance(statement, ast.Pass) for statement in node.body):
                yield f"{node.lineno}: swallows every error"


def no_docstring(tree: ast.Module) -> Iterator[str]:
    if not (ast.get_docstring(tree) or "").strip():
        yield "1: no module docstring"


def ambient_calls(tree: ast.Module) -> Iterator[str]:
    """Uses of the machine's clock or randomness, called or handed on."""
    names = _imported_names(tree)
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and id(node) not in inner:
            dotted = _dotted(node, names)
            if dotted is not None and AMBIENT_PATTERN.match(dotted):
                yield f"{node.lineno}: {dotted}; lakelet.clock and lakelet.ids are the only places for that"


def unfinished(text: str) -> Iterator[str]:
    yield from _matches(UNFINISHED, text)


def machine_details(text: str) -> Iterator[str]:
    yield from _matches(MACHINE, text)


def riddles(text: str) -> Iterator[str]:
    """Phrases that a reader has to translate into the field's words, also where a line breaks them in two."""
    for pattern, better in RIDDLE_PATTERNS:
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{line}: {' '.join(match.group().split())!r}; say: {better}"


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), start=1):
        for match in pattern.finditer(line):
            yield f"{number}: {match.group()}"


def _imported_names(tree: ast.Module) -> dict[str, str]:
    """What each imported name stands for: `from time import time as now` gives {"now": "time.time"}."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _dotted(node: ast.expr, names: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        inner = _dotted(node.value, names)
        return None if inner is None else f"{inner}.{node.attr}"
    return None
