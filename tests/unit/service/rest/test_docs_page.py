"""The page of the operations loads nothing from elsewhere, tells nothing without a key, and shows what is described."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lakelet.service.access.access import Access
from lakelet.service.access.key_store import KeyStore
from lakelet.service.rest.docs_page import DOCS_PATHS
from lakelet.service.rest.openapi import openapi_json
from tests.unit.service.served_lake import ServedLake


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> ServedLake:
    """One that asks for keys; nothing of it has to run."""
    folder = tmp_path_factory.mktemp("docs")
    store = KeyStore(str(folder / "keys.json"))
    store.create("root", {"*": "admin"})
    return ServedLake(folder, access=Access(store))


def test_the_page_needs_no_key_and_what_it_shows_does(served: ServedLake) -> None:
    page = served.request("GET", "/docs")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    loaded = re.findall(r'(?:src|href)="([^"]*)"', page.text)
    assert sorted(loaded) == ["docs/page.css", "docs/page.js"]
    for path in loaded:
        assert served.request("GET", f"/{path}").status_code == 200
    assert served.request("GET", "/openapi.json").status_code == 401
    assert served.request("GET", "/docs/keys.json").status_code == 401


@pytest.mark.parametrize("path", sorted(DOCS_PATHS))
def test_nothing_comes_from_elsewhere(served: ServedLake, path: str) -> None:
    answer = served.request("GET", path)
    assert not re.search(r"(?:https?:)?//[a-z0-9-]+\.", answer.text)
    policy = dict(one.strip().split(" ", 1) for one in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_script_makes_no_markup_of_texts_and_finds_its_elements(served: ServedLake) -> None:
    page, script = (served.request("GET", path).text for path in ("/docs", "/docs/page.js"))
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", script)
    assert set(re.findall(r'byId\("(\w+)"\)', script)) == set(re.findall(r'id="(\w+)"', page))
    # The policy allows no script or style in the page itself.
    assert not re.search(r"<script>|<style|\son\w+=|style=", page)


# As much of a browser as the script uses: elements with text and children, and answers to fetch.
_BROWSER = r"""
const fs = require("fs");
const [script, document_json] = process.argv.slice(1).map((path) => fs.readFileSync(path, "utf8"));
class Element {
  constructor(name) {
    Object.assign(this, { name, children: [], attributes: {}, dataset: {}, listeners: {}, value: "", text: "" });
  }
  setAttribute(key, value) {
    this.attributes[key] = value;
    if (key.startsWith("data-")) this.dataset[key.slice(5)] = value;
    if (key === "value") this.value = value;
  }
  append(...children) { this.children.push(...children); }
  replaceChildren(...children) { this.children = children; }
  addEventListener(kind, listener) { this.listeners[kind] = listener; }
  set textContent(text) { this.text = text; }
  get textContent() { return this.text; }
}
const elements = {};
const sent = [];
globalThis.document = {
  createElement: (name) => new Element(name),
  getElementById: (id) => (elements[id] ||= new Element(id)),
};
globalThis.fetch = async (path, options) => {
  sent.push([path, options.method || "GET", options.headers, options.body ?? null]);
  const known = (options.headers.authorization || "") === "Bearer lk_key";
  const body = path === "./openapi.json" ? document_json : '{"sent": true}';
  return { status: known ? 200 : 401, statusText: "", ok: known, json: async () => JSON.parse(body), text: async () => body };
};
new Function(script)();
const settled = () => new Promise((resolve) => setTimeout(resolve, 0));
const below = (one) => [one, ...one.children.filter((child) => child.children).flatMap(below)];
const found = (one, name) => below(one).filter((each) => each.name === name);
(async () => {
  await settled();
  const before = elements.state.text;
  elements.key.value = "lk_key";
  elements.access.listeners.submit({ preventDefault() {} });
  await settled();
  const shown = elements.operations.children;
  const query = shown.find((one) => one.dataset.words.startsWith("delete /v1/data/{table}/{id}"));
  for (const input of found(query, "input")) input.value = { table: "t", id: "a/b" }[input.attributes["aria-label"]] || "";
  found(query, "button")[0].listeners.click();
  await settled();
  elements.filter.value = "backup";
  elements.filter.listeners.input();
  const visible = shown.filter((one) => !one.hidden).map((one) => one.dataset.words.split(" ").slice(0, 2).join(" "));
  console.log(JSON.stringify({ before, after: elements.state.text, all: shown.length, visible, last: sent.at(-1) }));
})();
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not here")
def test_the_script_shows_every_operation_once_it_has_a_key_and_sends_requests(
    tmp_path: Path, served: ServedLake
) -> None:
    (tmp_path / "page.js").write_text(served.request("GET", "/docs/page.js").text)
    (tmp_path / "openapi.json").write_bytes(openapi_json())
    command = ["node", "-e", _BROWSER, str(tmp_path / "page.js"), str(tmp_path / "openapi.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    described = [(path, method) for path, methods in json.loads(openapi_json())["paths"].items() for method in methods]
    assert told["before"] == "This service asks for an API key."
    assert (told["after"], told["all"]) == (f"{len(described)} operations", len(described))
    assert sorted(told["visible"]) == sorted(f"{method} {path}" for path, method in described if "backup" in path)
    assert told["last"] == ["./v1/data/t/a%2Fb", "DELETE", {"authorization": "Bearer lk_key"}, None]


def test_every_answer_is_described_with_its_headers(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        described = served.request("GET", "/openapi.json")
    for methods in json.loads(described.text)["paths"].values():
        for operation in methods.values():
            assert operation["summary"]
            assert "X-Request-Id" in [one["name"] for one in operation["parameters"] if one["in"] == "header"]
            assert "Retry-After" in operation["responses"]["429"]["headers"]
            assert all("X-Request-Id" in one["headers"] for one in operation["responses"].values())
