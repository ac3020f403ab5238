"""Tables: every run is in them, the best is bold, and the paper stands beside the same data only."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import FAILURE, all_experiments, baseline, embedded, record, without_figures

from locole.experiments import paper
from locole.experiments.report import markdown_tables, results, series
from locole.experiments.report.entries import entries, pool
from locole.experiments.report.groups import by_set, groups
from locole.experiments.report.overview import overview_table
from locole.experiments.report.sections import make_sections
from locole.experiments.report.tables import csv_of, csv_of_groups


def texts(table):
    """First cell of each row → the texts of the others."""
    return {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}


def table2(*records):
    ((name, some),) = by_set(groups(entries(records))).items()
    return results.table2(name, some)


def test_every_run_is_in_a_table(tmp_path):
    found = entries(all_experiments(tmp_path))
    sets = by_set(groups([entry for entry in found if entry.experiment == "table2"]))
    for name, some in sets.items():
        table = results.table2(name, some)
        rows = [row for row in table.rows if row[0].kind != "group"]
        assert len(rows) == len(some) == 30
        for row in table.rows:
            assert sum(cell.span for cell in row) == len(table.header)


def test_several_labels_have_a_table_of_their_own():
    figures = {f"{name}_at_{k}": 0.25 for name in ("precision", "psp", "ndcg") for k in (1, 3)}
    done = record("mine", "cve_product", "parabel", accuracy=0.25) | figures
    bad = without_figures(baseline("mine", "cve_product", "annexml", 0), FAILURE)
    ((name, some),) = by_set(groups(entries([done, bad]))).items()
    table = results.plain_table(name, some)
    assert table.header[1:8] == ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5", "nDCG@1")
    assert texts(table)["Parabel"][:3] == ["25.00", "25.00", "–"]
    assert texts(table)["AnnexML"] == [FAILURE]
    failed = [group for group in some if not group.done]
    assert results.plain_table(name, failed).header[1] == "accuracy, %"


def test_a_failed_method_is_a_row_with_its_reason():
    bad = without_figures(baseline("table2", "cve_product", "mach", 0), FAILURE)
    table = table2(bad, baseline("table2", "cve_product", "parabel", 0))
    assert texts(table)["MACH"] == [FAILURE]
    late = without_figures(baseline("table2", "cve_product", "mach", 0), "timeout")
    assert texts(table2(late))["MACH"] == ["time limit reached"]


def test_a_run_that_failed_once_is_a_note():
    runs = [baseline("table2", "cve_product", "mach", seed) for seed in range(3)]
    runs[1] = without_figures(runs[1], FAILURE)
    table = table2(*runs)
    ((_, cell, *_),) = table.rows
    assert cell.note == f"1 of 3 runs: {FAILURE}"
    assert "±" in cell.text
    assert texts(table)["MACH"][-1] == "2"


def test_the_best_is_bold_and_ties_all_are():
    runs = [
        record("table2", "d", method, accuracy=accuracy)
        for method, accuracy in (("mach", 0.5), ("parabel", 0.50001), ("bonsai", 0.4))
    ]
    bold = {row[0].text for row in table2(*runs).rows if any(cell.best for cell in row)}
    assert bold == {"MACH", "Parabel"}
    alone = table2(runs[0])
    assert not any(cell.best for row in alone.rows for cell in row)


def test_the_paper_beside_the_same_data_only():
    ours = record("table2", "lshtc1", "mlp", embedding="nelson", dim=509, rows=83_805)
    table = table2(ours)
    assert "the paper, %" in table.header
    assert texts(table)["Nelson-509"][:2] == ["50.00", "31.08 ± 0.15"]
    # Rows that were not run are there, too.
    assert texts(table)["Parabel"][:2] == ["not run", "22.24 ± 0.00"]
    rows = [row for row in table.rows if row[0].kind != "group"]
    assert len(rows) == len(paper.TABLE2["lshtc1"])
    for other in (
        ours | {"quick": True},
        ours | {"rows": 126_871},
        ours | {"rows": None},
        ours | {"data": "cve_product"},
    ):
        assert "the paper, %" not in table2(other).header


def test_a_failed_run_beside_the_paper():
    ours = record("table2", "lshtc1", "mlp", embedding="nelson", dim=509)
    bad = without_figures(record("table2", "lshtc1", "parabel"), "timeout")
    table = table2(ours, bad)
    assert texts(table)["Parabel"][:2] == ["time limit reached", "22.24 ± 0.00"]
    for row in table.rows:
        assert sum(cell.span for cell in row) == len(table.header)


def test_an_elastic_net_is_not_the_papers_network():
    ours = record("table2", "lshtc1", "elastic_net", embedding="nelson", dim=509)
    rows = [row for row in table2(ours).rows if row[0].text == "Nelson-509"]
    assert [row[2].text for row in rows] == ["–", "31.08 ± 0.15"]


def test_table3_single_and_distributed():
    ours = record(
        "table3", "lshtc1", "elastic_net", embedding="rademacher", dim=360, fit_wall_s=5.0
    )
    some = groups(
        entries([ours, ours | {"engine": "ray"}, record("table3", "lshtc1", "pd_sparse")])
    )
    table = results.table3("lshtc1", some)
    found = [[cell.text for cell in row] for row in table.rows]
    assert found[0][2:5] == ["23.38", "5.00", "14.0"]
    assert found[0][-1] == "ray"
    assert found[1][2:5] == ["23.42", "5.00", "55.0"]
    assert found[2][2] == "22.04"
    assert found[2][-1] == "2 threads"


def test_families_in_columns():
    runs = [embedded("equal_outputs", "cve_product", "kerdock", 256, 0)]
    runs.append(embedded("equal_outputs", "cve_product", "nelson", 127, 0))
    runs.append(embedded("equal_outputs", "cve_product", "nelson", 509, 0) | {"status": "timeout"})
    table = series.equal_outputs_table("cve_product", groups(entries(runs)))
    assert table.header == ("real outputs", "Nelson", "Kerdock")
    found = texts(table)
    assert list(found) == ["254 to 256", "1,018"]
    assert found["1,018"] == ["time limit reached", "–"]


def test_gains_of_the_dimension():
    runs = [
        record("dimension", "d", "elastic_net", embedding="kerdock", dim=d, outputs=d, accuracy=a)
        for d, a in ((64, 0.5), (256, 0.55), (1024, 0.549))
    ]
    (steps,) = series.sequences(groups(entries(runs)))
    table = series.dimension_table("d", steps)
    assert {name: row[1] for name, row in texts(table).items()} == {
        "64": "–", "256": "+5.00", "1,024": "−0.10",
    }  # fmt: skip


def test_the_chosen_dim_stands_below_its_steps(tmp_path):
    held_out = '{"part":"validation"}'
    runs = [
        record("dimension", "d", "elastic_net", embedding="kerdock", dim=d, data_options=held_out)
        for d in (64, 256)
    ]
    runs.append(record("dimension", "d", "elastic_net", embedding="kerdock", dim=64, accuracy=0.4))
    (section,) = [s for s in make_sections(entries(runs), tmp_path) if s.name == "dimension"]
    (block,) = section.blocks
    (table,) = block.tables
    assert [row[0].text for row in table.rows] == ["64", "256", "64, test part"]
    # Without steps on validation rows, steps on the test part are steps.
    (section,) = [s for s in make_sections(entries(runs[2:]), tmp_path) if s.name == "dimension"]
    assert [row[0].text for row in section.blocks[0].tables[0].rows] == ["64"]


def test_all_sets_side_by_side(tmp_path):
    sets = by_set(groups(pool(entries(all_experiments(tmp_path)), "table2")))
    table = overview_table(sets)
    assert table.header == ("method", "city names, %", "CPU s", "cve_product, %", "CPU s")
    found = texts(table)
    # Four families at their largest dims, the default and ten other systems.
    assert len(found) == len(table.rows) == 4 + 11
    for name, some in zip((1, 3), sets.values(), strict=True):
        (nelson,) = [g for g in some if g.embedding == "nelson" and g.dim == 509]
        shown = found["elastic net, Nelson-509"][name - 1]
        assert shown.startswith(f"{100 * nelson.mean('accuracy'):.2f} ±")
    assert found["MLP (CE)"] == ["failed", "–", "failed", "–"]
    assert found["AnnexML"][:2] == ["time limit", "–"]
    best = {row[0].text for row in table.rows if row[1].best}
    assert best == {"locole, defaults"}


def test_dims_that_differ_by_set_are_not_named():
    runs = [
        record("table2", data, "elastic_net", embedding="nelson", dim=dim, accuracy=0.5)
        for data, dim in (("a", 127), ("a", 251), ("b", 509))
    ]
    runs.append(record("table2", "b", "mach"))
    table = overview_table(by_set(groups(entries(runs))))
    assert texts(table) == {
        "elastic net, Nelson": ["50.00", "–", "50.00", "–"], "MACH": ["–", "–", "50.00", "–"],
    }  # fmt: skip


def test_markdown_of_all_tables(tmp_path):
    tables = markdown_tables(all_experiments(tmp_path))
    assert set(tables) == {"overview"} | {
        f"{kind}_{name}"
        for kind in ("table2", "table3", "equal_outputs")
        for name in ("cve_product", "city_names")
    }
    for text in tables.values():
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines()}
        assert len(widths) == 1
    assert markdown_tables([]) == {}


costs = st.tuples(*[st.integers(0, 4)] * 3)


@given(st.lists(costs, min_size=1, max_size=10))
def test_the_front_by_brute_force(points):
    runs = [
        record("table2", "d", f"m{i}", accuracy=a / 10, fit_cpu_s=s, peak_memory_mb=m)
        for i, (a, s, m) in enumerate(points)
    ]
    front = {group.method for group in series.pareto(groups(entries(runs)))}
    for i, (a, s, m) in enumerate(points):
        beaten = any(x >= a and y <= s and z <= m and (x, y, z) != (a, s, m) for x, y, z in points)
        assert (f"m{i}" in front) == (not beaten)


def test_troubles_share_a_row_over_seeds():
    bad = [without_figures(baseline("table2", "cve_product", "mach", s), FAILURE) for s in (0, 1)]
    bad.append(without_figures(baseline("table2", "cve_product", "mach", 2), "timeout"))
    table = results.trouble_table(entries(bad))
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["MACH", FAILURE, "table2", "cve_product", "0, 1"],
        ["MACH", "time limit reached", "table2", "cve_product", "2"],
    ]


def test_csv_has_all_groups_and_reads_back():
    runs = [embedded("table2", "cve_product", "nelson", 127, seed) for seed in range(2)]
    some = groups(
        entries([*runs, without_figures(baseline("table2", "cve_product", "mach", 0), FAILURE)])
    )
    lines = list(csv.DictReader(io.StringIO(csv_of_groups(some))))
    assert [line["method"] for line in lines] == ["elastic_net", "mach"]
    assert float(lines[0]["accuracy_mean"]) == pytest.approx(some[0].mean("accuracy"), rel=1e-5)
    assert lines[1]["trouble"] == FAILURE
    assert lines[1]["accuracy_mean"] == ""


cells = st.builds("".join, st.tuples(st.sampled_from(["", *"=+-@"]), st.text()))


@given(st.lists(cells, min_size=1, max_size=3))
def test_no_cell_of_a_csv_file_is_a_formula(row):
    lines = csv.reader(io.StringIO(csv_of(["name"] * len(row), [row]), newline=""))
    found = list(lines)[1:]
    assert not any(re.match(r"[=+\-@]", cell) for line in found for cell in line)


def test_markdown_escapes_what_would_break_it():
    table = table2(record("table2", "d", "a|b <i>"), record("table2", "d", "mach", accuracy=0.6))
    lines = table.markdown().splitlines()
    assert lines[0].startswith("| method | accuracy")
    assert "**60.00**" in lines[2]
    assert "a\\|b \\<i\\>" in lines[3]
