// The description of all addresses, made from openapi.json.

import { ask } from "/page/api.js";
import { byId, el, trouble } from "/page/dom.js";

const isForm = (content) => "application/x-www-form-urlencoded" in content;

function resolved(schema, all) {
  return schema.$ref ? all[schema.$ref.split("/").at(-1)] : schema;
}

function fields(operation, all) {
  const given = (operation.parameters ?? []).map((one) => [one.name, one.in, one.schema, one.required, one.description]);
  const body = operation.requestBody?.content;
  if (!body) return given;
  const where = isForm(body) ? "form" : "JSON";
  const schema = resolved(Object.values(body)[0].schema, all);
  const shape = schema.type === "array" ? resolved(schema.items, all) : schema;
  return [...given, ...Object.entries(shape.properties ?? {}).map(([name, one]) =>
    [name, schema.type === "array" ? `${where}, in each` : where, one, shape.required?.includes(name), one.description])];
}

function kind(schema, all) {
  const found = resolved(schema ?? {}, all);
  const several = found.anyOf?.map((one) => kind(one, all)).filter((one) => one !== "null");
  if (several) return [...new Set(several)].join(" or ");
  if (found.type === "array") return `list of ${kind(found.items, all)}`;
  return found.type ?? "any";
}

function table(rows, all) {
  const head = ["Name", "In", "Type", "Default", "About"];
  return el("div", { className: "wide" }, el("table", {},
    el("thead", {}, el("tr", {}, ...head.map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, ...rows.map(([name, where, schema, required, about]) => el("tr", {},
      ...[name, where, kind(schema, all), required ? "required" : JSON.stringify(schema?.default) ?? "", about ?? schema?.description ?? ""]
        .map((text) => el("td", {}, text)))))));
}

function endpoint(path, method, operation, all) {
  const rows = fields(operation, all);
  const answers = Object.entries(operation.responses).map(([status, one]) => `${status}: ${one.description}`);
  return el("section", { className: "endpoint" },
    el("h3", {}, el("b", {}, method.toUpperCase()), ` ${path}`),
    el("p", {}, operation.description ?? operation.summary ?? ""),
    rows.length ? table(rows, all) : null,
    el("details", {}, el("summary", {}, "Answers"), el("ul", {}, ...answers.map((text) => el("li", {}, text)))));
}

async function begin() {
  const found = await ask("/openapi.json");
  const all = found.components.schemas;
  const groups = new Map();
  for (const [path, operations] of Object.entries(found.paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      const tag = operation.tags?.[0] ?? "other";
      if (!groups.has(tag)) groups.set(tag, [el("h2", {}, tag)]);
      groups.get(tag).push(endpoint(path, method, operation, all));
    }
  }
  byId("endpoints").replaceChildren(...[...groups.values()].flat());
}

begin().catch((error) => trouble(error.message));
