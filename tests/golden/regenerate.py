"""Writes the dumps anew: `python -m tests.golden.regenerate`. Look at the difference before committing it."""

from pathlib import Path

from tests.golden.file_dumps import dumps

FOLDER = Path(__file__).parent / "dumps"


def main() -> None:
    """Replaces every dump, and removes those that are made no more."""
    FOLDER.mkdir(exist_ok=True)
    made = dumps()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    for path in FOLDER.iterdir():
        if path.name not in made:
            path.unlink()
    print(f"{len(made)} dumps in {FOLDER}")


if __name__ == "__main__":
    main()
