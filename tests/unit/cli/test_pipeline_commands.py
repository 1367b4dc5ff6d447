"""`lakelet pipeline` without Spark: the example, pictures, the status, and mistakes."""

import json
from pathlib import Path

import pytest

from lakelet import connect
from lakelet.cli import main
from lakelet.cli.output.output import ConsoleOutput
from lakelet.cli.pipeline.run_command import ShownRun
from lakelet.clock import SystemClock
from lakelet.pipeline import Graph, load
from lakelet.pipeline.event_log import Event, EventLog


class SteppingClock(SystemClock):
    """Time that a test sets."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


def test_the_example_is_a_pipeline_and_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "my shop" / "shop.yaml"
    assert main(["pipeline", "init", str(file)]) == 0
    assert [flow.name for flow in Graph.of(load(file)).order][-1] == "best_customers"
    capsys.readouterr()
    assert main(["pipeline", "init", str(file)]) == 1
    assert "AlreadyExistsError" in capsys.readouterr().err
    assert main(["pipeline", "init", str(tmp_path / "shop.txt")]) == 1


def test_the_graph_in_every_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "shop.yaml"
    main(["pipeline", "init", str(file)])
    capsys.readouterr()
    assert main(["pipeline", "graph", str(file)]) == 0
    assert "└─ raw_orders   source, as a stream" in capsys.readouterr().out
    assert main(["pipeline", "graph", str(file), "-t", "mermaid"]) == 0
    assert capsys.readouterr().out.startswith("flowchart LR")
    picture = tmp_path / "shop.svg"
    assert main(["pipeline", "graph", str(file), "-t", "svg", "--to", str(picture)]) == 0
    assert picture.read_text().startswith("<svg")
    capsys.readouterr()
    assert main(["pipeline", "graph", str(file), "--json"]) == 0
    assert {"from": "raw_orders", "to": "orders", "streaming": True, "flow": None} in json.loads(
        capsys.readouterr().out
    )["rows"]
    assert main(["pipeline", "graph", str(file), "-t", "svg", "--to", str(tmp_path / "no" / "x.svg")]) == 1


def test_a_mistake_is_one_line_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text("name: shop\ntabels: {}\n")
    for command in ("graph", "run", "dry-run", "status"):
        assert main(["pipeline", command, str(file)]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line == f"InvalidError: {file}:2: unknown field 'tabels' of a pipeline; did you mean tables?"
    assert main(["pipeline", "run", str(tmp_path / "none.yaml"), "--json"]) == 1
    assert json.loads(capsys.readouterr().err)["error"] == "NotFoundError"
    assert main(["pipeline", "run", str(file), "--master", "local", "--remote", "sc://x"]) == 2


def test_a_yaml_file_loads_no_code_and_a_python_file_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = tmp_path / "steps.py"
    code.write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\ndef made(spark):\n    return spark.range(1)\n")
    file = tmp_path / "shop.yaml"
    file.write_text("name: shop\nmaterialized_views: {v: {python: steps.py:made}}\n")
    assert main(["pipeline", "graph", str(file)]) == 0
    assert not (tmp_path / "ran").exists()
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import lakelet.pipeline as lp\n\n@lp.table(primry_key='id')\ndef t(raw):\n    return raw\n")
    assert main(["pipeline", "graph", str(wrong)]) == 1
    assert f"{wrong}:3: TypeError" in capsys.readouterr().err
    wrong.write_text("def (:\n")
    assert main(["pipeline", "graph", str(wrong)]) == 1
    assert f"InvalidError: {wrong}:1: invalid syntax" in capsys.readouterr().err
    asks = tmp_path / "asks.py"
    asks.write_text("import lakelet.pipeline as lp\nlp.parameter('day')\n")
    assert main(["pipeline", "graph", str(asks)]) == 1
    assert "give it with -p day=" in capsys.readouterr().err
    assert main(["pipeline", "graph", str(asks), "-p", "day=1", "-p", "dya=2"]) == 1
    assert "asks for no parameter 'dya'" in capsys.readouterr().err


def test_the_status_is_read_from_the_event_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(
        "name: shop\ndatabase: shop\nwarehouse: lake\nsources: {r: {format: rate}}\ntables: {t: {source: r}}\n"
        "materialized_views: {v: {sql: SELECT * FROM t}}\n"
    )
    lake = connect(str(tmp_path / "lake"))
    log = EventLog(lake, "shop", "shop")
    log.create()
    assert main(["pipeline", "status", str(file)]) == 0
    assert "has not run" in capsys.readouterr().out
    EventLog(lake, "shop", "other's").write("x", [Event("started"), Event("failed")])
    log.write("one", [Event("started")])
    log.write("one", [Event("completed", "t", "t", 5, 1.5, 1, {"unmet": {"positive": 2, "none": 0}})])
    assert main(["pipeline", "status", str(file), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["title"].endswith(": running, or its process was killed")
    assert [(row["flow"], row["outcome"], row["rows"], row["unmet expectations"]) for row in shown["rows"]] == [
        ("t", "completed", 5, "positive: 2"),
        ("v", "not run", None, None),
    ]
    log.write("one", [Event("failed", "v", "v", details={"message": "why"}), Event("failed", seconds=3.0)])
    assert main(["pipeline", "status", str(file)]) == 0
    out = capsys.readouterr().out
    assert ": failed" in out
    assert "why" in out


def test_events_have_the_time_at_which_they_happened(tmp_path: Path) -> None:
    log = EventLog(connect(str(tmp_path / "lake")), "shop", "shop")
    log.create()
    log.write(
        "one", [Event("started", at_ms=1_000), Event("started", "t", "t", at_ms=2_000), Event("completed", "t", "t")]
    )
    times = [row["time"].timestamp() for row in log.last_run()]
    assert times[:2] == [1.0, 2.0]
    assert times[2] > 1_000_000_000


def test_a_long_run_says_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyspark")
    from lakelet.spark.pipeline.flow.flow_result import FlowReport

    clock = SteppingClock()
    shown = ShownRun(ConsoleOutput(), clock)
    shown.report(FlowReport("a[b]", "a", "started"))
    for seconds, rows in ((1, 10), (6, 1_000), (7, 2_000), (12, 1_000), (20, 0), (30, 3_000)):
        clock.seconds = float(seconds)
        shown.report(FlowReport("a[b]", "a", "progress", rows))
    shown.report(FlowReport("a[b]", "a", "retried", message="the store [did] not answer"))
    assert capsys.readouterr().out.splitlines() == [
        *("a[b] …", "a[b]: 1,000 rows so far", "a[b]: 3,000 rows so far"),
        "a[b]: trying again, for the store [did] not answer",
    ]
