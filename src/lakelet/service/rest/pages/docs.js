// Shows openapi.json of the same service, and sends requests to it. Text is only ever set as text, never as markup.
"use strict";

const METHODS = ["get", "post", "put", "patch", "delete"];
let described = null;

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  for (const child of children) made.append(child);
  return made;
}

function byId(id) {
  return document.getElementById(id);
}

function keyHeaders() {
  const key = byId("key").value.trim();
  return key ? { authorization: "Bearer " + key } : {};
}

// A schema with what it refers to, to a depth that also ends for one that refers to itself.
function resolved(schema, depth) {
  if (schema === null || typeof schema !== "object" || depth > 8) return schema;
  if (Array.isArray(schema)) return schema.map((one) => resolved(one, depth + 1));
  if (typeof schema.$ref === "string") {
    const name = schema.$ref.split("/").pop();
    return resolved(described.components.schemas[name] || {}, depth + 1);
  }
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, resolved(value, depth + 1)]));
}

// A value that a schema takes, to begin with.
function example(schema, depth) {
  if (!schema || depth > 8) return null;
  if (schema.default !== undefined) return schema.default;
  if (schema.enum) return schema.enum[0];
  const one = schema.anyOf || schema.oneOf;
  if (one) return example(one[0], depth + 1);
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === "array") return schema.items ? [example(schema.items, depth + 1)] : [];
  if (type === "integer" || type === "number") return 0;
  if (type === "boolean") return false;
  if (type === "string") return schema.format === "date-time" ? "2026-01-31T10:00:00Z" : "";
  const found = {};
  for (const name of schema.required || []) found[name] = example((schema.properties || {})[name], depth + 1);
  return found;
}

function parameterTable(parameters, inputs) {
  const rows = parameters.map((parameter) => {
    const input = element("input", { "aria-label": parameter.name });
    inputs.push([parameter, input]);
    const label = parameter.name + (parameter.required ? " *" : "");
    const meaning = parameter.description || JSON.stringify(resolved(parameter.schema, 0));
    return element("tr", {}, element("td", {}, label), element("td", {}, parameter.in),
      element("td", {}, input), element("td", {}, element("code", {}, meaning)));
  });
  return element("table", {}, ...rows);
}

async function send(path, method, inputs, body, kind, shown) {
  let target = path;
  const query = new URLSearchParams();
  const headers = keyHeaders();
  for (const [parameter, input] of inputs) {
    if (input.value === "") continue;
    if (parameter.in === "path") target = target.replace("{" + parameter.name + "}", encodeURIComponent(input.value));
    else if (parameter.in === "header") headers[parameter.name] = input.value;
    else query.append(parameter.name, input.value);
  }
  if (body !== null) headers["content-type"] = kind;
  const search = query.toString();
  shown.textContent = "…";
  try {
    const answer = await fetch("." + target + (search ? "?" + search : ""), { method: method.toUpperCase(), headers, body });
    const text = await answer.text();
    let pretty = text;
    try { pretty = JSON.stringify(JSON.parse(text), null, 2); } catch { /* not JSON: shown as it is */ }
    shown.textContent = answer.status + " " + answer.statusText + "\n" + pretty;
  } catch (error) {
    shown.textContent = String(error);
  }
}

function operation(path, method, found) {
  const inputs = [];
  const inner = element("div", {});
  if (found.description) inner.append(element("p", {}, found.description));
  if (found.parameters) inner.append(parameterTable(found.parameters, inputs));
  let text = null;
  let kind = null;
  if (found.requestBody) {
    kind = element("select", { "aria-label": "content type" });
    text = element("textarea", { "aria-label": "body", spellcheck: "false" });
    for (const [name, content] of Object.entries(found.requestBody.content)) {
      kind.append(element("option", { value: name }, name));
      if (!text.value) text.value = JSON.stringify(example(resolved(content.schema, 0), 0), null, 2);
    }
    const schemas = Object.values(found.requestBody.content).map((content) => resolved(content.schema, 0));
    inner.append(element("p", {}, "Body ", kind), text,
      element("details", {}, element("summary", {}, "Schema of the body"), element("pre", {}, JSON.stringify(schemas[0], null, 2))));
  }
  const shown = element("pre", { "aria-live": "polite" });
  const button = element("button", { type: "button" }, "Send");
  button.addEventListener("click", () => send(path, method, inputs, text && text.value, kind && kind.value, shown));
  const answers = Object.entries(found.responses).map(([status, answer]) => {
    const schemas = Object.values(answer.content || {}).map((content) => resolved(content.schema, 0));
    return element("details", {}, element("summary", {}, status + " " + answer.description),
      element("pre", {}, JSON.stringify(schemas[0] || {}, null, 2)));
  });
  inner.append(element("p", {}, button), shown, element("details", {}, element("summary", {}, "Answers"), ...answers));
  const head = element("summary", {}, element("span", { class: "method " + method }, method), element("code", {}, path),
    element("span", { class: "summary" }, found.summary || ""));
  return element("details", { "data-words": (method + " " + path + " " + (found.summary || "")).toLowerCase() }, head, inner);
}

function filter() {
  const word = byId("filter").value.trim().toLowerCase();
  for (const one of byId("operations").children) one.hidden = !one.dataset.words.includes(word);
}

async function load() {
  const state = byId("state");
  state.textContent = "Loading …";
  try {
    const answer = await fetch("./openapi.json", { headers: keyHeaders() });
    if (answer.status === 401) {
      state.textContent = "This service asks for an API key.";
      return;
    }
    if (!answer.ok) throw new Error("openapi.json: status " + answer.status);
    described = await answer.json();
  } catch (error) {
    state.textContent = String(error);
    return;
  }
  byId("title").textContent = described.info.title + " " + described.info.version;
  byId("description").textContent = described.info.description;
  const made = [];
  for (const [path, methods] of Object.entries(described.paths)) {
    for (const method of METHODS) if (methods[method]) made.push(operation(path, method, methods[method]));
  }
  byId("operations").replaceChildren(...made);
  state.textContent = made.length + " operations";
  filter();
}

byId("access").addEventListener("submit", (event) => {
  event.preventDefault();
  load();
});
byId("filter").addEventListener("input", filter);
load();
