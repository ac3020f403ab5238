"""Tables of the documentation, made from the committed records: ``python benchmarks/tables.py``.

A table stands between ``<!-- table: name -->`` and ``<!-- end -->``; a test compares it with the record.
"""

from __future__ import annotations

import json
import re
import statistics
import string
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from locole.experiments.report import markdown_tables

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "benchmarks" / "records"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_MARKED = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """Lay out a table, numbers to the right."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


class _Figures(string.Formatter):
    """Formats in which a figure may be divided by a unit: ``{model_bytes/1e6:.0f}``."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> tuple[Any, str]:
        name, _, unit = field_name.partition("/")
        return (kwargs[name] / float(unit) if unit else kwargs[name]), name


def table(runs: Iterable[dict[str, Any]], columns: dict[str, str]) -> str:
    """Lay out a table with a row for each run; columns are titles with their formats."""
    cells = [[_Figures().vformat(form, (), run) for form in columns.values()] for run in runs]
    return markdown(list(columns), cells)


def decoding(record: dict[str, Any]) -> str:
    """Our decoders beside the BLAS product."""
    columns = {
        "embedding": "{embedding}-{dim}",
        "real outputs": "{real_dim:,}",
        "labels": "{n_classes:,}",
        "µs a point": "{us_per_point:.0f}",
        "BLAS µs": "{blas_us_per_point:.0f}",
        "ratio": "{speedup:.1f}",
        "extra MB": "{extra_bytes/1e6:.0f}",
        "BLAS MB": "{blas_bytes/1e6:.0f}",
    }
    return table(record["decoding"], columns)


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
    columns = {
        "samples": "{n_samples:,}",
        "non-zeros": "{nnz:,}",
        "outputs": "{n_outputs}",
        "labels": "{n_classes:,}",
        "threads": "{n_jobs}",
        "CPU s a pass": "{kernel_cpu_s_per_pass:.2f}",
        "ns per non-zero and output": "{ns_per_nnz_output:.2f}",
        "GB/s": "{bytes_per_s/1e9:.0f}",
        "wall s of fit": "{fit_wall_s:.2f}",
        "MB predicted": "{predicted_bytes/1e6:.0f}",
        "MB measured": "{measured_bytes/1e6:.0f}",
    }
    return table(record["scaling"], columns)


def threads(record: dict[str, Any]) -> str:
    """Fits of one problem on one and on two threads, in turn."""
    one, two = (sorted(record["threads"][key]) for key in ("one_s", "two_s"))
    ratios = record["threads"]["speedups"]
    rows = [
        [name, f"{values[0]:.2f}", f"{values[len(values) // 2]:.2f}", f"{values[-1]:.2f}"]
        for name, values in (
            ("one thread, wall s", one),
            ("two threads, wall s", two),
            ("times as fast, pair by pair", ratios),
        )
    ]
    return markdown(["", "least", "median", "most"], rows)


def distributed(record: dict[str, Any]) -> str:
    """Fits by threads and by Ray at equal cores."""
    times = record["measured"]["times_s"]
    rows = [
        [name, *(f"{value:.1f}" for value in (min(v), statistics.median(v), max(v)))]
        for name, v in times.items()
    ]
    rows.append(
        ["Ray over threads, medians", "", f"{100 * record['measured']['overhead']:+.0f} %", ""]
    )
    return markdown(["wall s of a fit", "least", "median", "most"], rows)


def ten_nodes(record: dict[str, Any]) -> str:
    """The model of the paper's cluster."""
    rows = [
        [
            name.upper(),
            *(f"{r[key]:.1f}" for key in ("solve_s", "move_s", "total_s")),
            f"{r['paper_s']}",
        ]
        for name, r in record["model"].items()
    ]
    return markdown(["data", "solving s", "moving s", "together s", "the paper's s"], rows)


def networks_together(record: dict[str, Any]) -> str:
    """A network by two processes against two threads."""
    r = record["network"]
    rows = [
        ["step on two threads of one process", f"{1e3 * r['step_s']['threads']:.1f} ms"],
        ["step by two processes of one thread", f"{1e3 * r['step_s']['ray']:.1f} ms"],
        ["received by a process in a step, computed", f"{r['bytes_a_step'] / 1e6:.1f} MB"],
        ["a gradient of all weights, computed", f"{r['dense_gradient_bytes'] / 1e6:,.0f} MB"],
    ]
    return markdown(["", ""], rows)


TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5)


def shrinking(record: dict[str, Any]) -> str:
    """Visits to each sample until a gap is reached, without and with short passes."""
    head = ["data", "λ1", "λ2", "visits to 1e-2", "to 1e-3", "to 1e-4", "to 1e-5"]
    head += ["CPU s to the last", "X's entries in zero rows"]
    rows = []
    for r in record["runs"]:
        both = [{x["tol"]: x for x in r[name]} for name in ("whole", "short")]
        reached = [tol for tol in both[0] if tol in both[1]]
        cells = [_change(both, tol, "visits_per_sample", reached) for tol in TOLERANCES]
        cells.append(_change(both, min(reached, default=0), "cpu_s", reached))
        zeros = r.get("entries_in_zero_rows")
        cells.append("" if zeros is None else f"{zeros:.0%}")
        rows.append([r["set"], f"{r['l1']:g}", f"{r['l2']:g}", *cells])
    return markdown(head, rows)


def _change(both: list[dict[float, Any]], tol: float, name: str, reached: list[float]) -> str:
    return " → ".join(f"{x[tol][name]:.1f}" for x in both) if tol in reached else "–"


def storage(record: dict[str, Any]) -> str:
    """Weights in fewer bits."""
    columns = {
        "data": "{data}",
        "storage": "{storage}",
        "weights MB": "{weight_bytes/1e6:.0f}",
        "accuracy @1": "{accuracy:.2%}",
        "@5": "{top5:.2%}",
        "CPU ms to predict 1,000 rows": "{cpu_s_per_1000_rows/1e-3:.0f}",
    }
    return table(record["storage"], columns)


def _by_set(
    runs: list[dict[str, Any]], head: list[str], row: Callable[[dict[str, Any]], list[str]]
) -> list[list[str]]:
    """Rows of all runs, those of each data set below its name."""
    rows = []
    for data, some in _by_data(runs, "set"):
        rows += [[f"**{data}**"] + [""] * (len(head) - 1), *map(row, some)]
    return rows


def _failed(r: dict[str, Any], width: int) -> list[str]:
    return [f"{r['label']}: {r['status'].replace('|', '/')}"] + [""] * (width - 1)


def linear(record: dict[str, Any]) -> str:
    """Ours and the peers' systems, a block of rows for each data set."""
    head = ["system", "@1", "@5", "training s", "CPU s", "prediction s", "CPU s"]
    head += ["memory MB", "model MB"]
    return markdown(head, _by_set(record["runs"], head, lambda r: _linear_row(r, len(head))))


def _linear_row(r: dict[str, Any], width: int) -> list[str]:
    if r["status"] != "done":
        return _failed(r, width)
    seconds = ("train_wall_s", "train_cpu_s", "predict_wall_s", "predict_cpu_s")
    return [
        r["label"],
        _accuracy(r, "accuracy_1"),
        _accuracy(r, "accuracy_5"),
        *(_spread(r, name, 1, ".2f") for name in seconds),
        f"{r['memory_training_bytes'] / 1e6:.0f}",
        f"{r['model_bytes'] / 1e6:.1f}",
    ]


def searched(record: dict[str, Any]) -> str:
    """Systems with settings chosen on validation rows, a block of rows for each data set."""
    head = ["system", "setting", "tried", "search CPU s", "@1", "@5", "training CPU s", "model MB"]

    def row(r: dict[str, Any]) -> list[str]:
        if r["status"] != "done":
            return _failed(r, len(head))
        tried = r["search"]["tried"]
        return [
            r["label"],
            ", ".join(f"`{name}={value!r}`" for name, value in r["options"].items()) or "as above",
            f"{sum(one['status'] == 'done' for one in tried)} of {len(tried)}",
            f"{r['search']['cpu_s']:.1f}",
            _percent(r["accuracy_1"]),
            _percent(r["accuracy_5"]),
            f"{r['train_cpu_s']:.1f}",
            f"{r['model_bytes'] / 1e6:.1f}",
        ]

    return markdown(head, _by_set(record["runs"], head, row))


def end_to_end(record: dict[str, Any]) -> str:
    """Parts of a fit from a file to a saved model, a block of rows for each file."""
    head = ["part", "seconds", "CPU s", "peak GB"]
    rows = []
    for r in record["runs"]:
        columns = f", {r['features']:,} features" if "features" in r else ""
        rows.append([f"**{r['set']}/{r['file']}{columns}**"] + [""] * (len(head) - 1))
        for part, found in r["parts"].items():
            figures = [f"{found[name]:.1f}" for name in ("seconds", "cpu_s")]
            rows.append([part, *figures, f"{found['peak_bytes'] / 1e9:.2f}"])
    return markdown(head, rows)


def multilabel(record: dict[str, Any]) -> str:
    """Several labels: ours and the peers' systems, a block of rows for each data set."""
    names = ["P@1", "P@3", "P@5", "R@5", "nDCG@5", "PSP@1", "PSP@3", "PSP@5"]
    head = ["system", *names, "training CPU s", "prediction CPU s", "memory MB", "model MB"]

    def row(r: dict[str, Any]) -> list[str]:
        if r["status"] != "done":
            return _failed(r, len(head))
        figures = [f"{100 * r['metrics'][name]:.1f}" for name in names]
        seconds = [f"{r[name]:.1f}" for name in ("train_cpu_s", "predict_cpu_s")]
        sizes = [f"{r[name] / 1e6:.0f}" for name in ("memory_training_bytes", "model_bytes")]
        return [r["label"], *figures, *seconds, *sizes]

    return markdown(head, _by_set(record["runs"], head, row))


def multilabel_study(record: dict[str, Any]) -> str:
    """Several labels: variants of the default model on validation rows."""
    names = {"P@1": "P@1", "P@3": "P@3", "P@5": "P@5", "micro_f1": "micro F1"}
    names |= {"samples_f1": "F1 of rows", "macro_f1": "macro F1"}
    names["macro_f1_own_thresholds"] = "macro F1, own thresholds"
    names["micro_f1_own_thresholds"] = "micro F1, own thresholds"
    head = ["variant", *names.values()]

    def row(r: dict[str, Any]) -> list[str]:
        return [r["variant"], *(f"{100 * r[name]:.1f}" if name in r else "" for name in names)]

    return markdown(head, _by_set(record["runs"], head, row))


def dense_study(record: dict[str, Any]) -> str:
    """Dense rows: what stands beside prototypes, on rows of the training part."""
    head = ["beside prototypes", "accuracy", "of each sixth", "CPU s"]

    def row(r: dict[str, Any]) -> list[str]:
        found = r["accuracy"]
        each = ", ".join(f"{100 * right:.1f}" for right in found)
        name = r["variant"].replace("prototypes", "nothing")
        return [name, f"{100 * sum(found) / len(found):.2f}%", each, f"{r['cpu_s']:.1f}"]

    return markdown(head, [row(r) for r in record["runs"]])


def _spread(r: dict[str, Any], name: str, factor: float, form: str) -> str:
    """A figure, with its standard deviation where it is the mean over several seeds."""
    shown = f"{factor * r[name]:{form}}"
    return f"{shown} ± {factor * r['std'][name]:{form}}" if "std" in r else shown


def _accuracy(r: dict[str, Any], name: str) -> str:
    return _spread(r, name, 100, ".1f") + "%"


def baselines(record: dict[str, Any]) -> str:
    """Our baselines beside the original programs, a block of rows for each data set."""
    head = [
        "system",
        "@1",
        "@5",
        "training s",
        "CPU s",
        "prediction CPU s",
        "memory MB",
        "model MB",
    ]
    head += ["original @1", "CPU s"]
    return markdown(head, _by_set(record["runs"], head, _baseline_row))


def _baseline_row(r: dict[str, Any]) -> list[str]:
    original = r.get("original", {})
    theirs = [original.get("status") or _percent(original.get("accuracy_1"))]
    theirs += [f"{original['train_cpu_s']:g}" if "train_cpu_s" in original else ""]
    if r["status"] != "done":
        return _failed(r, 8) + theirs
    return [
        r["label"],
        _percent(r["accuracy_1"]),
        _percent(r["accuracy_5"]),
        *(f"{r[name]:.2f}" for name in ("train_wall_s", "train_cpu_s", "predict_cpu_s")),
        f"{r['memory_training_bytes'] / 1e6:.0f}",
        f"{r['model_bytes'] / 1e6:.1f}",
        *theirs,
    ]


def _percent(fraction: float | None) -> str:
    return "" if fraction is None else f"{fraction:.1%}"


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


def network(record: dict[str, Any]) -> str:
    """A step of the network beside the obvious program's."""
    names = {
        "ours": "`MLPRegressor`",
        "row_moment": '`second_moment="row"`',
        "half": '`first_layer="float16"`',
        "obvious_small": "obvious program",
        "obvious_large": "obvious program",
        "obvious": "obvious program, followed to full size",
    }
    rows = [
        [
            name,
            f"{record[key]['features']:,}",
            f"{1e3 * record[key]['wall_s']:,.0f}",
            f"{1e3 * record[key]['cpu_s']:,.0f}",
            f"{record[key]['peak_bytes'] / 1e9:.1f}",
        ]
        for key, name in names.items()
    ]
    ours, limit = record["ours"], 1e3 * record["limit_cpu_s"]
    wall = f"{limit / ours['threads']:,.0f}"
    rows.append(["limit of the machine", f"{ours['features']:,}", wall, f"{limit:,.0f}", "–"])
    return markdown(["program", "features", "ms a step", "CPU ms", "peak GB"], rows)


def recipes(record: dict[str, Any]) -> str:
    """Accuracy and time of the network's recipes by data set: mean ± deviation, and how many seeds."""
    done = [r for r in record["runs"] if r["status"] == "done"]
    sets = list(dict.fromkeys(r["data"] for r in done))
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for r in done:
        settings = json.loads(r["settings"] or "{}")
        name = ", ".join(f"{key}={value!r}" for key, value in settings.items()) or "default"
        found.setdefault(name, {}).setdefault(r["data"], []).append(r)

    def cell(runs: list[dict[str, Any]]) -> str:
        if not runs:
            return "–"
        cpu = statistics.mean(r["fit_cpu_s"] for r in runs)
        return f"{_percents(r['accuracy'] for r in runs)} ({cpu:.0f} s, {len(runs)})"

    rows = [[f"`{name}`", *(cell(cells.get(x, [])) for x in sets)] for name, cells in found.items()]
    return markdown(["recipe", *sets], rows)


def paper_network(record: dict[str, Any]) -> str:
    """The paper's network at its full size: on embeddings, and with an output for each label."""
    found: dict[str, list[dict[str, Any]]] = {}
    for run in record["runs"]:
        if run["status"] == "done":
            outputs = f"{run['embedding']}-{run['dim']}" if run["embedding"] else run["method"]
            found.setdefault(outputs, []).append(run)
    names = {"mlp_cross_entropy": "MLP (CE)", "mlp_squared_error": "MLP (SE)"}

    def mean(runs: list[dict[str, Any]], name: str) -> float:
        return statistics.mean(run[name] for run in runs)

    rows = [
        [
            names.get(outputs, outputs),
            _percents(run["accuracy"] for run in runs),
            _percent(mean(runs, "accuracy_at_5")),
            f"{mean(runs, 'fit_wall_s'):.0f}",
            f"{mean(runs, 'fit_cpu_s'):.0f}",
            f"{mean(runs, 'peak_memory_mb') / 1e3:.1f}",
            str(len(runs)),
        ]
        for outputs, runs in found.items()
    ]
    head = ["outputs", "accuracy, %", "in first 5", "seconds", "CPU s", "memory, GB", "seeds"]
    return markdown(head, rows)


def _percents(shares: Iterable[float]) -> str:
    """Mean ± standard deviation in percent."""
    values = [100 * share for share in shares]
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{spread}"


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


WITHOUT = ("locole-no-profiles", "locole-no-factors", "locole-no-nearest")
PARTS = ("locole", *WITHOUT, "locole-elastic", "locole-softmax", "centroids", "pecos")


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
                f"{_accuracy(r, 'accuracy_1')} ({r['train_cpu_s']:.1f}\u00a0s)" if r else "–"
                for r in cells
            ]
            rows.append([label, *shown])
    return markdown(["system", *sets], rows)


def latency(record: dict[str, Any]) -> str:
    """One row at a time, on one thread."""
    columns = {
        "labels": "{labels:,}",
        "load, ms": "{load_s/1e-3:.2f}",
        "first answer, ms": "{first_answer_s/1e-3:.2f}",
        "median, ms": "{row_p50_s/1e-3:.2f}",
        "99 %, ms": "{row_p99_s/1e-3:.2f}",
        "in batches, ms": "{batch_cpu_s_per_row/1e-3:.2f}",
    }
    return table(record["runs"], columns)


def serving(record: dict[str, Any]) -> str:
    """One text a request, through HTTP, for each number of connections."""
    columns = {
        "connections": "{connections}",
        "requests/s": "{per_s:,.0f}",
        "median, ms": "{p50_s/1e-3:.1f}",
        "99 %, ms": "{p99_s/1e-3:.1f}",
        "server's CPU ms a request": "{cpu_s_per_request/1e-3:.2f}",
        "ratio to direct calls": "{ratio_to_direct:.2f}",
    }
    return table(record["runs"], columns)


def mixed_load(record: dict[str, Any]) -> str:
    """Minutes of requests of every kind, while the model is replaced."""
    columns = {
        "minutes": "{minutes:.0f}",
        "requests": "{requests:,}",
        "failed": "{failed}",
        "answers of two versions": "{mixed}",
        "model replaced": "{replaced}",
        "99 %, ms": "{p99_s/1e-3:.1f}",
    }
    return table([record["mixed"]], columns)


def served_memory(record: dict[str, Any]) -> str:
    """Memory of the server in each tenth of the mixed requests."""
    columns = {
        "until minute": "{until_s/60:.1f}",
        "own MB, least": "{own_bytes_min/1e6:.0f}",
        "median": "{own_bytes_p50/1e6:.0f}",
        "most": "{own_bytes_max/1e6:.0f}",
        "with mapped files, most": "{all_bytes_max/1e6:.0f}",
    }
    return table(record["mixed"]["memory"], columns)


def growth(record: dict[str, Any]) -> str:
    """Time, memory and size of the default model, a line for each size of the data."""
    columns = {
        **{name: f"{{{name}:,}}" for name in ("rows", "features", "labels", "entries")},
        "fit, s": "{fit_wall_s:.1f}",
        "CPU s": "{fit_cpu_s:.1f}",
        "peak GB": "{peak_bytes/1e9:.2f}",
        "model MB": "{model_bytes/1e6:.0f}",
    }
    return table(record["runs"], columns)


def study_dims(record: dict[str, Any]) -> str:
    """Both losses by number of outputs, a column for each set."""
    rows = [r for r in record["runs"] if r["part"] == "dims"]
    return _study(rows, lambda r: f"{_LOSSES[r['loss']]}, {r['family']}-{r['dim']}", record)


def study_families(record: dict[str, Any]) -> str:
    """Both losses with every family at about 512 real outputs."""
    rows = [r for r in record["runs"] if r["part"] == "families" or r["dim"] == 512]
    return _study(rows, lambda r: f"{_LOSSES[r['loss']]}, {r['family']}-{r['dim']}", record)


_LOSSES = {"elastic_net": "elastic net", "softmax": "softmax"}


def _study(
    rows: list[dict[str, Any]], label: Callable[[dict[str, Any]], str], record: dict[str, Any]
) -> str:
    sets = list(dict.fromkeys(r["set"] for r in record["runs"]))
    lines: dict[str, dict[str, str]] = {}
    for r in sorted(rows, key=lambda r: r["loss"]):
        shown = r["status"].split(":")[0]
        if r["status"] == "done":
            shown = f"{_percent(r['accuracy_1'])} ({r['train_cpu_s']:.1f}\u00a0s)"
        lines.setdefault(label(r), {})[r["set"]] = shown
    body = [[name, *(cells.get(x, "–") for x in sets)] for name, cells in lines.items()]
    return markdown(["model", *sets], body)


def growing(record: dict[str, Any]) -> str:
    """Accuracy of growing dims on the validation set, and of the chosen one on the test set."""
    lines: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
    for r in sorted(record["runs"], key=lambda r: r["dim"]):
        is_step = "validation" in r["data_options"]
        tried, chosen = lines.setdefault((r["data"], r["embedding"]), ([], []))
        (tried if is_step else chosen).append(f"{r['dim']:,}: {100 * r['accuracy']:.1f}")
    body = [
        [family, data.replace("_", " "), ", ".join(tried), ", ".join(chosen)]
        for (data, family), (tried, chosen) in sorted(lines.items(), reverse=True)
    ]
    return markdown(
        ["embedding", "set", "dim: % on the validation set", "chosen dim, on the test set"], body
    )


def dense(record: dict[str, Any]) -> str:
    """Systems on dense rows."""
    head = ["set, system", "@1 %", "@5 %", "train s", "train CPU s", "predict CPU s", "peak MB"]
    body = []
    for r in record["runs"]:
        name = f"{r['set']}: {r['label']}"
        if r["status"] != "done":
            body.append([name, r["status"].split(":")[0], *["–"] * 5])
            continue
        body.append(
            [
                name,
                _percent(r["accuracy_1"]),
                _percent(r["accuracy_5"]),
                f"{r['train_wall_s']:.1f}",
                f"{r['train_cpu_s']:.1f}",
                f"{r['predict_cpu_s']:.1f}",
                f"{r['memory_peak_bytes'] / 1e6:,.0f}",
            ]
        )
    return markdown(head, body)


def index(record: dict[str, Any]) -> str:
    """Best labels by looking at all, and by an index."""
    columns = {
        "labels": "{labels:,}",
        "system": "{system}",
        "best label found": "{recall_1:.1%}",
        "ms a row in blocks": "{block_ms:.2f}",
        "ms a row alone": "{alone_ms:.2f}",
        "build s": "{build_s:.1f}",
    }
    return table(record["runs"], columns)


def label_texts(record: dict[str, Any]) -> str:
    """Precision of all rows, and recall of labels by their training rows."""
    shown = {"P@1": "P@1", "P@5": "P@5", "unseen: R@20": "R@20, no rows"}
    shown |= {f"{band}: R@20": f"R@20, {band}" for band in ("1-2 rows", "more")}
    body = [
        [
            f"{r['set']}: {r['label']}",
            *(_percent(r["metrics"][key]) for key in shown),
            f"{r['train_cpu_s']:.0f}",
        ]
        for r in record["runs"]
    ]
    return markdown(["set, system", *shown.values(), "train CPU s"], body)


def updates(record: dict[str, Any]) -> str:
    """A model that grew beside a fit from scratch."""
    head = ["set, seed", "model", "accuracy", "on new labels", "calibration error", "CPU s"]
    body = []
    for r in record["growth"]:
        seconds = {"scratch": r["scratch"]["cpu_s"], "first": r["first"]["cpu_s"]}
        for key, name in _GROWN.items():
            figures = (r[key][x] for x in ("accuracy", "accuracy_new", "calibration_error"))
            cpu = f"{seconds[key]:.1f}" if key in seconds else _batches(r["batch_cpu_s"])
            body.append([f"{r['data']}, {r['seed']}", name, *map(_percent, figures), cpu])
    return markdown(head, body)


_GROWN = {"scratch": "fit to all rows", "first": "first fit", "grown": "after all batches"}


def _batches(seconds: dict[str, float]) -> str:
    return f"{seconds['median']:.2f} a batch (at most {seconds['largest']:.2f})"


def stream(record: dict[str, Any]) -> str:
    """A thousand updates in a row."""
    r = record["stream"]
    sizes, peaks = ([f"{x / 1e6:,.1f}" for x in r[key]] for key in ("model_bytes", "peak_bytes"))
    step = r["updates"] // len(sizes)
    body = [
        [f"{step * (i + 1):,}", size, peak]
        for i, (size, peak) in enumerate(zip(sizes, peaks, strict=True))
    ]
    return markdown(["updates", "model MB", "peak MB"], body)


def of_report(name: str) -> Callable[[dict[str, Any]], str]:
    """Return the function that makes a table of the report from the records of its experiment."""
    return lambda record: markdown_tables(record["runs"])[name]


def calibration(record: dict[str, Any]) -> str:
    """Probabilities of the default model beside a softmax over its best 50 labels."""
    head = ["data", "calibration error, %", "of perfect ones", "softmax", "log loss", "softmax"]
    head += ["label among 50", "softmax", "errors at 80 % coverage, %", "softmax"]
    rows = []
    for name, runs in _by_data(record["runs"]):
        means = {key: statistics.mean(r[key] for r in runs) for key in runs[0] if key != "data"}
        rows.append(
            [
                name,
                _percents(r["ece"] for r in runs),
                f"{100 * means['perfect_ece']:.1f}",
                f"{100 * means['naive_ece']:.1f}",
                f"{means['log_loss']:.3f}",
                f"{means['naive_log_loss']:.3f}",
                f"{means['near_log_loss']:.3f}",
                f"{means['naive_near_log_loss']:.3f}",
                _percents(r["error_at_80"] for r in runs),
                f"{100 * means['naive_error_at_80']:.1f}",
            ]
        )
    return markdown(head, rows)


def calibration_parts(record: dict[str, Any]) -> str:
    """Calibration on parts of the training rows and on the test rows of one set."""
    head = ["predicted rows", "accuracy", "calibration error, %", "of perfect ones"]
    head += ["confidence − accuracy, points", "least and most"]
    test = [r for r in record["runs"] if r["data"] == "clinc150"]
    named = [(f"training part, sixth {number + 1}", number) for number in range(6)]
    groups = [(name, [r for r in record.get("parts", []) if r["part"] == n]) for name, n in named]
    rows = []
    for name, runs in [*groups, ("test part", test)]:
        bias = [100 * r.get("bias", 0.0) for r in runs]
        if bias:
            rows.append(
                [
                    name,
                    f"{statistics.mean(r['accuracy'] for r in runs):.1%}",
                    _percents(r["ece"] for r in runs),
                    f"{100 * statistics.mean(r['perfect_ece'] for r in runs):.1f}",
                    f"{statistics.mean(bias):+.1f}",
                    f"{min(bias):+.1f}, {max(bias):+.1f}",
                ]
            )
    return markdown(head, rows)


def calibration_splits(record: dict[str, Any]) -> str:
    """Guarantees over random splits of the test rows into rows to calibrate with and others."""
    levels = (0.8, 0.9, 0.95)
    head = ["data", "error kept in", *(f"mean coverage for {c:.0%}" for c in levels)]
    head += [f"within the interval, {c:.0%}" for c in levels]
    rows = [
        [
            r["data"],
            f"{r['kept']} of {r['answered']}",
            *(f"{r[f'coverage_{c:g}']:.2%}" for c in levels),
            *(f"{r[f'within_{c:g}']:.0%}" for c in levels),
        ]
        for r in record["splits"]
    ]
    return markdown(head, rows)


def calibration_sets(record: dict[str, Any]) -> str:
    """Label sets of ours and MAPIE's on the same splits: coverage and mean size."""
    columns = [f"{method}_{c:g}" for method in ("lac", "aps") for c in (0.8, 0.9, 0.95)]
    head = ["sets by", "probabilities"]
    head += [f"{method}, {c:.0%}" for method in ("LAC", "APS") for c in (0.8, 0.9, 0.95)]
    rows = [
        [r["system"], r["proba"]]
        + [f"{r[f'{name}_size']:.3f} ({r[f'{name}_coverage']:.1%})" for name in columns]
        for r in record["sets"]
    ]
    return markdown(head, rows)


def calibration_costs(record: dict[str, Any]) -> str:
    """CPU time of probabilities, in the fit and in a ranking."""
    head = ["data", "fit, s", "of it probabilities", "best five of 2,000 rows, s"]
    head += ["with probabilities, s", "more"]
    rows = [
        [
            r["data"],
            f"{r['fit_cpu_s']:.1f}",
            f"{r['calibration_cpu_s'] / r['fit_cpu_s']:.1%}",
            f"{r['topk_cpu_s']:.2f}",
            f"{r['topk_proba_cpu_s']:.2f}",
            f"{r['topk_proba_cpu_s'] / r['topk_cpu_s'] - 1:+.0%}",
        ]
        for r in record["costs"]
    ]
    return markdown(head, rows)


def _by_data(
    runs: list[dict[str, Any]], key: str = "data"
) -> Iterable[tuple[str, list[dict[str, Any]]]]:
    """Runs of each data set, in the order of their first runs."""
    names = list(dict.fromkeys(r[key] for r in runs))
    return [(name, [r for r in runs if r[key] == name]) for name in names]


#: name of a table → (record it comes from, function that makes it)
TABLES: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "decoding": ("core.json", decoding),
    "limits": ("core.json", limits),
    "scaling": ("solver.json", scaling),
    "threads": ("solver.json", threads),
    "distributed": ("distributed.json", distributed),
    "ten_nodes": ("distributed.json", ten_nodes),
    "networks_together": ("distributed.json", networks_together),
    "shrinking": ("shrinking.json", shrinking),
    "storage": ("storage.json", storage),
    "linear": ("linear.json", linear),
    "searched": ("searched.json", searched),
    "end_to_end": ("end_to_end.json", end_to_end),
    "multilabel": ("multilabel.json", multilabel),
    "multilabel_study": ("multilabel_study.json", multilabel_study),
    "baselines": ("baselines.json", baselines),
    "reading": ("read.json", reading),
    "models": ("models.json", models),
    "latency": ("latency.json", latency),
    "serving": ("serve.json", serving),
    "mixed_load": ("serve.json", mixed_load),
    "served_memory": ("serve.json", served_memory),
    "growth": ("scale.json", growth),
    "parts": ("parts.json", parts),
    "factors": ("factors.json", parts),
    "network": ("mlp.json", network),
    "recipes": ("experiments/networks.jsonl", recipes),
    "paper_network": ("experiments/paper_network.jsonl", paper_network),
    "softmax": ("softmax.json", softmax),
    "study_dims": ("study.json", study_dims),
    "study_families": ("study.json", study_families),
    "calibration": ("calibration.json", calibration),
    "calibration_parts": ("calibration.json", calibration_parts),
    "calibration_splits": ("calibration.json", calibration_splits),
    "calibration_sets": ("calibration.json", calibration_sets),
    "calibration_costs": ("calibration.json", calibration_costs),
    "dense": ("dense.json", dense),
    "dense_study": ("dense_study.json", dense_study),
    "index": ("index.json", index),
    "label_texts": ("names.json", label_texts),
    "updates": ("growing.json", updates),
    "stream": ("growing.json", stream),
    "growing": ("experiments/dimension.jsonl", growing),
    "overview": ("experiments/table2.jsonl", of_report("overview")),
    **{
        f"{experiment}_{data}": (
            f"experiments/{experiment}.jsonl",
            of_report(f"{experiment}_{data}"),
        )
        for experiment in ("table2", "table3", "equal_outputs")
        for data in ("cve_product", "city_names_min_population_30000")
    },
}


def read(path: Path) -> dict[str, Any]:
    """Return a record; of an experiment all of them, as ``runs``."""
    text = path.read_text()
    if path.suffix == ".jsonl":
        return {"runs": [json.loads(line) for line in text.splitlines()]}
    return json.loads(text)


def filled(text: str) -> str:
    """Return the page with every table made anew."""

    def table(match: re.Match[str]) -> str:
        file, make = TABLES[match[2]]
        # Empty until it is measured.
        made = make(read(RECORDS / file)) if (RECORDS / file).exists() else ""
        return match[1] + made + match[3]

    return _MARKED.sub(table, text)


def main() -> None:
    for page in PAGES:
        page.write_text(filled(page.read_text()))


if __name__ == "__main__":
    main()
