"""When kernels are compiled, and that they work where numba cannot keep them."""

from __future__ import annotations

import importlib.util
from collections import Counter
from typing import Any

import pytest

from lakelet.format.avro import compiled


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A process that has not compiled anything yet; the names of the kernels that it then compiles."""
    names: list[str] = []

    def compile_kernel(name: str) -> Any:
        names.append(name)
        return len

    monkeypatch.delenv("LAKELET_NO_NUMBA", raising=False)
    monkeypatch.setattr(compiled, "_compiled", {})
    monkeypatch.setattr(compiled, "_interpreted", Counter())
    monkeypatch.setattr(compiled, "_register_inner", lambda: None)
    monkeypatch.setattr(compiled, "_compile", compile_kernel)
    monkeypatch.setattr(compiled, "INTERPRETED_BYTES", 100)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    return names


def test_small_files_are_interpreted_until_they_add_up(loaded: list[str]) -> None:
    assert compiled.compiled_kernel("decode_rows", 60) is None
    assert compiled.compiled_kernel("encode_rows", 40) is None
    assert loaded == []
    assert compiled.compiled_kernel("decode_rows", 1) is len
    assert compiled.compiled_kernel("decode_rows", 1) is len
    assert loaded == ["decode_rows"]


def test_a_server_loads_both_at_once(loaded: list[str]) -> None:
    assert compiled.load_kernels()
    assert loaded == ["decode_rows", "encode_rows"]


def test_the_environment_keeps_kernels_interpreted(loaded: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKELET_NO_NUMBA", "1")
    assert not compiled.load_kernels()
    monkeypatch.setenv("LAKELET_NO_NUMBA", "0")
    assert compiled.load_kernels()


def test_kernels_are_interpreted_without_numba(loaded: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not compiled.load_kernels()
    assert loaded == []


def test_kernels_compile_where_they_cannot_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    numba = pytest.importorskip("numba")
    asked: list[dict[str, Any]] = []

    def njit(signature: Any, **options: Any) -> Any:
        asked.append(options)
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return lambda kernel: kernel

    monkeypatch.setattr(numba, "njit", njit)
    assert compiled._compile("decode_rows") is compiled.kernels.decode_rows
    assert [options.get("cache", False) for options in asked] == [True, True, False]
    assert all(options["nogil"] for options in asked)
