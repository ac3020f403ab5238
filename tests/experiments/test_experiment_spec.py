"""Specs: what is accepted, what is said of the rest, and those that are shipped."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locole.embeddings import FAMILIES, make_embedding
from locole.exceptions import LocoleError
from locole.experiments import load_spec, shipped_specs
from locole.experiments.plan import all_runs
from locole.experiments.spec import parse_spec

NAMES = {"table2", "table3", "figure1", "figure3", "tsne", "dimension", "equal_outputs"}
SETS = ["lshtc1", "dmoz", "odp", "cve_product", "city_names", "clinc150", "topics"]
LABELS = {
    "lshtc1": 12046, "dmoz": 11879, "odp": 103361, "cve_product": 10106, "city_names": 11011,
    "clinc150": 150, "topics": 2000, "": 2048,
}  # fmt: skip
ENTRY = {"method": "elastic_net", "embeddings": {"rademacher": [32]}}
MINIMAL = {"name": "mine", "methods": [ENTRY]}


def test_the_experiments_of_the_paper_are_there():
    assert set(shipped_specs()) == NAMES
    for name, spec in shipped_specs().items():
        assert spec.name == name
        assert spec.title


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_shipped_run_has_vectors_enough(name):
    """No run fails because its family lacks the dim, or room for the labels."""
    spec = load_spec(name)
    for run in all_runs(spec, SETS):
        if run.dim is not None:
            made = make_embedding(run.embedding, LABELS[run.data], dim=run.dim)
            assert made.dim == run.dim


@pytest.mark.parametrize("name", sorted(NAMES))
def test_quick_is_small(name):
    spec = load_spec(name).quickened()
    runs = all_runs(spec, ["city_names"], quick=True)
    assert 0 < len(runs) <= 30
    assert all(run.quick and run.seed == 0 and run.time_limit_s <= 300 for run in runs)
    if spec.kind != "tsne":
        assert all(run.options["max_rows"] <= 10_000 for run in runs)


def test_the_four_families_of_the_paper_at_its_dims():
    runs = all_runs(load_spec("table2"), ["lshtc1"])
    dims = {family: set() for family in ("gaussian", "complex_gaussian", "rademacher", "nelson")}
    for run in runs:
        if run.method == "mlp":
            dims[run.embedding].add(run.dim)
    assert dims.pop("nelson") == {113, 127, 251, 509}
    assert all(found == {32, 64, 128, 256, 512} for found in dims.values())
    assert {run.seed for run in runs if run.method == "mlp"} == {0, 1, 2, 3, 4}


def test_equal_outputs_are_equal():
    runs = [r for r in all_runs(load_spec("equal_outputs"), ["cve_product"]) if r.seed == 0]
    outputs = [r.dim * (2 if FAMILIES[r.embedding].is_complex else 1) for r in runs]
    for wanted in (256, 512, 1024):
        assert sum(abs(found / wanted - 1) < 0.04 for found in outputs) >= 5
    assert all(any(abs(found / w - 1) < 0.04 for w in (256, 512, 1024)) for found in outputs)


@pytest.mark.parametrize("pair", [("table2", "figure1"), ("table2", "figure3")])
def test_figures_share_the_runs_of_the_table(pair):
    """They are then copied, not run again."""
    first, second = (
        {run.key[1:] for run in all_runs(load_spec(name), ["cve_product"])} for name in pair
    )
    assert len(first & second) >= 5 * 9


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sedes": [1]}, "no key 'sedes'.*did you mean 'seeds'"),
        ({"xyzzy": 1}, r"no key 'xyzzy'\.$"),
        ({"seeds": 3}, "seeds in the spec must be a list of whole numbers"),
        ({"seeds": []}, "seeds in the spec must be"),
        ({"seeds": [True]}, "seeds in the spec must be"),
        ({"seeds": [-1]}, "seeds in the spec must be"),
        ({"time_limit_s": 0}, "a number above 0"),
        ({"time_limit_s": "long"}, "a number above 0"),
        ({"data": "cve_product"}, "a list of names"),
        ({"kind": "gird"}, "unknown kind 'gird'.*did you mean 'grid'"),
        ({"name": "../up"}, "must be a word"),
        ({"methods": []}, "nothing to run"),
        ({"methods": {"method": "mlp"}}, "a list of tables"),
        ({"methods": ["mlp"]}, r"\[\[methods\]\] must be a table"),
        ({"methods": [{}]}, "names no method"),
        ({"methods": [{"method": "parabell"}]}, "did you mean 'parabel'"),
        ({"methods": [{"method": "mlp"}]}, "needs embeddings"),
        ({"methods": [{**ENTRY, "engine": "rey"}]}, "did you mean 'ray'"),
        ({"methods": [{**ENTRY, "embeddings": {"nelsen": [7]}}]}, "did you mean 'nelson'"),
        ({"methods": [{**ENTRY, "embeddings": {"nelson": []}}]}, "lists of dims"),
        ({"methods": [{**ENTRY, "embeddings": {"nelson": [0]}}]}, "lists of dims"),
        ({"methods": [{"method": "mach", "embeddings": {"gold": [8]}}]}, "has no embeddings"),
        ({"methods": [{**ENTRY, "dims": [1]}]}, "no key 'dims'"),
        ({"kind": "dimension", "methods": [{"method": "mach"}]}, "no dim that could grow"),
        ({"kind": "tsne"}, "unknown method 'elastic_net'"),
        ({"quick": 1}, "quick must be a table"),
        ({"quick": {"rows": 1}}, r"\[quick\] has no key 'rows'.*did you mean 'max_rows'"),
        ({"data_options": {"topics": 3}}, "a table of tables"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(change, words):
    with pytest.raises(LocoleError, match=words):
        parse_spec({**MINIMAL, **change})


@given(
    st.dictionaries(
        st.sampled_from(["name", "seeds", "data", "kind", "methods", "quick", "max_rows", "sedes"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["method", "embeddings", "seeds", "x"]), inner)
            ),
            max_leaves=6,
        ),
    )
)
def test_whatever_a_file_says_the_answer_is_a_spec_or_a_sentence(content):
    with suppress(LocoleError):
        assert all_runs(parse_spec({**MINIMAL, **content}), ["topics"])


def test_files(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('seeds = [0, 1]\n[[methods]]\nmethod = "mach"\n')
    assert load_spec(str(path)).name == "mine"
    path.write_text("seeds = [0,\n")
    with pytest.raises(LocoleError, match=r"mine\.toml is no TOML file"):
        load_spec(str(path))
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(LocoleError, match="is no TOML file"):
        load_spec(str(path))
    path.write_text("sedes = [0]\n")
    with pytest.raises(LocoleError, match=r"mine\.toml: the spec has no key 'sedes'"):
        load_spec(str(path))
    with pytest.raises(LocoleError, match="no such file"):
        load_spec(str(tmp_path / "absent.toml"))
    with pytest.raises(LocoleError, match="did you mean 'table2'"):
        load_spec("tabel2")
    with pytest.raises(LocoleError, match="there is no experiment"):
        load_spec("../table2")
