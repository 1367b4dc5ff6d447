"""Compile a function with numba and cache the machine code on disk, also when Lakelet is imported from an archive.

numba keeps machine code beside the source file, else in the user's cache folder. On a Spark executor there may be neither:
Lakelet is imported from a wheel or a zip in a folder that is deleted with the application, and HOME cannot be written. Then the
source of the function's module is copied to a folder of this user,

    <temporary folder>/lakelet-<user id>/<hash of the source>/<module>.py
                                                             /__pycache__/<machine code>

and numba is told that the function is defined there. As the folder is named by content, every executor and every application on
the machine finds what the first one compiled. `NUMBA_CACHE_DIR`, where it is set, is used instead of the temporary folder.
Machine code is run as it is found, so a folder that belongs to, or can be written by, anybody else is never used.
Where nothing can be kept, the function is compiled for this process alone.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

Function = Callable[..., Any]


def has_numba() -> bool:
    """Whether loops can be compiled here: numba is installed, and LAKELET_NO_NUMBA does not turn it off."""
    return os.environ.get("LAKELET_NO_NUMBA", "") in ("", "0") and importlib.util.find_spec("numba") is not None


def compiled(function: Function, signature: Any, *, inner: Sequence[Function] = (), **options: Any) -> Function:
    """The machine code of a function for one signature; `options` are numba's, `inner` the functions that it calls.

    Those are inlined, or every call would count references.
    """
    numba: Any = importlib.import_module("numba")
    for called in inner:
        importlib.import_module("numba.extending").register_jitable(forceinline=True)(called)
    for candidate in _candidates(function):
        try:
            kept: Function = numba.njit(signature, cache=True, **options)(candidate)
        except (RuntimeError, OSError):
            # The first is numba's way to say that it found no folder, the second that writing to it failed.
            continue
        return kept
    unkept: Function = numba.njit(signature, **options)(function)
    return unkept


def _candidates(function: Function) -> Iterator[Function]:
    # numba supports zip files, but it caches the machine code under the path of the zip, which differs for each application,
    # and it does not support wheels.
    if os.path.exists(function.__code__.co_filename):
        yield function
    copy = _as_if_in_a_file(function)
    if copy is not None:
        yield copy


def _as_if_in_a_file(function: Function) -> Function | None:
    """The same function, for numba defined in the copy of its module; None if there can be no copy."""
    loader: Any = function.__globals__.get("__loader__")
    text = loader.get_source(function.__module__) if hasattr(loader, "get_source") else None
    if text is None:
        return None
    try:
        path = _copied(text, function.__module__.rpartition(".")[2])
    except OSError:
        return None
    if path is None:
        return None
    code = function.__code__.replace(co_filename=str(path))
    moved = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    moved.__module__ = function.__module__
    moved.__qualname__ = function.__qualname__
    moved.__doc__ = function.__doc__
    return moved


def _copied(text: str, module: str) -> Path | None:
    """Copy the source of a module into the cache folder and return its path; None if that folder is not safe."""
    content = text.encode()
    path = _root() / hashlib.sha256(content).hexdigest()[:32] / f"{module}.py"
    for folder in (path.parents[1], path.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _mine(folder):
            return None
    if not path.exists():
        # Other processes do the same at the same moment; each puts a whole file in place.
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(content)
        os.replace(file.name, path)
    return path


def _root() -> Path:
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    user = f"lakelet-{os.getuid()}"
    return Path(chosen, user) if chosen else Path(tempfile.gettempdir(), user)


def _mine(folder: Path) -> bool:
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
