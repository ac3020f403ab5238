// One text: best labels as bars, the words that speak for them, a set, or "not sure".

import { ask, model, place } from "/page/api.js";
import { byId, count, el, name, percent, say, trouble } from "/page/dom.js";

const PAUSE_MS = 350;
const EXPLAINED = 5;
const CHIPS = 20;
let timer = null;
let running = null;
let card = null;

export function start() {
  byId("ask-form").addEventListener("submit", (event) => {
    event.preventDefault();
    now();
  });
  byId("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      now();
    }
  });
  byId("text").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(now, PAUSE_MS);
  });
  for (const id of ["k", "max-error", "coverage"]) byId(id).addEventListener("change", now);
}

// Options that the model can fulfil.
export function show(shown) {
  card = shown;
  const errors = card.validation ? card.validation.thresholds : [];
  byId("max-error").replaceChildren(
    el("option", { value: "" }, "any"),
    ...errors.map((one) => el("option", { value: one.max_error }, `≤ ${percent(one.max_error, 0)}`)),
  );
  byId("max-error").disabled = !errors.length;
  byId("coverage").disabled = !card.validation;
  const isText = card.takes === "texts";
  byId("text-label").textContent = isText ? "Text to classify" : "Row to classify, as INDEX:VALUE pairs";
  byId("text").placeholder = isText ? "Type or paste a text" : `${card.first_index}:1 ${card.first_index + 3}:0.5`;
  now();
}

async function now() {
  clearTimeout(timer);
  running?.abort();
  const text = byId("text").value;
  if (!card || !text.trim()) {
    byId("answer").replaceChildren();
    return;
  }
  running = new AbortController();
  try {
    const found = await ask(place("/predict"), { body: question(text), signal: running.signal });
    draw(found);
  } catch (error) {
    if (error.name === "AbortError") return;
    byId("answer").replaceChildren();
    trouble(error.message);
  }
}

function question(text) {
  const asked = { k: Number(byId("k").value), explain: EXPLAINED };
  if (byId("max-error").value) asked.max_error = Number(byId("max-error").value);
  if (card.validation && byId("coverage").value) asked.coverage = Number(byId("coverage").value);
  return card.takes === "texts" ? { ...asked, text } : { ...asked, row: parsed(text) };
}

function parsed(text) {
  const pairs = text.trim().split(/\s+/).map((pair) => pair.split(":"));
  if (pairs.some(([index, value]) => !/^\d+$/.test(index) || !value || Number.isNaN(Number(value)))) {
    throw new Error("A row of numbers is written as INDEX:VALUE INDEX:VALUE …");
  }
  return Object.fromEntries(pairs.map(([index, value]) => [index, Number(value)]));
}

function draw(found) {
  const why = el("div");
  const buttons = found.labels.map((one) => ranked(one, found.labels));
  buttons.forEach((button, i) => {
    button.addEventListener("click", () => {
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      why.replaceChildren(...reasons(found.explanations?.[i], found.labels[i].label));
    });
  });
  byId("answer").replaceChildren(
    el("section", { "aria-label": "Best labels" }, verdict(found),
      el("ul", { className: "ranking" }, ...buttons.map((button) => el("li", {}, button))), why),
    ...(found.set ? [set(found.set)] : []),
    el("p", { className: "soft" }, `${model()}, version ${found.version}`),
  );
  buttons[0].click();
}

const weight = (one) => (one.probability === undefined ? one.score.toFixed(3) : percent(one.probability));

function ranked(one, all) {
  const top = Math.max(...all.map((other) => Math.abs(other.score ?? 1)), 1e-9);
  const bar = el("i");
  bar.style.width = `${100 * Math.max(one.probability ?? one.score / top, 0)}%`;
  return el("button", { type: "button", className: "ranked", "aria-pressed": "false" },
    bar, name(one.label), el("span", { className: "number" }, weight(one)));
}

function verdict(found) {
  const best = found.labels[0];
  if (!found.answer.length) {
    say(`Not sure. The best guess is ${best.label}, ${weight(best)}.`);
    const allowed = byId("max-error").selectedOptions[0].textContent;
    return el("p", { className: "not-sure" }, el("strong", {}, "Not sure"),
      ` – the best guess is ${weight(best)} likely, too little for errors ${allowed}.`);
  }
  say(`${found.answer.join(", ")}, ${weight(best)}.`);
  return el("p", { className: "verdict" },
    el("strong", {}, ...found.answer.flatMap((label, i) => (i ? [", ", name(label)] : [name(label)]))),
    found.answer.length === 1 ? el("span", { className: "soft" }, `${weight(best)} sure`) : null);
}

function reasons(found, label) {
  if (!found) return [];
  const heading = el("h2", {}, "What speaks for ", name(label));
  const rows = [
    ...found.features.map((one) => [one.name.replace(/^(word|char)__/, ""), one.adds]),
    ...Object.entries(found.others).map(([what, adds]) => [`(${what})`, adds]),
  ];
  const table = el("table", {}, el("thead", {}, el("tr", {},
    el("th", { scope: "col" }, "Feature"), el("th", { scope: "col", className: "number" }, "Adds"))),
  el("tbody", {}, ...rows.map(([what, adds]) => el("tr", {}, el("td", {}, name(what)),
    el("td", { className: "number" }, signed(adds))))));
  const more = found.more_features ? `, and ${found.more_features} smaller ones` : "";
  return [heading, ...marked(found.words),
    el("details", {}, el("summary", {}, `Features: score ${found.score.toFixed(2)}${more}`), table)];
}

function marked(words) {
  if (!words) return [];
  const largest = Math.max(...words.map((one) => Math.abs(one.adds)), 1e-9);
  const parts = words.flatMap((one) => {
    const share = Math.abs(one.adds) / largest;
    const mark = el("mark", { title: signed(one.adds) }, name(one.word));
    if (share > 0.05) {
      mark.dataset.sign = one.adds > 0 ? "for" : "against";
      mark.style.setProperty("--share", (0.15 + 0.5 * share).toFixed(2));
      mark.append(el("span", { className: "hidden-text" }, ` (${signed(one.adds)})`));
    }
    return [mark, " "];
  });
  return [el("p", { className: "marked", dir: "auto" }, ...parts),
    el("p", { className: "soft" }, "Green speaks for the label, red and dotted against it.")];
}

const signed = (number) => (number < 0 ? "−" : "+") + Math.abs(number).toFixed(2);

function set(found) {
  const chips = found.labels.slice(0, CHIPS).map((label) => el("li", {}, name(label)));
  if (found.size > chips.length) chips.push(el("li", {}, `and ${count(found.size - chips.length)} more`));
  const sure = percent(found.coverage, 0);
  const which = found.size === 1 ? "is this one" : `is one of these ${count(found.size)}`;
  let text = `In ${sure} of cases at least, the right label ${which}:`;
  if (!found.size) text = `No label is likely enough for a set that is right in ${sure} of cases.`;
  if (found.size === card.labels) {
    text = `The model is not good enough for sets that are right in ${sure} of cases: all labels would be in them. Ask for less.`;
    chips.length = 0;
  }
  return el("section", { "aria-label": "Label set" }, el("p", { className: "soft" }, text),
    el("ul", { className: "chips" }, ...chips));
}
