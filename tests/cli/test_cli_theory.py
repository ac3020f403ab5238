"""coherence, advise and bound: the numbers of the library's functions."""

from __future__ import annotations

import math
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locole.cli.advise import parse_size
from locole.embeddings import make_embedding
from locole.exceptions import LocoleError
from locole.theory import advise, coherence, coherence_lower_bound, excess_risk_bound, welch_bound


@pytest.mark.parametrize(
    ("name", "classes", "dim"),
    [("kerdock", 100, 16), ("rademacher", 300, 32), ("nelson", 100, 11), ("gold", 40, None)],
)
def test_coherence(run, name, classes, dim):
    options = [] if dim is None else ["--dim", dim]
    found = run("coherence", name, "--classes", classes, *options, "--json").json
    embedding = make_embedding(name, classes, dim=dim)
    field = "complex" if embedding.is_complex else "real"
    assert found == {
        "embedding": name,
        "classes": classes,
        "dim": embedding.dim,
        "outputs": embedding.real_dim,
        **asdict(coherence(embedding)),
        "welch_bound": welch_bound(classes, embedding.dim),
        "lower_bound": coherence_lower_bound(classes, embedding.dim, field=field),
    }
    shown = run("coherence", name, "--classes", classes, *options).out
    assert shown.startswith(f"{coherence(embedding)}\n")
    assert f"for any {field} vectors" in shown


def test_sampled_coherence_says_so(run):
    words = ["coherence", "gaussian", "-c", "500", "-d", "16", "--method", "sampled"]
    shown = run(*words, "--pairs", "1000", "--seed", "4")
    assert "a lower bound, from 1,000 random pairs" in shown.out
    done = run(*words[:-1], "magic")
    assert done.code == 2
    assert "unknown method" in done.err


def test_advise(run):
    found = run("advise", "--classes", "12046", "--coherence", "0.05", "--json").json
    expected = advise(12046, coherence=0.05)
    assert [row["embedding"] for row in found["candidates"]] == [c.embedding for c in expected]
    for row, candidate in zip(found["candidates"], expected, strict=True):
        for key, value in asdict(candidate).items():
            assert (
                row[key] == (None if math.isinf(value) else value) if key != "embedding" else True
            )
    words = ["--features", "1000", "--memory", "4MB", "--nonzeros", "99999", "--seconds", "1"]
    budget = {"n_features": 1000, "memory_bytes": 4e6, "nnz": 99_999, "time_s": 1.0, "passes": 2}
    shown = run("advise", "-c", "500", *words, "--passes", "2", "--margin", "0.9")
    assert shown.out == f"{advise(500, margin=0.9, **budget)}\n"


@pytest.mark.parametrize(
    ("words", "given"),
    [
        (["--coherence", "0.0625", "--massart", "0.6"], {"coherence": 0.0625, "massart": 0.6}),
        (["--coherence", "0.0625", "--constant", "paper"], {"coherence": 0.0625, "constant": "paper"}),
        (["--low", "-0.05", "--high", "0.04"], {"low": -0.05, "high": 0.04}),
        (["--coherence", "0.05", "--margins", "margins.txt"],
         {"coherence": 0.05, "margins": [0.1, 0.7, 0.9, 1.0]}),
    ],
)  # fmt: skip
def test_bound(run, folder, words, given):
    found = run("bound", "--excess", "0.01", *words, "--json").json
    expected = asdict(excess_risk_bound(0.01, **given))
    assert found == {k: None if v == math.inf else v for k, v in expected.items()}
    shown = run("bound", "--excess", "0.01", *words).out
    assert f"bound on the excess risk  {expected['value']:.4g}" in shown


def test_a_bound_that_says_nothing(run):
    assert "nothing: it is 1 or more" in run("bound", "--excess", "9", "--coherence", "0.5").out


@given(st.floats(0.001, 1e6), st.sampled_from(["", "B", "KB", "MB", "GB", "TB"]), st.booleans())
def test_sizes(number, unit, lower):
    text = f"{number!r} {unit}" if lower else f"{number!r}{unit.lower()}"
    factor = 1000 ** ["B", "KB", "MB", "GB", "TB"].index(unit or "B")
    assert parse_size(text) == pytest.approx(number * factor)


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "2XB", "nan", "inf", "1e999", "two", "2GBGB"])
def test_no_sizes(text):
    with pytest.raises(LocoleError, match="is no size"):
        parse_size(text)
