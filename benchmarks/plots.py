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
LANDING = ROOT / "docs" / "images" / "accuracy.svg"
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
LOOKS = [("#0072b2", "o"), ("#009e73", "s"), ("#cc79a7", "D"), ("#56b4e9", "^"), ("#999999", "x"),
         ("#e69f00", "v"), ("#555555", "P"), ("#d55e00", "*")]  # fmt: skip
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


def accuracies() -> dict[str, dict[str, float]]:
    """Return the accuracy in % of our default model and of the peers, by set."""
    runs = [r for r in _done("linear.json") if r["system"] in PEERS]
    runs += [r for r in _done("factors.json") if r["system"] == "locole"]
    return {
        name: {r["label"]: round(100 * r["accuracy_1"], 2) for r in runs if r["set"] == name}
        for name in TITLES
    }


def digest(figures: Any) -> str:
    """What a picture was drawn from, in short."""
    return hashlib.sha256(json.dumps(figures).encode()).hexdigest()[:16]


def _pyplot() -> Any:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "locole", "svg.fonttype": "none", "font.size": 9})
    import matplotlib.pyplot as plt

    return plt


def _save(figure: Any, path: Path, figures: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, metadata={"Date": None, "Description": f"figures {digest(figures)}"})


def draw_accuracies(path: Path) -> None:
    """Accuracy of our default model beside the peers', a line of dots for each set."""
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(8, 3.4), constrained_layout=True)
    found = accuracies()
    labels = list(dict.fromkeys(label for each in found.values() for label in each))
    for label, (colour, marker) in zip(labels, LOOKS, strict=False):
        ours = label == "locole, defaults"
        xs, ys = zip(
            *[(each[label], name) for name, each in found.items() if label in each], strict=True
        )
        axes.scatter(xs, [TITLES[y] for y in ys], color="#d55e00" if ours else colour,
                     marker="*" if ours else marker, s=180 if ours else 45, zorder=3,
                     label=SHORT.get(label, label))  # fmt: skip
    axes.set_xlabel("test accuracy, %")
    axes.set_xlim(0, 100)
    axes.margins(y=0.15)
    axes.invert_yaxis()
    axes.grid(alpha=0.3)
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    _save(figure, path, found)


def draw(path: Path) -> None:
    """Accuracy against CPU time, a panel for each set."""
    plt = _pyplot()
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
    _save(figure, path, figures())


if __name__ == "__main__":
    draw(IMAGES / "study.svg")
    draw_accuracies(LANDING)
