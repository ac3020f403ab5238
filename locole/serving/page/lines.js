// A file of lines: sent in parts, answers in a table, all of them as a download.

import { ask, place } from "/page/api.js";
import { byId, count, el, name, percent, say, trouble } from "/page/dom.js";

const PART = 100;
const PART_CHARS = 1e6;
const SHOWN = 200;
const K = 3;
let running = null;

export function start() {
  const drop = byId("drop");
  byId("file").addEventListener("change", () => byId("file").files[0] && read(byId("file").files[0]));
  byId("stop").addEventListener("click", () => running?.abort());
  for (const event of ["dragover", "dragleave", "drop"]) {
    drop.addEventListener(event, (happened) => {
      happened.preventDefault();
      drop.classList.toggle("over", event === "dragover");
    });
  }
  drop.addEventListener("drop", (event) => event.dataTransfer.files[0] && read(event.dataTransfer.files[0]));
}

// The model decides what lines are.
export function show(card) {
  byId("no-lines").hidden = card.takes === "texts";
  byId("drop").hidden = card.takes !== "texts";
}

async function read(file) {
  running?.abort();
  const mine = (running = new AbortController());
  const lines = (await file.text()).split(/\r?\n/).filter((line) => line.trim());
  if (!lines.length) {
    trouble("The file has no lines with text.");
    return;
  }
  const rows = el("tbody");
  begin(rows, lines.length);
  const answers = [];
  try {
    for (const part of parts(lines)) {
      const found = await ask(place("/predict-batch"), { body: { texts: part, k: K }, signal: mine.signal });
      found.results.forEach((one, i) => {
        if (answers.length < SHOWN) rows.append(row(answers.length + 1, part[i], one));
        answers.push([part[i], one]);
      });
      tell(answers.length, lines.length);
    }
  } catch (error) {
    if (error.name !== "AbortError") trouble(error.message);
  }
  if (mine === running && answers.length) finish(answers, lines.length);
}

function* parts(lines) {
  let part = [];
  let chars = 0;
  for (const line of lines) {
    if (part.length === PART || (part.length && chars + line.length > PART_CHARS)) {
      yield part;
      part = [];
      chars = 0;
    }
    part.push(line);
    chars += line.length;
  }
  yield part;
}

function begin(rows, total) {
  trouble("");
  const head = ["Line", "Text", "Label", "Probability"];
  byId("table").replaceChildren(el("table", {}, el("thead", {}, el("tr", {},
    ...head.map((text, i) => el("th", { scope: "col", className: i % 3 ? "" : "number" }, text)))), rows));
  byId("table").hidden = byId("progress").hidden = false;
  byId("downloads").hidden = true;
  byId("stop").hidden = false;
  tell(0, total);
}

function tell(done, total) {
  byId("progress-bar").max = total;
  byId("progress-bar").value = done;
  byId("progress-label").textContent = `${count(done)} of ${count(total)} lines`;
}

function row(number, text, one) {
  const best = one.labels[0];
  const label = one.answer.length ? one.answer.join(", ") : "not sure";
  return el("tr", {}, el("td", { className: "number" }, String(number)),
    el("td", { className: "clip", title: text }, name(text)), el("td", {}, name(label)),
    el("td", { className: "number" }, best.probability === undefined ? "–" : percent(best.probability)));
}

function finish(answers, total) {
  const lines = answers.map(([text, one]) =>
    [text, ...one.labels.flatMap((best) => [best.label, best.probability ?? best.score])].map(cell).join("\t"));
  const link = byId("download");
  if (link.href.startsWith("blob:")) URL.revokeObjectURL(link.href);
  link.href = URL.createObjectURL(new Blob([`${lines.join("\n")}\n`], { type: "text/tab-separated-values" }));
  byId("downloads").hidden = false;
  byId("stop").hidden = true;
  if (answers.length > SHOWN) byId("progress-label").textContent += `; the first ${SHOWN} are shown`;
  say(`${count(answers.length)} of ${count(total)} lines are answered.`);
}

const cell = (value) => String(value).replace(/[\t\r\n]/g, " ");
