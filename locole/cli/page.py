"""The demonstration's figures as one HTML page that needs no network and suits a phone."""

from __future__ import annotations

from html import escape
from typing import Any

from locole.cli.cities import Demo
from locole.cli.show import size

__all__ = ["STYLE", "render"]

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #5b6673; --paper: #ffffff;
  --line: #d9dee4; --ours: #0b62c4; --theirs: #8a94a0; --good: #14713d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ecf1; --soft: #a2adba;
  --paper: #14181d; --line: #333b45; --ours: #6cb0ff; --theirs: #7c8794; --good: #63cf93; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 46rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.5rem; line-height: 1.25; }
h2 { font-size: 1.1rem; margin-top: 2rem; }
.soft { color: var(--soft); font-size: .9rem; }
.bar { display: grid; grid-template-columns: 6.5rem 1fr 4rem; gap: .5rem; align-items: center;
  margin: .25rem 0; }
.bar i { display: block; height: 1.1rem; border-radius: .2rem; background: var(--theirs); }
.bar.ours i { background: var(--ours); }
.bar b, td.number { text-align: right; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .95rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem .35rem 0;
  border-bottom: 1px solid var(--line); }
.right { color: var(--good); font-weight: 600; }
"""


def render(demo: Demo) -> str:
    """Page of a demonstration; everything on it was measured in that run.

    Parameters
    ----------
    demo : Demo
        What was measured.

    Returns
    -------
    str
        HTML with its styles inside, no scripts and no links to fetch.
    """
    data = demo.data
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>locole: cities by their misspelt names</title>
<style>{STYLE}</style>
</head>
<body>
<h1>Which of {data["labels"]:,} cities is meant?</h1>
<p>{_verdict(demo)}</p>
<p class="soft">Trained on {data["train"]:,} spellings in many scripts, each with the code of its
country; tested on {data["test"]:,} other spellings of the same cities. Class centroids: cosine to the
mean row of each city, over the same {data["features"]:,} features.</p>
<h2>The first answer is right</h2>
{_bars(demo, "accuracy")}
<h2>One of the first five is right</h2>
{_bars(demo, "top_k_accuracy")}
<h2>What it takes</h2>
{_costs(demo)}
<h2>Misspelt names</h2>
{_answers(demo)}
<h2>Steps</h2>
{_steps(demo)}
<p class="soft">{_setting(demo)} Names: GeoNames, CC BY 4.0.</p>
</body>
</html>
"""


def _verdict(demo: Demo) -> str:
    ours, theirs = (demo.systems[name]["accuracy"] for name in ("locole", "centroids"))
    difference = 100 * (ours - theirs)
    if abs(difference) < 0.05:
        compared = "as many as class centroids"
    else:
        word = "more" if difference > 0 else "fewer"
        compared = f"{abs(difference):.1f} points {word} than class centroids"
    return f"locole's first answer is right for {ours:.1%} of the test names, {compared}."


def _bars(demo: Demo, figure: str) -> str:
    lines = []
    for name, figures in demo.systems.items():
        kind = "bar ours" if name == "locole" else "bar"
        lines.append(
            f'<div class="{kind}"><span>{escape(name)}</span>'
            f'<span><i style="width:{100 * figures[figure]:.1f}%"></i></span>'
            f"<b>{figures[figure]:.1%}</b></div>"
        )
    return "\n".join(lines)


def _table(header: list[str], rows: list[list[str]]) -> str:
    """Cells are HTML already."""
    head = "".join(f"<th>{cell}</th>" for cell in header)
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><tr>{head}</tr>\n{body}\n</table></div>'


def _costs(demo: Demo) -> str:
    rows = [
        [
            escape(name),
            f"{figures['train_s']:.1f} s",
            f"{1e3 * figures['predict_s'] / demo.data['test']:.2f} ms",
            size(figures["bytes"]),
        ]
        for name, figures in demo.systems.items()
    ]
    return _table(["", "training", "a name", "size"], rows)


def _answers(demo: Demo) -> str:
    rows = []
    for answer in demo.answers:
        found = [
            f'<span class="right"><bdi>{escape(name)}</bdi></span>'
            if name == answer["meant"]
            else f"<bdi>{escape(name)}</bdi>"
            for name in answer["answers"]
        ]
        if answer["place"] is None:
            found.append(f'<span class="soft">meant: <bdi>{escape(answer["meant"])}</bdi></span>')
        rows.append([f"<bdi>{escape(answer['query'])}</bdi>", ", ".join(found)])
    if not rows:
        return '<p class="soft">None of the cities asked for is among the labels.</p>'
    right = sum(answer["place"] == 1 for answer in demo.answers)
    listed = sum(answer["place"] is not None for answer in demo.answers)
    note = (
        f'<p class="soft">Of {len(rows)} names, the first answer is right for {right}, one of the '
        f"first three for {listed}.</p>"
    )
    return _table(["typed", "answers, best first"], rows) + note


def _steps(demo: Demo) -> str:
    rows: list[list[str]] = [
        [escape(step["step"]), f"{step['seconds']:.1f} s", size(step["peak_bytes"])]
        for step in demo.steps
    ]
    return _table(["step", "time", "peak memory"], rows)


def _setting(demo: Demo) -> str:
    setting: dict[str, Any] = demo.setting
    return escape(
        f"Made by locole {setting['locole']} on Python {setting['python']} with {setting['cores']} "
        f"cores: {setting['embedding']}, {setting['scorers']}, seed {setting['seed']}."
    )
