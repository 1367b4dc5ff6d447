"""The page of procedures is generated, and shows every one of them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from lakelet.sql.procedures.registry import PROCEDURES

SCRIPT = Path(__file__).resolve().parents[4] / "scripts" / "generate_procedures_doc.py"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_procedures_doc", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(generator: ModuleType) -> None:
    assert generator.PAGE.read_text(encoding="utf-8") == generator.render(), "run scripts/generate_procedures_doc.py"


def test_the_page_shows_every_procedure_once(generator: ModuleType) -> None:
    page = generator.render()
    for procedure in PROCEDURES.values():
        assert page.count(f"\n### {procedure.name}\n") == 1
        assert all(f"\n| `{argument.name}` | " in page for argument in procedure.arguments)
