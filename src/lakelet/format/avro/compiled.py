"""Choose how the kernels run: compiled by numba, or as plain Python where numba is absent or not worth loading.

Importing numba and loading a kernel takes about a second, and compiling one some two seconds more, once (the machine
code is kept on disk after that). A process that only looks at a few small files is faster without, so kernels stay
interpreted until they have been given more than INTERPRETED_BYTES. LAKELET_NO_NUMBA=1 keeps them interpreted for good.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from lakelet.format.avro import kernels
from lakelet.format.compiled import compile_cache

INTERPRETED_BYTES = 1 << 21
"""About 0.2 s of interpreted work, less than loading numba and the kernels takes."""

Kernel = Callable[..., Any]

_lock = threading.Lock()
_compiled: dict[str, Kernel] = {}
_interpreted: Counter[str] = Counter()


def compiled_kernel(name: str, size: int) -> Kernel | None:
    """The compiled kernel of that name, or None if `size` bytes of rows are better interpreted."""
    if os.environ.get("LAKELET_NO_NUMBA", "") not in ("", "0"):
        return None
    if name in _compiled:
        return _compiled[name]
    with _lock:
        _interpreted[name] += size
        if _interpreted.total() <= INTERPRETED_BYTES or importlib.util.find_spec("numba") is None:
            return None
        if name not in _compiled:
            if not _compiled:
                _register_inner()
            _compiled[name] = _compile(name)
        return _compiled[name]


def load_kernels() -> bool:
    """Load both kernels now, as a server does before its first request; says whether they are compiled."""
    return all(compiled_kernel(name, INTERPRETED_BYTES + 1) is not None for name in ("decode_rows", "encode_rows"))


def _register_inner() -> None:
    """Make the functions that kernels call known to numba; they are inlined, or every call would count references."""
    extending: Any = importlib.import_module("numba.extending")
    inlined = {"forceinline": True}
    for inner in (
        kernels.read_varint,
        kernels.push_nulls,
        kernels.read_cell,
        kernels.read_items,
        kernels.decode_row,
        kernels.write_varint,
        kernels.write_cell,
    ):
        extending.register_jitable(**inlined)(inner)
    memcpy = extending.intrinsic(_type_memcpy)

    def copy(target: Any, at: Any, source: Any, begin: Any, length: Any) -> None:
        memcpy(target, at, source, begin, length)

    extending.overload(kernels.copy_bytes, strict=False, jit_options=inlined)(
        lambda target, at, source, begin, length: copy
    )


def _type_memcpy(context: Any, target: Any, at: Any, source: Any, begin: Any, length: Any) -> Any:
    """The type and the machine code of a copy; a loop over bytes takes as long as all the rest of decoding."""
    core: Any = importlib.import_module("numba.core")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        into = context.make_array(signature.args[0])(context, builder, args[0]).data
        out_of = context.make_array(signature.args[2])(context, builder, args[2]).data
        core.cgutils.raw_memcpy(builder, builder.gep(into, [args[1]]), builder.gep(out_of, [args[3]]), args[4], 1)
        return context.get_dummy_value()

    return core.types.void(target, at, source, begin, length), generate


def _compile(name: str) -> Kernel:
    numba: Any = importlib.import_module("numba")
    types = numba.types
    i64 = types.int64
    constant = types.Array(types.uint8, 1, "C", readonly=True)
    u8, v32, v64 = types.uint8[::1], types.int32[::1], types.int64[::1]
    signatures = {
        "decode_rows": types.UniTuple(i64, 5)(v64, constant, i64, i64, v64, v64, u8, v32, v64, v64, v64, v64, v64),
        "encode_rows": types.UniTuple(i64, 4)(v64, i64, i64, u8, i64, u8, v32, v64, v64, v64, v64),
    }
    # Kernels allocate nothing, so the reference counting of arrays is switched off: it would take half of the time.
    return compile_cache.compiled(getattr(kernels, name), signatures[name], nogil=True, _nrt=False)
