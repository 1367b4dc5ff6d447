"""Convert errors of reading a snapshot's file into LakeletErrors that name it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from lakelet.errors import CorruptionError, NotFoundError, PermissionDeniedError, UnavailableError
from lakelet.format.data.data_file_errors import store_failed


@contextmanager
def reading(path: str, what: str) -> Iterator[None]:
    """Converts errors of the block into one that names the file; `what` names the table and the snapshot."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotFoundError(f"{what}: {path} is gone: its snapshot may have been expired while it was read") from error
    except PermissionError as error:
        raise PermissionDeniedError(f"{what}: {path} may not be read: {error}") from error
    except (pa.ArrowException, OSError, EOFError) as error:
        if store_failed(error):
            raise UnavailableError(f"{what}: reading {path} failed: {error}") from error
        raise CorruptionError(f"{what}: {path} cannot be read: {error}") from error
