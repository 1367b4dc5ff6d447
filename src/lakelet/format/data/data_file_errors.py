"""Classify errors of data-file reads: missing file, unavailable store, corrupt bytes.

Arrow reports a missing file, a store that does not answer and bytes that do not decode through the same few
exceptions. Readers open a file with `open_input` and wrap every read of it in `decoding`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from lakelet.errors import CorruptionError, NotFoundError, UnavailableError
from lakelet.storage.store import ObjectStore

_NETWORK = ("AWS Error", "curlCode", "Connection", "timed out", "timeout")


def open_input(store: ObjectStore, path: str) -> pa.NativeFile:
    """The file for Arrow's readers, at random access."""
    filesystem, name = store.arrow_path(path)
    try:
        return filesystem.open_input_file(name)
    except FileNotFoundError as error:
        raise NotFoundError(f"{store.location}/{path} does not exist") from error
    except OSError as error:
        raise UnavailableError(f"{store.location}/{path}: cannot be opened ({error})") from error


def store_failed(error: BaseException) -> bool:
    """Whether the store failed: decoders report bad bytes as an OSError without a number, the operating system's
    have one, S3's have a text."""
    is_missing = isinstance(error, FileNotFoundError)
    return (
        isinstance(error, OSError)
        and not is_missing
        and (error.errno is not None or any(word in str(error) for word in _NETWORK))
    )


@contextmanager
def decoding(store: ObjectStore, path: str, kind: str) -> Iterator[None]:
    """Turns Arrow's errors into a CorruptionError that names the file, or UnavailableError when the store failed."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotFoundError(f"{store.location}/{path} does not exist") from error
    except OSError as error:
        if store_failed(error):
            raise UnavailableError(f"{store.location}/{path}: cannot be read ({error})") from error
        raise CorruptionError(f"{store.location}/{path}: not a sound {kind} file ({error})") from error
    except (pa.ArrowException, KeyError, UnicodeDecodeError) as error:
        raise CorruptionError(f"{store.location}/{path}: not a sound {kind} file ({error})") from error
