// The model's card: figures, how far its probabilities can be trusted, how it was made.

import { byId, count, el, percent, svg } from "/page/dom.js";

const SIZE = 300;
const MARGIN = 40;

export function show(card) {
  const checked = card.validation;
  byId("card").replaceChildren(
    el("h2", {}, card.id),
    figures(card),
    ...(checked ? [trust(checked)] : [el("p", { className: "soft" },
      "The model has no validation rows, so nothing is known of its accuracy.")]),
    ...(card.choice ? [el("h2", {}, "How it was chosen"), el("p", {}, card.choice)] : []),
    el("h2", {}, "How it was made"),
    facts(card),
  );
}

function figures(card) {
  const shown = {
    Labels: count(card.labels),
    ...(card.training_rows === null ? {} : { "Training rows": count(card.training_rows) }),
    Features: count(card.features),
    Size: size(card.bytes),
    ...(card.validation ? {
      Accuracy: percent(card.validation.accuracy),
      "Calibration error": percent(card.validation.calibration_error),
    } : {}),
  };
  return el("dl", { className: "figures" }, ...Object.entries(shown).map(([what, value]) =>
    el("div", {}, el("dt", {}, what), el("dd", {}, value))));
}

function trust(checked) {
  const rows = `${count(checked.rows)} validation rows`;
  return el("div", { className: "two" },
    el("figure", {}, el("figcaption", {}, "How often is it right?"), plot(checked.calibration),
      el("p", { className: "soft" }, `On ${rows}, in groups of similar probability. On the dashed line answers are right as often as their probability says.`)),
    el("figure", {}, el("figcaption", {}, "What if it may hold back?"),
      table(["Answered, surest first", "Wrong"],
        checked.errors.map((one) => [percent(one.answered, 0), percent(one.error)])),
      el("p", { className: "soft" }, "Thresholds that keep the error with 95 % confidence:"),
      table(["Errors", "Probability", "Answered"], checked.thresholds.map((one) =>
        [`≤ ${percent(one.max_error, 0)}`, `≥ ${percent(one.min_proba)}`, percent(one.answered, 0)]))));
}

function plot(bins) {
  const inner = SIZE - 2 * MARGIN;
  const x = (share) => MARGIN + inner * share;
  const y = (share) => SIZE - MARGIN - inner * share;
  const parts = [0, 0.25, 0.5, 0.75, 1].flatMap((tick) => [
    svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: y(0), y2: y(1) }),
    svg("line", { class: "grid", x1: x(0), x2: x(1), y1: y(tick), y2: y(tick) }),
    svg("text", { x: x(tick), y: y(0) + 15, "text-anchor": "middle" }, String(100 * tick)),
    svg("text", { x: x(0) - 6, y: y(tick) + 4, "text-anchor": "end" }, String(100 * tick)),
  ]);
  parts.push(svg("line", { class: "ideal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }));
  const points = bins.map((bin) => `${x(bin.probability)},${y(bin.accuracy)}`).join(" ");
  parts.push(svg("polyline", { class: "curve", points }));
  for (const bin of bins) {
    parts.push(svg("circle", { class: "dot", cx: x(bin.probability), cy: y(bin.accuracy), r: 4 },
      svg("title", {}, `${percent(bin.probability)} sure, ${percent(bin.accuracy)} right, ${bin.rows} rows`)));
  }
  parts.push(svg("text", { x: SIZE / 2, y: SIZE - 6, "text-anchor": "middle" }, "probability of the answer, %"));
  parts.push(svg("text", { transform: `translate(11 ${SIZE / 2}) rotate(-90)`, "text-anchor": "middle" }, "right, %"));
  const groups = bins.map((bin) => `${percent(bin.probability, 0)} sure: ${percent(bin.accuracy, 0)} right`);
  return svg("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img", "aria-label": groups.join("; ") }, ...parts);
}

function table(head, rows) {
  const cells = (kind, texts) => texts.map((text) => el(kind, { className: "number" }, text));
  return el("div", { className: "wide" }, el("table", {}, el("thead", {}, el("tr", {}, ...cells("th", head))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...cells("td", row))))));
}

function facts(card) {
  const { locole, ...notes } = card.made_by;
  const shown = { version: card.version, kind: card.kind, written: card.modified, "made by": `locole ${locole}`, ...notes };
  return el("dl", { className: "facts" }, ...Object.entries(shown).flatMap(([what, value]) =>
    [el("dt", {}, what.replaceAll("_", " ")), el("dd", {}, String(value))]));
}

function size(bytes) {
  const units = ["B", "kB", "MB", "GB"];
  let i = 0;
  while (bytes >= 999.5 && i < 3) {
    bytes /= 1000;
    i++;
  }
  return `${bytes.toFixed(bytes < 10 && i ? 1 : 0)} ${units[i]}`;
}
