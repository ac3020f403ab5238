"""Products of sparse rows with dense and sparse weights, against scipy."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from locole.kernels.csr import Csr
from locole.kernels.product import NO_SCALES, add_dense_product, add_sparse_product
from locole.regressors.storage import pack, unpack, widened


def rows(n_rows=23, n_features=40, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n_rows, n_features), density=0.2, rng=rng, format="csr")
    return X.astype(np.float32), rng


@pytest.mark.parametrize("width", [16, 48, 64, 112, 256])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_dense(width, index_type):
    X, rng = rows()
    W = rng.normal(size=(40, width)).astype(np.float32)
    out = rng.normal(size=(23, width)).astype(np.float32)
    expected = out + X @ W
    indptr, indices = X.indptr.astype(index_type), X.indices.astype(index_type)
    which = np.arange(len(out))
    add_dense_product(
        Csr(indptr, indices, X.data), which, W.ravel(), NO_SCALES, width, 0, width, out.ravel()
    )
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


def test_dense_from_a_later_row_on():
    X, rng = rows()
    W = rng.normal(size=(40, 32)).astype(np.float32)
    out = np.zeros((5, 32), dtype=np.float32)
    which = np.arange(9, 9 + len(out))
    add_dense_product(Csr.of(X), which, W.ravel(), NO_SCALES, 32, 0, 32, out.ravel())
    np.testing.assert_allclose(out, X[9:14] @ W, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n_rows", [1, 128, 300])
@pytest.mark.parametrize("cuts", [(0, 336), (0, 128, 336), (16, 48), (0, 144, 288, 336)])
def test_some_outputs_of_many_rows(n_rows, cuts):
    X, rng = rows(n_rows)
    W = rng.normal(size=(40, 336)).astype(np.float32)
    before = rng.normal(size=(n_rows, 336)).astype(np.float32)
    which = rng.permutation(n_rows)
    whole, out = before.copy(), before.copy()
    inputs = Csr.of(X), which, W.ravel(), NO_SCALES, 336
    add_dense_product(*inputs, 0, 336, whole.ravel())
    np.testing.assert_allclose(whole, before + X[which] @ W, rtol=1e-5, atol=1e-5)
    for first, last in pairwise(cuts):
        add_dense_product(*inputs, first, last, out.ravel())
    touched = slice(cuts[0], cuts[-1])
    assert out[:, touched].tobytes() == whole[:, touched].tobytes()
    before[:, touched] = out[:, touched]
    assert out.tobytes() == before.tobytes()


def test_sparse():
    X, rng = rows()
    W = sp.random_array((40, 21), density=0.3, rng=rng, format="csr").astype(np.float32)
    out = np.zeros((23, 21), dtype=np.float32)
    add_sparse_product(Csr.of(X), Csr.of(W), out)
    np.testing.assert_allclose(out, (X @ W).toarray(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("storage", ["float32", "float16", "int8", "int4"])
@pytest.mark.parametrize("width", [16, 80])
def test_stored_in_fewer_bits(storage, width):
    X, rng = rows()
    W = rng.normal(size=(40, width)).astype(np.float32)
    W[3] = 0
    stored = pack(W, storage)
    out = np.zeros((23, width), dtype=np.float32)
    numbers = stored.numbers.ravel()
    which = np.arange(len(out))
    add_dense_product(Csr.of(X), which, numbers, stored.scales, width, 0, width, out.ravel())
    np.testing.assert_allclose(out, X @ unpack(stored), rtol=1e-5, atol=1e-5)
    most = np.abs(W).max()
    error = {"float32": 0, "float16": 2**-11 * most, "int8": most / 250, "int4": most / 13.9}
    assert np.abs(unpack(stored) - W).max() <= error[storage]
    size = {"float32": 4, "float16": 2, "int8": 1, "int4": 0.5}
    assert stored.numbers.nbytes == size[storage] * W.size
    assert stored.width == width
    if storage == "int4":
        np.testing.assert_array_equal(unpack(widened(stored)), unpack(stored))
