"""Pictures of a graph."""

from xml.etree import ElementTree

from lakelet.pipeline import Graph, parse_pipeline
from lakelet.pipeline.picture.mermaid import mermaid
from lakelet.pipeline.picture.svg import svg
from lakelet.pipeline.picture.terminal import terminal

TEXT = """\
name: pictures
sources:
  raw: {format: rate}
  'odd "<name>" & a very long one indeed': {format: rate}
temporary_views: {even: {sql: SELECT * FROM STREAM(raw)}}
tables: {base: {source: even}}
append_flows:
  odd: {target: base, sql: "SELECT value FROM STREAM(`odd \\"<name>\\" & a very long one indeed`)"}
materialized_views: {sums: {sql: SELECT sum(value) AS s FROM base JOIN other.names USING (value)}}
sinks: {out: {format: console, source: base}}
"""
GRAPH = Graph.of(parse_pipeline(TEXT.replace('\\\\"', '\\"'), "p.yaml"))


def test_text_for_a_terminal() -> None:
    assert terminal(GRAPH).splitlines() == [
        "even   view",
        "└─ raw   source, as a stream",
        "base   streaming table",
        "├─ even   view, as a stream",
        '└─ odd "<name>" & a very long one indeed   source, as a stream, by odd',
        "sums   materialized view",
        "├─ base   streaming table",
        "└─ other.names   table",
        "out   sink",
        "└─ base   streaming table, as a stream",
    ]


def test_mermaid() -> None:
    lines = mermaid(GRAPH).splitlines()
    assert lines[0] == "flowchart LR"
    assert '    n0[/"raw<br/><small>source</small>"/]' in lines
    assert any("odd #34;#60;name#62;#34; #38; a very long one indeed" in line for line in lines)
    assert any('-.->|"odd"|' in line for line in lines)
    assert len(lines) == 1 + 7 + 6


def test_svg_is_whole_and_harmless() -> None:
    root = ElementTree.fromstring(svg(GRAPH))
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f"{space}g")) == 7
    assert len(root.findall(f"{space}path")) == 6
    titles = [one.text for one in root.iter(f"{space}title")]
    assert 'odd "<name>" & a very long one indeed, source' in titles
    assert not list(root.iter(f"{space}script"))
