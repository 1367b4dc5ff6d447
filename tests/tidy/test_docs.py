"""Every option and every command is documented."""

import re

from tests.tidy.sources import REPOSITORY


def test_every_option_is_documented() -> None:
    from lakelet.options import TABLE_OPTIONS

    page = (REPOSITORY / "docs" / "options.md").read_text(encoding="utf-8")
    names = [option.name for option in TABLE_OPTIONS]
    assert names
    assert [name for name in names if f"`{name}`" not in page] == []


def test_every_command_is_documented_with_its_options() -> None:
    from lakelet.cli import commands

    page = (REPOSITORY / "docs" / "cli.md").read_text(encoding="utf-8")
    shared, *sections = re.split(r"^## ", page, flags=re.MULTILINE)
    documented = {match.group(1): text for text in sections if (match := re.match(r"`lakelet ([a-z]+)", text))}
    found = commands()
    assert found
    assert set(documented) == set(found)
    assert [
        f"{name} {option}"
        for name, options in found.items()
        for option in options
        if not re.search(rf"{option}\b", shared) and not re.search(rf"{option}\b", documented[name])
    ] == []


def test_every_command_of_the_shell_is_documented() -> None:
    from lakelet.cli.shell.backslash import BACKSLASHES

    page = (REPOSITORY / "docs" / "cli.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\\[^`]+)`", page, flags=re.MULTILINE)
    told = [f"{name} {command.argument}".strip().replace("|", "\\|") for name, command in BACKSLASHES.items()]
    assert rows == told


def test_every_module_that_a_page_names_exists() -> None:
    source = REPOSITORY / "src" / "lakelet"
    packages = "|".join(sorted(folder.name for folder in source.iterdir() if folder.is_dir()))
    named = re.compile(rf"(?<![\w/.-])(?:{packages})(?:/[a-z_0-9]+)+(?:\.py)?(?![\w/.-])")
    pages = [REPOSITORY / "ARCHITECTURE.md", *(REPOSITORY / "docs" / "decisions").glob("*.md")]
    missing = [
        f"{page.name}: {match.group()}"
        for page in pages
        for match in named.finditer(page.read_text(encoding="utf-8"))
        if not (source / match.group()).is_dir() and not (source / match.group()).with_suffix(".py").exists()
    ]
    assert missing == []
