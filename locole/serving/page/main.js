// The page: models, tabs, and what each of them shows.

import { ask, model, place } from "/page/api.js";
import * as one from "/page/ask.js";
import * as card from "/page/card.js";
import { byId, el, trouble } from "/page/dom.js";
import * as labels from "/page/labels.js";
import * as lines from "/page/lines.js";

const tabs = [...document.querySelectorAll("[role=tab]")];

function choose(tab) {
  for (const other of tabs) {
    const isIt = other === tab;
    other.setAttribute("aria-selected", String(isIt));
    other.tabIndex = isIt ? 0 : -1;
    byId(other.getAttribute("aria-controls")).hidden = !isIt;
  }
  history.replaceState(null, "", `#${tab.getAttribute("aria-controls")}`);
}

function move(event) {
  const at = tabs.indexOf(event.target);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const tab = tabs[(to + tabs.length) % tabs.length];
  tab.focus();
  choose(tab);
}

async function showModel() {
  const found = await ask(place());
  if (found.id !== model()) return; // Another was chosen meanwhile.
  document.title = `${found.id} – locole`;
  for (const part of [one, lines, card]) part.show(found);
  labels.show();
}

async function begin() {
  for (const tab of tabs) {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", move);
  }
  choose(tabs.find((tab) => `#${tab.getAttribute("aria-controls")}` === location.hash) ?? tabs[0]);
  for (const part of [one, lines, labels]) part.start();
  const { models } = await ask("/api/models");
  byId("model").replaceChildren(...models.map((each) => el("option", {}, each.id)));
  document.querySelector(".model-choice").hidden = models.length < 2;
  byId("model").addEventListener("change", () => showModel().catch((error) => trouble(error.message)));
  await showModel();
}

begin().catch((error) => trouble(error.message));
