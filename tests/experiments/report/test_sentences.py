"""Sentences, word by word, against records made by hand; and none where there is too little to say."""

from __future__ import annotations

import pytest
from made import record

from locole.experiments.report import sentences, series, trends
from locole.experiments.report.entries import entries
from locole.experiments.report.groups import groups


def made(*records):
    return groups(entries(records))


def run(method, accuracy, seed=0, **more):
    return record("table2", "cve_product", method, accuracy=accuracy, seed=seed, **more)


def vectors(dim, accuracy, family="nelson", method="elastic_net", outputs=None, **more):
    outputs = outputs or 2 * dim
    return run(method, accuracy, embedding=family, dim=dim, outputs=outputs, **more)


EVERYTHING = [
    lambda some: sentences.about_best("cve_product", some),
    lambda some: sentences.about_paper("lshtc1", some),
    lambda some: sentences.about_times("cve_product", some),
    lambda some: sentences.about_front("cve_product", some, series.pareto(some)),
    lambda some: trends.about_correlation("cve_product", some),
    lambda some: trends.about_metrics("cve_product", some),
    lambda some: trends.about_growth("cve_product", series.sequences(some)),
    lambda some: trends.about_equal_outputs("cve_product", some),
    lambda some: trends.about_dimension("cve_product", some),
]


@pytest.mark.parametrize("say", EVERYTHING)
@pytest.mark.parametrize(
    "records",
    [
        [],
        [run("mach", 0.5)],
        [vectors(127, 0.5)],
        [run("mach", None, status="timeout"), run("parabel", None, status="failed: x")],
        [vectors(127, None, status="timeout"), vectors(251, None, status="timeout")],
    ],
    ids=["nothing", "one", "one embedding", "all failed", "all embeddings failed"],
)
def test_too_little_to_say(say, records):
    assert say(made(*records)) == ""


def test_counts():
    found = entries(
        [run("mach", 0.5), run("a", 0, status="timeout"), run("b", 0, status="failed: x")]
    )
    assert sentences.about_counts(found) == "3 runs: 1 done, 1 failed, 1 stopped at a time limit."
    assert sentences.about_counts(found[:1]).startswith("1 run: ")
    assert sentences.about_counts([]) == ""


def test_the_best_of_ours_and_of_the_others():
    some = made(
        vectors(127, 0.80), vectors(127, 0.82, seed=1),
        run("mach", 0.70), run("mach", 0.71, seed=1), run("parabel", 0.60),
    )  # fmt: skip
    assert sentences.about_best("cve_product", some) == (
        "On cve_product the most accurate is elastic net, Nelson-127 with 81.00 ± 1.41 %; of the "
        "other systems it is MACH with 70.50 ± 0.71 %."
    )


def test_the_best_may_be_another_system():
    some = made(vectors(127, 0.5), run("mach", 0.7))
    said = sentences.about_best("cve_product", some)
    assert "the most accurate is MACH with 70.00 %" in said
    assert "of the methods with label embeddings it is elastic net, Nelson-127 with 50.00 %" in said
    assert said.endswith("Some of these figures come from one seed.")


def test_a_difference_within_the_seeds_is_called_so():
    some = made(
        *(run(m, a + 0.02 * s, s) for m, a in (("mach", 0.5), ("auto", 0.51)) for s in (0, 1))
    )
    said = sentences.about_best("cve_product", some)
    assert "locole, defaults with 52.00" in said
    assert said.endswith("The difference is no larger than the standard deviation over the seeds.")


def test_above_and_below_the_paper():
    def row(method, accuracy, **more):
        return record("table2", "lshtc1", method, accuracy=accuracy, **more)

    some = made(
        row("parabel", 0.2223),  # the paper: 22.24 ± 0.00
        row("annexml", 0.2930),  # 29.06 ± 0.35
        row("mlp", 0.32, embedding="nelson", dim=509),  # 31.08 ± 0.15
        row("bonsai", 0.99),  # not in the paper
        row("wltls", 0.99, status="timeout"),
    )
    assert sentences.about_paper("lshtc1", some) == (
        "Of 3 rows that the paper has, ours is above in 1, below in 1, and within the two standard "
        "deviations in 1."
    )
    other_split = made(row("parabel", 0.45, rows=126_871))
    assert sentences.about_paper("lshtc1", other_split) == ""


def test_times_faster_and_slower():
    ours = vectors(360, 0.8, "rademacher", outputs=360, fit_wall_s=2.0)
    some = made(ours, run("pd_sparse", 0.79, fit_wall_s=50), run("wltls", 0.9, fit_wall_s=0.5))
    assert sentences.about_times("cve_product", some) == (
        "On cve_product, elastic net, Rademacher-360 is trained in 2 s, 4.0 times as long as W-LTLS "
        "(−10.00 points of accuracy) and 25 times less than PD-Sparse (+1.00 points of accuracy)."
    )
    ray = made(*(r | {"engine": "ray"} for r in (ours, run("ppd_sparse", 0.8, fit_wall_s=4.0))))
    assert sentences.about_times("cve_product", ray).startswith("On cve_product on ray, ")


def test_the_front_and_the_cheapest_near_the_best():
    def costs(method, accuracy, seconds, memory):
        return run(method, accuracy, fit_cpu_s=seconds, peak_memory_mb=memory)

    some = made(
        costs("auto", 0.80, 20, 500), costs("mach", 0.795, 5, 300), costs("parabel", 0.70, 6, 400),
        costs("centroids", 0.60, 1, 100), run("wltls", 0.9),
    )  # fmt: skip
    front = series.pareto(some)
    assert [group.method for group in front] == ["centroids", "mach", "auto"]
    assert sentences.about_front("cve_product", some, front) == (
        "On cve_product, 3 of 4 are on the front: no other is at least as accurate, as fast and as "
        "small in memory. Within one point of locole, defaults (80.00 %), the fastest is MACH with "
        "79.50 % in 4.0 times less CPU time."
    )


def test_correlations_for_each_method():
    dims = (113, 127, 251, 509)
    some = made(
        *(vectors(d, 0.5 + d / 2000, coherence=d**-0.5) for d in dims),
        *(vectors(d, 0.4, method="mlp", coherence=d**-0.5) for d in dims),
    )
    assert trends.about_correlation("cve_product", some) == (
        "On cve_product, over 4 embeddings learnt by elastic net, the rank correlation of accuracy "
        "with coherence is −1.00, with the number of real outputs +1.00."
    )


def test_precision_and_recall():
    figures = dict.fromkeys(("macro_precision", "micro_precision", "macro_recall"), 0.1)
    some = made(
        *(
            vectors(d, 0.5, coherence=1 / d, micro_recall=d / 1000, **figures)
            for d in (113, 127, 251, 509)
        )
    )
    assert trends.about_metrics("cve_product", some) == (
        "On cve_product, over 4 embeddings learnt by elastic net, coherence has the rank correlations "
        "−1.00 with micro recall."
    )


def test_growth_in_outputs():
    some = made(vectors(127, 0.50), vectors(251, 0.60), vectors(509, 0.59))
    assert trends.about_growth("cve_product", series.sequences(some)) == (
        "Points that elastic net gained on cve_product by the last step in real outputs: Nelson −1.00 "
        "from 502 to 1,018 (+9.00 from 254)."
    )


def test_families_at_equal_outputs():
    some = made(
        vectors(127, 0.50), vectors(256, 0.52, "kerdock", outputs=256),
        vectors(256, 0.54, "kerdock", outputs=256, seed=1), vectors(64, 0.1, "kerdock", outputs=64),
    )  # fmt: skip
    assert trends.about_equal_outputs("cve_product", some) == (
        "On cve_product, points between the best and the worst family learnt by elastic net: 3.00 at "
        "about 256 (best Kerdock). The standard deviation over seeds is at most 1.41 points."
    )


def test_the_last_step_of_the_dimension():
    some = made(*(vectors(d, a, fit_cpu_s=d) for d, a in ((127, 0.5), (251, 0.6), (509, 0.601))))
    assert trends.about_dimension("cve_product", some) == (
        "On cve_product, growing Nelson ended at dim 509; the last step, from 251, changed the accuracy "
        "by +0.10 points for 2.0 times the CPU time."
    )


def test_the_chosen_dim_is_tested():
    steps = made(*(vectors(d, a) for d, a in ((127, 0.5), (251, 0.501))))
    said = trends.about_dimension("cve_product", steps, made(vectors(127, 0.48)))
    assert said.endswith(
        "changed the accuracy by +0.10 points. Chosen and tested: 127 with 48.00 %."
    )


def test_spread_of_points():
    assert trends.about_spread({}) == ""
    said = trends.about_spread({"Nelson": 0.5, "Gaussian": 1.02})
    assert said.endswith("Nelson 0.50 and Gaussian 1.02.")


def test_what_has_no_figures():
    found = entries(
        [run("mach", 0.5), run("mach", 0, 1, status="timeout"), run("a", 0, status="failed: x")]
    )
    assert sentences.about_trouble(found) == "2 of 3 runs have no figures: MACH (1) and a (1)."
    assert sentences.about_trouble(found[:1]) == ""
