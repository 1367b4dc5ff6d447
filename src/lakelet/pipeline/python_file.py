"""Load pipelines and steps from Python files. Such a file is code and runs here: only what the user named is loaded."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lakelet.errors import InvalidError, LakeletError, NotFoundError
from lakelet.pipeline.definition import Pipeline
from lakelet.pipeline.place import Place
from lakelet.pipeline.registry import CURRENT, Registry


def load_python(path: str | os.PathLike[str], parameters: Mapping[str, str] | None = None) -> Pipeline:
    """Runs a file whose decorators define a pipeline. `parameters` are what `lp.parameter` returns."""
    registry = Registry(Path(path).stem, str(path), dict(parameters or {}))
    given = set(registry.parameters)
    token = CURRENT.set(registry)
    asked: set[str] = set()
    try:
        with _noted(registry, asked):
            _run(path)
    finally:
        CURRENT.reset(token)
    unknown = given - asked
    if unknown:
        raise InvalidError(f"{path}: the pipeline asks for no parameter {min(unknown)!r}")
    return registry.pipeline()


def load_functions(paths: Sequence[str | os.PathLike[str]]) -> dict[tuple[str, str], Callable[..., Any]]:
    """The functions of Python files, by file and name, for the steps of a YAML pipeline."""
    found: dict[tuple[str, str], Callable[..., Any]] = {}
    for path in paths:
        file = os.path.abspath(path)
        found |= {(file, name): value for name, value in _run(path).items() if callable(value)}
    return found


@contextmanager
def _noted(registry: Registry, asked: set[str]) -> Iterator[None]:
    """Notes which parameters the file asks for."""

    class Asked(dict[str, str]):
        def get(self, key: str, default: Any = None) -> Any:
            asked.add(key)
            return super().get(key, default)

    registry.parameters = Asked(registry.parameters)
    yield
    registry.parameters = dict(registry.parameters)


def _run(path: str | os.PathLike[str]) -> dict[str, Any]:
    file = os.path.abspath(path)
    if not os.path.isfile(file):
        raise NotFoundError(f"there is no Python file {path}")
    folder = os.path.dirname(file)
    # Its own modules are beside it, as for a program.
    sys.path.insert(0, folder)
    try:
        return runpy.run_path(file, run_name="lakelet_pipeline")
    except LakeletError:
        raise
    except SyntaxError as error:
        raise Place(error.filename or file, error.lineno).invalid(f"{error.msg}") from error
    except Exception as error:
        raise _place(error, file).invalid(f"{type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(folder)


def _place(error: Exception, file: str) -> Place:
    """The last line of the file that the error passed."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return Place(file, line)
