"""The page's stylesheet: light and dark, phone, desk and paper."""

from __future__ import annotations

from locole.experiments.report.names import INK, PALETTE

__all__ = ["stylesheet"]

_LIGHT = {**INK, "trouble": "#a3290f", "shade": "#f4f6f8", "bar": "#9fc6e3", "link": "#005a8f"}
_DARK = {
    "ink": "#e9edf2",
    "soft": "#a6b1be",
    "line": "#3a434e",
    "paper": "#14181d",
    "trouble": "#ffa18c",
    "shade": "#1d232a",
    "bar": "#2f6f9e",
    "link": "#7cc0f0",
}
_RULES = """
* { box-sizing: border-box; }
html { scroll-behavior: smooth; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  overflow-wrap: anywhere; }
.page { max-width: 78rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
header { border-bottom: 1px solid var(--line); padding-bottom: 1rem; margin-bottom: 1rem; }
h1 { font-size: clamp(1.5rem, 1.1rem + 2vw, 2.2rem); line-height: 1.15; margin: 0 0 .5rem;
  letter-spacing: -.015em; text-wrap: balance; }
h2 { font-size: 1.35rem; line-height: 1.25; margin: 3rem 0 .4rem; letter-spacing: -.01em; }
h3 { font-size: 1.02rem; margin: 1.8rem 0 .5rem; }
p { margin: .4rem 0; max-width: 44rem; }
a { color: var(--link); text-underline-offset: .15em; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
section, h3 { scroll-margin-top: 1rem; }
.lead, .soft, footer { color: var(--soft); }
.lead { font-size: .95rem; }
.said { max-width: 44rem; margin: .8rem 0 1rem; padding: .6rem .9rem; background: var(--shade);
  border-left: 3px solid var(--blue); border-radius: 0 .3rem .3rem 0; }
.said p { margin: .3rem 0; }
.panels .said { align-self: start; margin: .4rem 0; font-size: .95rem; }
nav ol { list-style: none; margin: 0; padding: 0; columns: 2 9rem; column-gap: 1.2rem; }
nav li { break-inside: avoid; }
nav a { display: block; padding: .3rem 0; text-decoration: none; }
nav a:hover { text-decoration: underline; }
nav strong { display: block; font-size: .8rem; color: var(--soft); margin-bottom: .3rem; }
.scroll { overflow-x: auto; margin: .6rem 0; border: 1px solid var(--line); border-radius: .4rem; }
table { border-collapse: separate; border-spacing: 0; width: 100%; font-size: .9rem; line-height: 1.35; }
caption { text-align: left; font-weight: 600; padding: .6rem .7rem; }
caption span { position: sticky; left: .7rem; display: inline-block; max-width: calc(100vw - 3.8rem); }
th, td { text-align: left; vertical-align: top; padding: .38rem .7rem;
  border-top: 1px solid var(--line); }
thead th { overflow-wrap: break-word; font-weight: 600; color: var(--soft); vertical-align: bottom;
  font-size: .82rem; }
tbody th { font-weight: 400; position: sticky; left: 0; background: var(--paper); width: 34%;
  min-width: 8.8rem; max-width: 60vw; }
td { overflow-wrap: break-word; }
tbody th.group { font-weight: 600; color: var(--soft); font-size: .82rem; padding-top: .8rem; }
tbody tr:hover th, tbody tr:hover td { background-color: var(--shade); }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td.bar { min-width: 8.2rem; background: linear-gradient(var(--bar), var(--bar)) no-repeat
  .7rem calc(100% - .1rem) / calc((100% - 1.4rem) * var(--v)) 3px; }
td .note { display: block; white-space: normal; font-size: .8rem; color: var(--trouble);
  min-width: 9rem; overflow-wrap: anywhere; }
.trouble { color: var(--trouble); min-width: min(16rem, 55vw);
  overflow-wrap: anywhere; }
td.soft { text-align: right; } .word { white-space: nowrap; }
td.trouble.word { min-width: 0; text-align: right; }
.best { font-weight: 700; }
.panels { display: grid; gap: 1.2rem 1.6rem; margin: .8rem 0;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); }
.small { grid-template-columns: repeat(auto-fill, minmax(min(100%, 15rem), 1fr)); }
figure { margin: 0; min-width: 0; max-width: 36rem; }
figure svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif
  !important; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; margin: .6rem 0;
  max-width: 48rem; font-size: .95rem; }
dt { color: var(--soft); } dd { margin: 0; }
code { font-family: ui-monospace, "SF Mono", Consolas, "Liberation Mono", monospace; font-size: .9em; }
footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--line); font-size: .9rem; }
@media (min-width: 70rem) {
  .columns { display: grid; grid-template-columns: 13rem minmax(0, 1fr); gap: 0 3rem; }
  nav { position: sticky; top: 1.2rem; align-self: start; font-size: .92rem; }
  nav ol { columns: 1; }
  main > section:first-child h2 { margin-top: 0; }
}
@media (max-width: 30rem) {
  h2 { margin-top: 2.4rem; }
  th, td { padding: .35rem .5rem; }
}
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
@media print {
  html { font-size: 9pt; }
  .page { max-width: none; padding: 0; }
  .columns { display: block; }
  nav, .download { display: none; }
  h2 { margin-top: 1.6rem; } h2, h3, caption { break-after: avoid; }
  tr, figure, .said { break-inside: avoid; }
  thead { display: table-header-group; }
  .scroll { overflow: visible; border: 0; }
  th, td { padding: .2rem .4rem; } caption { padding: .4rem; }
  tbody th { position: static; max-width: none; }
  caption span { position: static; max-width: none; }
  td.bar { background: none; } .lead { break-after: avoid; }
  .panels { grid-template-columns: 1fr 1fr; } .small { grid-template-columns: 1fr 1fr 1fr; }
  a { color: inherit; text-decoration: none; }
}
@page { margin: 16mm 14mm; }
"""


def stylesheet() -> str:
    """All rules; paper is always white."""
    light = _LIGHT | {name: pair[0] for name, pair in PALETTE.items()}
    dark = _DARK | {name: pair[1] for name, pair in PALETTE.items()}
    return (
        f":root {{ color-scheme: light dark; {_variables(light)} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_variables(dark)} }} }}"
        f"{_RULES}"
    )


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in colours.items())
