"""Tables of the documentation, made from the committed records: ``python benchmarks/tables.py``.

A table stands between ``<!-- table: name -->`` and ``<!-- end -->``; a test compares it with the record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "benchmarks" / "records"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_MARKED = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """Lay out a table, numbers to the right."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def decoding(record: dict[str, Any]) -> str:
    """Our decoders beside the BLAS product."""
    head = ["embedding", "real outputs", "labels", "µs a point", "BLAS µs", "ratio"]
    head += ["extra MB", "BLAS MB"]
    rows = [
        [
            f"{r['embedding']}-{r['dim']}",
            f"{r['real_dim']:,}",
            f"{r['n_classes']:,}",
            f"{r['us_per_point']:.0f}",
            f"{r['blas_us_per_point']:.0f}",
            f"{r['speedup']:.1f}",
            f"{r['extra_bytes'] / 1e6:.0f}",
            f"{r['blas_bytes'] / 1e6:.0f}",
        ]
        for r in record["decoding"]
    ]
    return markdown(head, rows)


def limits(record: dict[str, Any]) -> str:
    """How far each decoder is from what the machine could do."""
    names = {
        "add_rate": "additions in registers",
        "gemm_rate": "BLAS arithmetic",
        "load_rate": "additions from the second-level cache",
    }
    rows = [
        [
            f"{r['embedding']}-{r['dim']}",
            names[r["limit"]],
            f"{record['limits'][r['limit']] / 1e9:.0f} G/s",
            f"{r['fraction_of_limit']:.0%}",
        ]
        for r in record["decoding"]
    ]
    return markdown(["embedding", "limit", "measured limit", "reached"], rows)


def scaling(record: dict[str, Any]) -> str:
    """Time and memory of the elastic-net solver."""
    head = ["samples", "non-zeros", "outputs", "labels", "threads", "CPU s a pass"]
    head += ["ns per non-zero and output", "GB/s", "wall s of fit", "MB predicted", "MB measured"]
    rows = [
        [
            f"{r['n_samples']:,}",
            f"{r['nnz']:,}",
            str(r["n_outputs"]),
            f"{r['n_classes']:,}",
            str(r["n_jobs"]),
            f"{r['kernel_cpu_s_per_pass']:.2f}",
            f"{r['ns_per_nnz_output']:.2f}",
            f"{r['bytes_per_s'] / 1e9:.0f}",
            f"{r['fit_wall_s']:.2f}",
            f"{r['predicted_bytes'] / 1e6:.0f}",
            f"{r['measured_bytes'] / 1e6:.0f}",
        ]
        for r in record["scaling"]
    ]
    return markdown(head, rows)


def storage(record: dict[str, Any]) -> str:
    """Weights in fewer bits."""
    rows = [
        [
            r["data"],
            r["storage"],
            f"{r['weight_bytes'] / 1e6:.0f}",
            f"{r['accuracy']:.2%}",
            f"{r['top5']:.2%}",
            f"{r['cpu_s_per_1000_rows'] * 1e3:.0f}",
        ]
        for r in record["storage"]
    ]
    head = ["data", "storage", "weights MB", "accuracy @1", "@5", "CPU ms to predict 1,000 rows"]
    return markdown(head, rows)


def linear(record: dict[str, Any]) -> str:
    """Ours and the peers' systems, a block of rows for each data set."""
    head = ["system", "@1", "@5", "training s", "CPU s", "prediction s", "CPU s"]
    head += ["memory MB", "model MB"]
    rows: list[list[str]] = []
    for data in dict.fromkeys(r["set"] for r in record["runs"]):
        rows.append([f"**{data}**"] + [""] * (len(head) - 1))
        rows += [_linear_row(r, len(head)) for r in record["runs"] if r["set"] == data]
    return markdown(head, rows)


def _linear_row(r: dict[str, Any], width: int) -> list[str]:
    if r["status"] != "done":
        return [f"{r['label']}: {r['status'].replace('|', '/')}"] + [""] * (width - 1)
    seconds = ("train_wall_s", "train_cpu_s", "predict_wall_s", "predict_cpu_s")
    return [
        r["label"],
        f"{r['accuracy_1']:.1%}",
        f"{r['accuracy_5']:.1%}",
        *(f"{r[name]:.2f}" for name in seconds),
        f"{r['memory_training_bytes'] / 1e6:.0f}",
        f"{r['model_bytes'] / 1e6:.1f}",
    ]


def reading(record: dict[str, Any]) -> str:
    """Readers of LIBSVM files, and the memory that ours need for the plain one."""
    head = ["reader", "file", "CPU s", "× as fast", "memory at most, MB", "× the result"]
    rows = []
    for r in record["read"]:
        memory = record["memory"].get(r["reader"], {}) if r["file"] == "plain" else {}
        peak, result = memory.get("peak_bytes"), memory.get("result_bytes")
        rows.append(
            [
                r["reader"],
                r["file"],
                f"{r['cpu_s']:.2f}",
                f"{r['speedup']:.1f}",
                f"{peak / 1e6:.0f}" if peak else "",
                f"{peak / result:.2f}" if peak and result else "",
            ]
        )
    return markdown(head, rows)


def softmax(record: dict[str, Any]) -> str:
    """Softmax through the transforms beside the dense products."""
    head = ["embedding", "labels", "µs a row", "dense µs", "ratio", "extra MB", "dense MB"]
    head += ["of the limit"]
    rows = []
    for r in record["runs"]:
        dense = "speedup" in r
        rows.append(
            [
                f"{r['embedding']}-{r['dim']}",
                f"{r['n_classes']:,}",
                f"{r['us_per_row']:.0f}",
                f"{r['dense_us_per_row']:.0f}" if dense else "",
                f"{r['speedup']:.1f}" if dense else "",
                f"{r['extra_bytes'] / 1e6:.0f}",
                f"{r['dense_bytes'] / 1e6:.0f}" if dense else "",
                f"{r['fraction_of_limit']:.0%}",
            ]
        )
    return markdown(head, rows)


def models(record: dict[str, Any]) -> str:
    """A large model in a new process, the middle of three runs."""
    run = sorted(record["runs"], key=lambda r: r["load_s"] + r["first_answer_s"])[1]
    head = ["model GB", "save s", "import s", "load s", "first answer s", "next s", "memory MB"]
    row = [
        f"{record['model_bytes'] / 1e9:.2f}",
        f"{record['save_s']:.1f}",
        f"{run['import_s']:.1f}",
    ]
    row += [f"{run['load_s']:.2f}", f"{run['first_answer_s']:.2f}", f"{run['second_answer_s']:.3f}"]
    return markdown(head, [[*row, f"{run['memory_bytes'] / 1e6:.0f}"]])


PARTS = ("locole", "locole-elastic", "locole-softmax", "centroids", "pecos")


def parts(record: dict[str, Any]) -> str:
    """Accuracy and time of the default model and of its parts, a column for each set."""
    runs = {(r["set"], r["system"]): r for r in record["runs"] if r["status"] == "done"}
    sets = list(dict.fromkeys(name for name, _ in runs))
    rows = []
    for system in PARTS:
        cells = [runs.get((name, system)) for name in sets]
        label = next((r["label"] for r in cells if r), None)
        if label:
            shown = [
                f"{100 * r['accuracy_1']:.1f}% ({r['train_cpu_s']:.1f} s)" if r else "–"
                for r in cells
            ]
            rows.append([label, *shown])
    return markdown(["system", *sets], rows)


#: name of a table → (record it comes from, function that makes it)
TABLES: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "decoding": ("core.json", decoding),
    "limits": ("core.json", limits),
    "scaling": ("solver.json", scaling),
    "storage": ("storage.json", storage),
    "linear": ("linear.json", linear),
    "reading": ("read.json", reading),
    "models": ("models.json", models),
    "parts": ("linear.json", parts),
    "softmax": ("softmax.json", softmax),
}


def filled(text: str) -> str:
    """Return the page with every table made anew."""

    def table(match: re.Match[str]) -> str:
        file, make = TABLES[match[2]]
        return match[1] + make(json.loads((RECORDS / file).read_text())) + match[3]

    return _MARKED.sub(table, text)


def main() -> None:
    for page in PAGES:
        page.write_text(filled(page.read_text()))


if __name__ == "__main__":
    main()
