"""inspect: what it says is what the model is."""

from __future__ import annotations

import locole


def test_json_of_a_model_of_texts(run, folder):
    found = run("inspect", "texts", "--json", "--verify").json
    model = locole.load("texts")
    assert found["kind"] == "TextClassifier"
    assert found["made_by"] == {"locole": locole.__version__}
    assert found["labels"] == 10
    assert found["first_labels"] == model.classes_[:5].tolist()
    assert found["features"] == model.features_.n_columns_
    assert found["outputs"] == 10
    assert found["embedding"] == "OneHot(n_classes=10, dim=10)"
    assert found["bytes"] == sum(path.stat().st_size for path in (folder / "texts").iterdir())
    assert found["regressor"]["class"] == "ElasticNetRegressor"
    assert found["regressor"]["l2_"] == model.classifier_.regressor_.l2_
    assert found["texts"]["analyzer_"] == "both"
    weights = found["arrays"]["model.classifier_.regressor_._weights"]
    assert weights["shape"][0] == found["features"]
    assert weights["bytes"] == 4 * weights["shape"][0] * weights["shape"][1]


def test_people_see_parts_and_arrays(run, folder):
    shown = run("inspect", "numbers").out
    assert "made by          locole" in shown
    assert "libsvm_first_index 1" in shown
    assert "\nregressor: ElasticNetRegressor\n" in shown
    assert "model.regressor_._weights" in shown
    assert "texts:" not in shown


def test_parts_of_a_blend(run, folder):
    rows = (folder / "train.tsv").read_text() * 4
    (folder / "more.tsv").write_text(rows)
    assert run("fit", "more.tsv", "-o", "blend").code == 0
    found = run("inspect", "blend", "--json").json
    assert found["regressor"]["class"] == "BlendRegressor"
    assert found["regressor"]["parts[0]"]["class"] == "SoftmaxRegressor"
    assert "held out" in found["choice"]
    assert "\nregressor.parts[0]: SoftmaxRegressor\n" in run("inspect", "blend").out


def test_a_damaged_model_is_bad_input(run, folder):
    (arrays,) = (folder / "texts").glob("*.safetensors")
    content = bytearray(arrays.read_bytes())
    content[-1] ^= 1
    arrays.write_bytes(content)
    done = run("inspect", "texts")
    assert done.code == 2
    assert "has changed" in done.err
