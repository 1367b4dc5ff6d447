"""Every option of Java Paimon 1.4.2 is declared once, with its default, and documented."""

import importlib.util
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import pytest

import lakelet.options as options_package
import lakelet.options.table as themes
from lakelet.options import ACTED, CONNECTION_OPTIONS, KEPT, REFUSED, TABLE_OPTIONS, Option, find_option
from lakelet.options.table.files import SST_OPTIONS
from lakelet.options.table.iceberg import ICEBERG_OPTIONS
from lakelet.options.table.realtime import REALTIME_OPTIONS
from lakelet.options.table.service import SERVICE_OPTIONS

ROOT = Path(__file__).resolve().parents[4]
LISTED = dict(
    line.split(" = ", 1)
    for line in (Path(__file__).parent / "paimon-1.4.2-options.txt").read_text(encoding="utf-8").splitlines()
)
DECLARED = {option.name: option for option in TABLE_OPTIONS}
THEMES = [import_module(f"{themes.__name__}.{found.name}") for found in iter_modules(themes.__path__)]
CONSTANTS = [
    (name, value)
    for module in (options_package, *THEMES)
    for name, value in vars(module).items()
    if isinstance(value, Option)
]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_options_doc", ROOT / "scripts" / "generate_options_doc.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_list_is_whole() -> None:
    assert len(LISTED) == 283


def test_every_listed_option_is_declared_with_its_default() -> None:
    unset = {"null": None, "{}": ""}
    expected = {name: unset.get(default, default) for name, default in LISTED.items()}
    assert {name: DECLARED[name].default_text for name in LISTED if name in DECLARED} == expected


def test_only_families_and_our_own_are_declared_beyond_the_list() -> None:
    ours = {"write.missing-columns", *(option.name for option in REALTIME_OPTIONS + SST_OPTIONS + SERVICE_OPTIONS)}
    # Paimon declares those of its Iceberg metadata apart from the others.
    ours |= {option.name for option in ICEBERG_OPTIONS if not option.is_family}
    assert {name for name, option in DECLARED.items() if name not in LISTED and not option.is_family} == ours


def test_no_name_is_declared_twice() -> None:
    names = [name for option in TABLE_OPTIONS for name in (option.name, *option.older_names)]
    assert sorted(names) == sorted(set(names))


def test_defaults_are_supported() -> None:
    assert [option.name for option in TABLE_OPTIONS if not option.supports(option.default)] == []


def test_supported_values_are_values_of_the_kind() -> None:
    for option in TABLE_OPTIONS:
        assert [option.parse(str(value)) for value in option.supported] == list(option.supported)


def test_full_names_go_before_families() -> None:
    assert find_option("parquet.enable.dictionary") is DECLARED["parquet.enable.dictionary"]
    assert find_option("file-index.read.enabled") is DECLARED["file-index.read.enabled"]
    assert find_option("parquet.page.size") is DECLARED["parquet.<setting>"]


def test_every_meaning_is_one_sentence() -> None:
    for option in (*TABLE_OPTIONS, *CONNECTION_OPTIONS):
        assert option.meaning.endswith("."), option.name
        assert option.meaning[0].isupper(), option.name
        assert "|" not in option.meaning, option.name


def test_every_acted_option_has_a_constant() -> None:
    constants = {value.name for _, value in CONSTANTS}
    assert {option.name for option in TABLE_OPTIONS if option.effect is ACTED} <= constants


@pytest.mark.parametrize(
    ("effect", "names"),
    [
        (ACTED, ["bucket", "file.format", "commit.max-retries", "scan.snapshot-id", "fields.<column>.stats-mode"]),
        (KEPT, ["auto-create", "lookup-compact", "orc.<setting>"]),
        (REFUSED, ["row-tracking.enabled", "data-evolution.enabled", "query-auth.enabled"]),
    ],
)
def test_effects(effect: object, names: list[str]) -> None:
    assert [name for name in names if DECLARED[name].effect is not effect] == []


def test_the_page_is_up_to_date(generator: ModuleType) -> None:
    assert generator.PAGE.read_text(encoding="utf-8") == generator.render(), "run scripts/generate_options_doc.py"


def test_the_page_shows_every_option_once(generator: ModuleType) -> None:
    page = generator.render()
    for option in (*TABLE_OPTIONS, *CONNECTION_OPTIONS):
        assert page.count(f"\n| `{option.name}` |") == 1


def test_every_option_that_is_acted_on_is_read_somewhere() -> None:
    package = ROOT / "src" / "lakelet"
    sources = [path for path in package.rglob("*.py") if package / "options" not in path.parents]
    code = "\n".join(path.read_text(encoding="utf-8") for path in [*sources, package / "options" / "values.py"])
    names = {id(value): name for name, value in CONSTANTS}
    acted = [option for option in TABLE_OPTIONS if option.effect is ACTED]
    assert [
        option.name
        for option in acted
        if f'"{option.name}' not in code and names.get(id(option), option.name) not in code
    ] == []
