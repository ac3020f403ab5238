"""Forged checkpoints, whose hashes and owner are right: refused before a kernel sees their arrays."""

from __future__ import annotations

import numpy as np
import pytest
from forgery import Forgery, wrapped
from problems import words

from locole.embeddings import Kerdock
from locole.exceptions import ModelFileError
from locole.regressors import ElasticNetRegressor, MLPRegressor
from locole.targets import Targets

X, Y = words(n_samples=200)
TARGETS = Targets(Y, Kerdock(40, dim=64))


def network(folder):
    return MLPRegressor(hidden=24, epochs=2, batch_size=32, start="random", checkpoint=folder)


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint") / "kept"
    network(folder).fit(X, TARGETS)
    return Forgery.of(folder)


def far(array):
    out = array.copy()
    out[0] = 2**40
    return out


FORGED = {
    "places out of reach": ("layer.places", far),
    "places below none": ("layer.places", lambda a: a * 0 - 2),
    "places twice": ("layer.places", lambda a: a * 0),
    "places as floats": ("layer.places", lambda a: a.astype(np.float64)),
    "free places out of reach": ("layer.free", far),
    "free places twice": ("layer.free", lambda a: a * 0 + a[0]),
    "too many free places": ("layer.free", lambda a: np.concatenate([a, a])),
    "steps to come": ("layer.stands", far),
    "steps that wrap around": ("layer.stands", wrapped),
    "weights of another shape": ("layer.W", lambda a: a[:1]),
    "momenta of another shape": ("layer.M", lambda a: np.zeros((3, a.shape[1]), np.float32)),
    "moments of another type": ("layer.U", lambda a: a.astype(np.float64)),
    "a layer of another shape": ("arrays.bias0", lambda a: a[:1]),
    "moments of a layer": ("moments.bias0", lambda a: a[:, :1]),
    "kept weights": ("kept.first", lambda a: a[:1]),
}


def array_at(forged, place):
    """Name of the array at a place of the state."""
    node = forged.content["model"]["$part"]["values"]["state"]
    for name in place.split("."):
        node = node[name]
    return node, node["$array"]


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_checkpoint_is_refused(honest, tmp_path, name):
    place, change = FORGED[name]
    forged = honest.copy()
    node, array = array_at(forged, place)
    # Arrays of equal contents are kept once: this one is to be changed alone.
    forged.arrays["forged"] = change(forged.arrays[array])
    node["$array"] = "forged"
    if f'"{array}"' not in str(forged.content["model"]).replace("'", '"'):
        del forged.arrays[array]
    forged.write(tmp_path / "kept")
    with pytest.raises(ModelFileError, match="the checkpoint cannot be resumed: "):
        network(tmp_path / "kept").fit(X, TARGETS)


@pytest.mark.parametrize(
    ("place", "value"),
    [("loss", "x"), ("history", 5), ("stopped", 1), ("kept", {"loss": 1.0}), ("arrays", {})],
)
def test_forged_values_are_refused(honest, tmp_path, place, value):
    forged = honest.copy()
    forged.content["model"]["$part"]["values"]["state"][place] = value
    text = str(forged.content["model"])
    forged.arrays = {name: array for name, array in forged.arrays.items() if repr(name) in text}
    forged.write(tmp_path / "kept")
    with pytest.raises(ModelFileError, match="the checkpoint cannot be resumed: "):
        network(tmp_path / "kept").fit(X, TARGETS)


@pytest.mark.parametrize("l1", [0.0, 0.02])
@pytest.mark.parametrize("what", ["weights", "history"])
def test_forged_blocks_of_the_elastic_net_are_refused(tmp_path, l1, what):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((400, 300)), rng.standard_normal((400, 70))
    model = ElasticNetRegressor(l1=l1, l2=0.3, max_passes=2, checkpoint=tmp_path / "kept")
    model.fit(X, Y)
    forged = Forgery.of(tmp_path / "kept" / "block-0")
    state = forged.content["model"]["$part"]["values"]["state"]
    if what == "history":
        state["history"] = [{"gap": "x"}]
    elif l1:
        state["weights"]["$csr"]["shape"][1] += 1
    else:
        forged.arrays = {name: array[:1] for name, array in forged.arrays.items()}
    forged.write(tmp_path / "kept" / "block-0")
    with pytest.raises(ModelFileError, match="the checkpoint cannot be resumed: "):
        model.fit(X, Y)
