"""The files of the project, as the tidy tests see them: what git tracks, and what it would track."""

import ast
import subprocess
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


@cache
def project_files() -> tuple[Path, ...]:
    """Every file that is in a commit or would be in the next, relative to the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        check=True,
    )
    paths = (Path(name.decode()) for name in listed.stdout.split(b"\0") if name)
    # A file deleted but not yet committed is still listed.
    return tuple(sorted(path for path in paths if (REPOSITORY / path).is_file()))


def python_files(folder: str = "") -> tuple[Path, ...]:
    return tuple(path for path in project_files() if path.suffix == ".py" and path.is_relative_to(folder))


@cache
def text_of(path: Path) -> str | None:
    """The file's text, or None if it is no text: golden files may hold bytes."""
    try:
        return (REPOSITORY / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


@cache
def tree_of(path: Path) -> ast.Module:
    text = text_of(path)
    assert text is not None, f"{path} is no text"
    return ast.parse(text, filename=str(path))
