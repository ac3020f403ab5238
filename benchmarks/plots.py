"""Figures of the documentation, made from the committed records: ``make plots``.

Each SVG file says in its description which figures it was drawn from; a test compares that with the
record, so that a picture cannot fall behind its table.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "benchmarks" / "records"
IMAGES = ROOT / "docs" / "research" / "images"
PEERS = ("centroids", "pecos", "omikuji", "napkinxc", "fasttext", "vowpalwabbit", "output_code")
TITLES = {
    "cve_product": "cve_product",
    "gesetze_de": "gesetze_de",
    "clinc150": "clinc150",
    "city_names": "city names",
}
# Okabe and Ito's colours, which colour-blind readers can tell apart.
SHORT = {
    "PECOS XR-Linear": "XR-Linear",
    "omikuji Parabel": "Parabel",
    "napkinXC PLT": "napkinXC",
    "fastText, hs": "fastText",
    "Vowpal Wabbit PLT": "Vowpal Wabbit",
    "class centroids": "centroids",
    "locole, defaults": "locole",
}
LOSSES = {"elastic_net": ("elastic net", "#0072b2", "o"), "softmax": ("softmax", "#d55e00", "s")}


def figures() -> dict[str, list[tuple[Any, ...]]]:
    """Return (label, kind, CPU seconds, accuracy %) of all points, by set."""
    points: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TITLES}
    for r in _done("study.json"):
        point = (round(r["train_cpu_s"], 3), round(100 * r["accuracy_1"], 2))
        kind = f"{r['loss']} {r['part']}"
        points[r["set"]].append((str(r["dim"]), kind, *point))
    for r in _done("linear.json"):
        if r["system"] in (*PEERS, "locole"):
            point = (round(r["train_cpu_s"], 3), round(100 * r["accuracy_1"], 2))
            kind = "default" if r["system"] == "locole" else "peer"
            points[r["set"]].append((r["label"], kind, *point))
    return points


def _done(file: str) -> list[dict[str, Any]]:
    path = RECORDS / file
    runs = json.loads(path.read_text())["runs"] if path.exists() else []
    return [r for r in runs if r["status"] == "done"]


def digest() -> str:
    """What the picture was drawn from, in short."""
    return hashlib.sha256(json.dumps(figures()).encode()).hexdigest()[:16]


def draw(path: Path) -> None:
    """Accuracy against CPU time, a panel for each set."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "locole", "svg.fonttype": "none", "font.size": 9})
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(2, 2, figsize=(10, 8), constrained_layout=True)
    for axes, (name, points) in zip(panels.flat, figures().items(), strict=True):
        for loss, (label, colour, marker) in LOSSES.items():
            line = [p for p in points if p[1] == f"{loss} dims"]
            xs, ys = [p[2] for p in line], [p[3] for p in line]
            axes.plot(xs, ys, color=colour, marker=marker, label=f"{label}, 256 … 4096 outputs")
            for p in line[:1] + line[-1:]:
                axes.annotate(p[0], p[2:], xytext=(3, -11), textcoords="offset points")
            rest = [p for p in points if p[1] == f"{loss} families"]
            axes.scatter([p[2] for p in rest], [p[3] for p in rest], facecolors="none",
                         edgecolors=colour, marker=marker, s=24,
                         label=f"{label}, other families at 512")  # fmt: skip
        for p in points:
            if p[1] in ("peer", "default"):
                ours = p[1] == "default"
                axes.scatter(p[2], p[3], color="#009e73" if ours else "#555555",
                             marker="*" if ours else "x", s=90 if ours else 30)  # fmt: skip
                name_shown = SHORT.get(p[0], p[0])
                axes.annotate(
                    name_shown, p[2:], xytext=(0, 6), textcoords="offset points", ha="center"
                )
        axes.set_xscale("log")
        axes.set_title(TITLES[name])
        axes.set_xlabel("CPU seconds of training")
        axes.set_ylabel("accuracy, %")
        axes.margins(x=0.12, y=0.12)
        axes.grid(alpha=0.3)
    panels.flat[0].legend(loc="lower left", fontsize=7)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, metadata={"Date": None, "Description": f"figures {digest()}"})


if __name__ == "__main__":
    draw(IMAGES / "study.svg")
