"""Every script of this folder, on a local folder and on S3. `LAKELET_REWRITE=1` writes the rows of the scripts anew."""

import os
import uuid
from pathlib import Path

import pytest

from lakelet.catalog.lake import Lake
from lakelet.storage.open import open_store
from tests.services.server import S3Service
from tests.sql.runner import LAYOUTS, Run, read_script, rewritten
from tests.unit.moving_clock import MovingClock

FOLDER = Path(__file__).parent / "scripts"
SCRIPTS = sorted(FOLDER.glob("*.test"))
REWRITE = bool(os.environ.get("LAKELET_REWRITE"))


def every_layout() -> list[tuple[Path, str]]:
    return [(path, layout) for path in SCRIPTS for layout in read_script(path).layouts]


@pytest.mark.sampled
@pytest.mark.parametrize(("path", "layout"), every_layout(), ids=lambda one: getattr(one, "stem", one))
def test_a_script_on_a_local_folder(path: Path, layout: str, tmp_path: Path) -> None:
    clock = MovingClock()
    script = read_script(path)
    run = Run(script, layout, Lake(open_store(str(tmp_path), {}), clock=clock), clock, store="local")
    rewrite = REWRITE and layout == script.layouts[0]
    run.run(rewrite=rewrite)
    if rewrite:
        path.write_text(rewritten(path.read_text(encoding="utf-8"), run.found), encoding="utf-8")


@pytest.mark.sampled(at_most=8)
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_on_s3(path: Path, s3_minio: S3Service) -> None:
    clock = MovingClock()
    script = read_script(path)
    # One layout is enough to see that files are found; the last one merges and compacts where there are several.
    store = open_store(s3_minio.url(f"sql/{path.stem}-{uuid.uuid4().hex}"), s3_minio.options)
    Run(script, script.layouts[-1], Lake(store, clock=clock), clock, store="s3").run()


def test_there_are_hundreds_of_statements() -> None:
    scripts = [read_script(path) for path in SCRIPTS]
    assert sum(len(script.parts) for script in scripts) > 500
    assert {layout for script in scripts for layout in script.layouts} == set(LAYOUTS)
