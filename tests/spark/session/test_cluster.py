"""On a cluster of one executor or two, with Lakelet sent along: as a wheel under a name that Spark knows, and as an archive.

The driver and the executors start without PYTHONPATH and with a HOME in which nothing can be made.
"""

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.spark.clusters import submit
from tests.spark.java import REPOSITORY
from tests.spark.programs import shipped_job

# A cluster starts five processes, which a busy machine takes its time for.
pytestmark = pytest.mark.spark

# One executor shows that the code arrives; the archive goes to two.
ONE, TWO = "local-cluster[1,1,1024]", "local-cluster[2,1,1024]"
PROGRAM = Path(shipped_job.__file__)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lakelet as it would be published."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def reported(java: str, folder: Path, cluster: str, **options: Any) -> dict[str, Any]:
    ended = submit(java, folder, master=cluster, program=PROGRAM, arguments=[str(folder / "warehouse")], **options)
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
    report: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return report


def check(report: dict[str, Any], folder: Path) -> None:
    assert report["counts"] == {"True": shipped_job.ROWS // 2, "False": shipped_job.ROWS // 2}
    assert report["snapshots"] == [1, 2]
    # Machine code was kept, although neither the code's folder nor HOME could be written.
    assert report["kept"]
    assert all(Path(kept).is_relative_to(folder / "tmp") for kept in report["kept"])


def test_a_wheel_sent_with_py_files(java: str, wheel: Path, tmp_path: Path) -> None:
    # Of what --py-files lists Spark puts zips on the path of executors, not wheels; a wheel is a zip.
    sent = tmp_path / "lakelet.zip"
    sent.write_bytes(wheel.read_bytes())
    report = reported(java, tmp_path, ONE, flags=["--py-files", str(sent)])
    check(report, tmp_path)
    assert report["driver"] == f"{sent}/lakelet/__init__.py"
    work = tmp_path / "spark-home" / "work"
    assert report["executors"]
    assert all(
        Path(found).is_relative_to(work) and found.endswith("/lakelet.zip/lakelet/__init__.py")
        for found in report["executors"]
    )


@pytest.mark.deep
def test_an_archive_of_packages_and_bounded_workers(java: str, wheel: Path, tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    with zipfile.ZipFile(wheel) as reader:
        reader.extractall(packages)
    with tarfile.open(tmp_path / "packages.tar.gz", "w:gz") as writer:
        writer.add(packages, ".")
    config = {"spark.executorEnv.PYTHONPATH": "packages", "spark.executor.pyspark.memory": "3g"}
    report = reported(
        java,
        tmp_path,
        TWO,
        config=config,
        flags=["--archives", f"{tmp_path / 'packages.tar.gz'}#packages"],
        variables={"PYTHONPATH": str(packages)},
    )
    assert report["counts"] == {"True": shipped_job.ROWS // 2, "False": shipped_job.ROWS // 2}
    work = tmp_path / "spark-home" / "work"
    assert all(Path(found).is_relative_to(work) for found in report["executors"])
