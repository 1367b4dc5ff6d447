"""The graph: order, selection and cycles."""

import pytest

from lakelet.errors import InvalidError, NotFoundError
from lakelet.pipeline import Graph, parse_pipeline

DIAMOND = """\
name: diamond
sources: {raw: {format: rate}}
temporary_views:
  even: {sql: SELECT * FROM base WHERE value % 2 = 0}
materialized_views:
  joined: {sql: SELECT * FROM left JOIN default.right USING (value)}
  left: {sql: SELECT * FROM even}
  right: {sql: SELECT * FROM Base}
  apart: {sql: SELECT 1 AS one}
tables:
  base: {source: raw}
append_flows:
  more: {target: base, source: raw}
"""


def graph(text: str = DIAMOND) -> Graph:
    return Graph.of(parse_pipeline(text, "diamond.yaml"))


def test_flows_run_after_those_that_fill_what_they_read() -> None:
    order = [flow.name for flow in graph().order]
    assert sorted(order) == ["apart", "base", "joined", "left", "more", "right"]
    for first, then in (("base", "left"), ("more", "left"), ("base", "right"), ("left", "joined"), ("right", "joined")):
        assert order.index(first) < order.index(then)


@pytest.mark.parametrize(
    ("names", "flows"),
    [
        ([], {"apart", "base", "joined", "left", "more", "right"}),
        (["BASE"], {"base", "more"}),
        (["left+"], {"left", "joined"}),
        (["+left"], {"base", "more", "left"}),
        (["apart", "right"], {"apart", "right"}),
    ],
)
def test_a_selection_takes_tables_with_all_their_flows(names: list[str], flows: set[str]) -> None:
    assert {flow.name for flow in graph().selected(names)} == flows


def test_a_selection_of_nothing_known() -> None:
    with pytest.raises(NotFoundError, match=r"no table or sink 'lft'; did you mean left"):
        graph().selected(["lft"])


def test_a_cycle_through_a_view_names_its_members() -> None:
    with pytest.raises(InvalidError, match=r"diamond\.yaml:6: a cycle: joined reads right reads base reads joined"):
        graph(DIAMOND.replace("base: {source: raw}", "base: {sql: SELECT * FROM joined, once: true}"))
