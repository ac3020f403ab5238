// Search and browse the labels.

import { ask, place } from "/page/api.js";
import { byId, count, el, name, trouble } from "/page/dom.js";

const LIMIT = 60;
let timer = null;
let latest = 0;

export function start() {
  byId("query").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => show(), 150);
  });
  byId("more").addEventListener("click", () => load(byId("labels-list").children.length));
}

export const show = () => load(0);

async function load(offset) {
  const mine = ++latest;
  const query = new URLSearchParams({ q: byId("query").value, offset, limit: LIMIT });
  try {
    const found = await ask(place(`/labels?${query}`));
    if (mine === latest) draw(found, offset);
  } catch (error) {
    trouble(error.message);
  }
}

function draw(found, offset) {
  const items = found.labels.map((one) => el("li", {}, el("span", {}, name(one.label)),
    one.rows === null ? null : el("span", {}, `${count(one.rows)} rows`)));
  const list = byId("labels-list");
  if (offset) list.append(...items);
  else list.replaceChildren(...items);
  const rest = found.total - list.children.length;
  byId("labels-found").textContent = `${count(found.total)} labels`;
  byId("more").hidden = rest <= 0;
  byId("more").textContent = `Show more (${count(rest)} left)`;
}
