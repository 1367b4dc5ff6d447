"""The OpenAPI document describes the edge: every route is in it, and generated requests are answered as it says."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from lakelet.service.access.access import Access
from lakelet.service.request_metrics import RequestMetrics
from lakelet.service.rest.docs_page import DOCS_PATHS
from lakelet.service.rest.openapi import openapi_json
from lakelet.service.rest.routes import routes
from lakelet.service.running_queries import RunningQueries
from tests.unit.service.served_lake import ServedLake

_CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance, not_a_server_error]
# Texts for machines other than clients of the API.
_OTHERS = {"/metrics", "/openapi.json"} | DOCS_PATHS


def test_every_route_is_described(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        there = {
            (route.path.replace(":anything", ""), method)
            for route in routes(served.service, RequestMetrics(), Access(None), RunningQueries(served.service))
            for method in (route.methods or set()) - {"HEAD"}
        }
    there |= {("/v1/data", "POST"), ("/v1/data/batch", "POST")}
    described = {
        (path, method.upper()) for path, methods in json.loads(openapi_json())["paths"].items() for method in methods
    }
    assert {one for one in there if one[0] not in _OTHERS} == described


def document(tables: list[str] | None = None) -> Any:
    """The document; with `tables` it has no other names of tables and drops none, so that generated requests reach them."""
    found = json.loads(openapi_json())
    if tables is not None:
        found["paths"]["/v1/tables/{table_name}"].pop("delete")
        for one in _parts(found):
            if str(one.get("pattern", "")).startswith("^[A-Za-z_]"):
                one.pop("pattern")
                one["enum"] = tables
    return found


def _parts(value: Any) -> Iterator[dict[str, Any]]:
    """All objects of a document."""
    inner: Iterable[Any] = ()
    if isinstance(value, dict):
        yield value
        inner = list(value.values())
    elif isinstance(value, list):
        inner = value
    for one in inner:
        yield from _parts(one)


@pytest.mark.parametrize("tables", [None, ["t", "keyed"]])
def test_generated_requests_are_answered_as_described(tmp_path: Path, tables: list[str] | None) -> None:
    """No request, valid or not, is answered with a server error, an undocumented status or another body than described."""
    statuses: Counter[int] = Counter()
    with ServedLake(tmp_path) as served:
        served.create("t")
        served.create("keyed", properties={"primary_key": "id"})
        schema = schemathesis.openapi.from_dict(document(tables))

        @given(case=schema.as_strategy())
        @settings(
            max_examples=150,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def check(case: schemathesis.Case) -> None:
            given_request = case.as_transport_kwargs(base_url="http://localhost")
            given_request.pop("cookies", None)
            answer = served.request(
                given_request["method"],
                given_request["url"],
                params=given_request.get("params"),
                headers=dict(given_request.get("headers") or {}),
                **{name: given_request[name] for name in ("json", "data") if given_request.get(name) is not None},
            )
            assert answer.status_code != 500, answer.text
            case.validate_response(answer, checks=_CHECKS)
            statuses[answer.status_code] += 1

        check()
    assert statuses[200] > (60 if tables else 0)
