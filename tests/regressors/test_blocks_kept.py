"""Blocks of outputs that an interrupted elastic net has solved are not solved again."""

import numpy as np
import pytest
import scipy.sparse as sp

import locole.regressors.dual as dual
from locole import LocoleClassifier, load
from locole.exceptions import LocoleError
from locole.regressors import ElasticNetRegressor

SOLVE = dual.solve_outputs


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 400), density=0.05, rng=rng, format="csr").astype(np.float32)
    return X, rng.standard_normal((300, 64 * 3 + 5))


@pytest.fixture
def solved(monkeypatch):
    """Blocks that were solved; after two of them comes Ctrl-C while ``stops`` is in the list."""
    blocks = []

    def solve(work, outputs):
        if "stops" in blocks and len(blocks) == 3:
            raise KeyboardInterrupt
        blocks.append(outputs)
        return SOLVE(work, outputs)

    monkeypatch.setattr(dual, "solve_outputs", solve)
    return blocks


def model(folder, l1=0.0, **settings):
    return ElasticNetRegressor(l1=l1, l2=0.3, max_passes=4, tol=0, checkpoint=folder, **settings)


@pytest.mark.parametrize("l1", [0.0, 0.02])
def test_the_rest_is_solved_and_the_bits_are_the_same(data, solved, tmp_path, l1):
    whole = model(None, l1).fit(*data)
    solved[:] = ["stops"]
    with pytest.raises(KeyboardInterrupt):
        model(tmp_path / "kept", l1).fit(*data)
    solved[:] = []
    again = model(tmp_path / "kept", l1, n_jobs=2).fit(*data)
    assert len(solved) == 2
    dense = [m.coef_.T.toarray() if l1 else m.coef_.T for m in (whole, again)]
    assert np.array_equal(*dense)
    assert [h["gap"] for h in again.history_] == [h["gap"] for h in whole.history_]
    # And nothing at all the third time.
    solved[:] = []
    assert np.array_equal(
        model(tmp_path / "kept", l1).fit(*data).predict(data[0]), again.predict(data[0])
    )
    assert solved == []


def test_blocks_of_other_data_or_settings_are_refused(data, tmp_path):
    X, Y = data
    model(tmp_path).fit(X, Y)
    with pytest.raises(LocoleError, match="belongs to other data or settings"):
        model(tmp_path).fit(X, 2 * Y)
    with pytest.raises(LocoleError, match="belongs to other data or settings"):
        model(tmp_path, l1=0.1).fit(X, Y)
    with pytest.raises(LocoleError, match="belongs to other data or settings"):
        model(tmp_path).fit(2 * X, Y)


def test_a_checkpoint_is_a_folder_and_not_part_of_a_model(tmp_path):
    with pytest.raises(LocoleError, match="checkpoint must be None, a str or a PathLike, not 3"):
        model(3).fit(np.eye(3), np.eye(3))
    X, y = np.eye(80), np.arange(80)
    regressor = model(tmp_path / "kept")
    LocoleClassifier("rademacher", dim=70, regressor=regressor).fit(X, y).save(tmp_path / "model")
    assert load(tmp_path / "model").regressor.checkpoint is None
