"""Every option and every command is documented."""

from tests.tidy.sources import REPOSITORY


def test_every_option_is_documented() -> None:
    from lakelet.options import TABLE_OPTIONS

    page = (REPOSITORY / "docs" / "options.md").read_text(encoding="utf-8")
    names = [option.name for option in TABLE_OPTIONS]
    assert names
    assert [name for name in names if f"`{name}`" not in page] == []


def test_every_command_is_documented() -> None:
    from lakelet.cli import commands

    page = (REPOSITORY / "docs" / "cli.md").read_text(encoding="utf-8")
    names = list(commands())
    assert names
    assert [name for name in names if f"lakelet {name}" not in page] == []
