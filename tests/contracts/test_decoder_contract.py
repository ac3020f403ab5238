"""What every exact decoder promises: the answer of brute force, ties included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from instances import EMBEDDINGS, GENERATED, name_of
from reference import exact_scores, integer_decode, reference_decode, tie_is_arguable, vectors

from locole.decoders import DECODERS, choose_decoder, decode
from locole.decoders.base import Best
from locole.embeddings import Embedding, Gaussian, Kerdock, Nelson, ReedSolomonSimplex
from locole.theory.bounds import lossless_margin

each = pytest.mark.parametrize("embedding", EMBEDDINGS, ids=name_of)
SCALES = [1.0, -1.0, 1e-3, 1e30, 1e-30, 1e-300]


def decoders_of(embedding: Embedding) -> list[str]:
    """Exact decoders that can decode it, by name."""
    kinds = [kind for kind in DECODERS.values() if kind.exhaustive]
    return [kind.name for kind in kinds if kind.structure in (None, embedding.structure)]


# --- points that try to break a decoder ---


@st.composite
def points(draw, embedding: Embedding, *, max_rows: int = 12):
    """Rows full of ties, and of every size: shape (rows, real_dim), float32 or float64."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=max_rows))
    rows = [KINDS[kind](embedding, rng) * draw(st.sampled_from(SCALES)) for kind in kinds]
    if draw(st.booleans()):
        rows.append(rows[0])
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    return np.array(rows).astype(dtype)


def label_sum(embedding: Embedding, rng: np.random.Generator) -> np.ndarray:
    """Sum of one to three label vectors, with signs: equally near to several labels."""
    codes = rng.integers(0, embedding.n_classes, rng.integers(1, 4))
    signs = rng.choice([-1.0, 1.0, 1.0], codes.size)
    return signs @ embedding.real_rows(codes, np.float64)


def spike(embedding: Embedding, rng: np.random.Generator) -> np.ndarray:
    return np.eye(embedding.real_dim)[rng.integers(embedding.real_dim)]


KINDS = {
    "zero": lambda e, rng: np.zeros(e.real_dim),
    "constant": lambda e, rng: np.full(e.real_dim, rng.standard_normal()),
    "whole numbers": lambda e, rng: rng.integers(-3, 4, e.real_dim).astype(float),
    "signs": lambda e, rng: rng.choice([-1.0, 1.0], e.real_dim),
    "spike": spike,
    "labels": label_sum,
    "label and noise": lambda e, rng: label_sum(e, rng) + rng.standard_normal(e.real_dim) / 9,
    "label and hair": lambda e, rng: label_sum(e, rng) + rng.standard_normal(e.real_dim) * 1e-8,
    "noise": lambda e, rng: rng.standard_normal(e.real_dim),
    "all sizes": lambda e, rng: (
        rng.choice([-1, 1], e.real_dim) * 10.0 ** rng.integers(-9, 9, e.real_dim)
    ),
}


def check_answer(embedding: Embedding, Z: np.ndarray, k: int, decoder: str) -> None:
    expected_codes, expected_scores = reference_decode(embedding, Z)
    codes, scores = decode(embedding, Z, k=k, decoder=decoder)
    assert codes.shape == scores.shape == (len(Z), k)
    assert codes.dtype == np.int64
    assert scores.dtype == Z.dtype
    np.testing.assert_array_equal(codes, expected_codes[:, :k], err_msg=decoder)
    norms = np.sqrt((Z.astype(np.longdouble) ** 2).sum(axis=1, keepdims=True))
    error = np.abs(scores - expected_scores[:, :k])
    smallest = np.finfo(Z.dtype).smallest_subnormal
    allowed = (1e-6 if Z.dtype == np.float32 else 1e-11) * norms + smallest
    assert (error <= allowed).all()
    falls = np.diff(scores, axis=1)
    assert (falls <= 0).all()
    assert (falls[np.diff(expected_scores[:, :k], axis=1) == 0] == 0).all()  # ties score the same


@each
@settings(max_examples=12)
@given(data=st.data())
def test_decoding_is_brute_force(embedding, data):
    Z = data.draw(points(embedding))
    assume(not tie_is_arguable(embedding, Z))
    for decoder in decoders_of(embedding):
        for k in sorted({1, min(5, embedding.n_classes), embedding.n_classes}):
            check_answer(embedding, Z, k, decoder)


@each
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_of_point(embedding, kind):
    rng = np.random.default_rng(len(kind))
    Z = np.array([KINDS[kind](embedding, rng) for _ in range(3)])
    for decoder in decoders_of(embedding):
        check_answer(embedding, Z.astype(np.float32), 1, decoder)
        check_answer(embedding, Z, min(3, embedding.n_classes), decoder)


@each
def test_labels_decode_to_themselves_or_to_an_equal_label(embedding):
    rows = embedding.real_rows(np.arange(embedding.n_classes))
    _, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    for decoder in decoders_of(embedding):
        codes, scores = decode(embedding, rows, decoder=decoder)
        np.testing.assert_array_equal(codes[:, 0], first[which.ravel()])
        np.testing.assert_allclose(scores[:, 0], 1, rtol=1e-6)


# --- exact arithmetic: sign vectors and whole numbers ---

SIGNED = [e for e in GENERATED if e.structure == "wht" or e.name in ("rademacher", "one_hot")]


@pytest.mark.parametrize("embedding", SIGNED, ids=name_of)
@settings(max_examples=10)
@given(data=st.data())
def test_whole_numbers_are_decoded_without_any_tolerance(embedding, data):
    seed = data.draw(st.integers(0, 2**32 - 1))
    largest = data.draw(st.sampled_from([1, 2, 5, 1000]))
    Z = np.random.default_rng(seed).integers(-largest, largest + 1, (20, embedding.real_dim))
    signs = np.sign(embedding.real_rows(np.arange(embedding.n_classes)))
    expected = integer_decode(signs, Z)
    k = min(4, embedding.n_classes)
    for decoder in decoders_of(embedding):
        for dtype in (np.float32, np.float64, np.int16):
            codes, _ = decode(embedding, Z.astype(dtype), k=k, decoder=decoder)
            np.testing.assert_array_equal(codes, expected[:, :k])


# --- rows, threads ---


@pytest.mark.parametrize(
    "embedding",
    [Kerdock(301, dim=64), Nelson(301, dim=29), ReedSolomonSimplex(301, dim=80), Gaussian(301, 24)],
    ids=repr,
)
def test_threads_and_splits_change_nothing(embedding):
    rng = np.random.default_rng(0)
    Z = np.array([KINDS["label and noise"](embedding, rng) for _ in range(1100)])
    Z[::7] = 0
    Z[1::7] = np.round(Z[1::7] * 4)
    for decoder in decoders_of(embedding):
        codes, scores = decode(embedding, Z, k=3, decoder=decoder)
        for n_jobs in (2, 4, -1):
            again = decode(embedding, Z, k=3, decoder=decoder, n_jobs=n_jobs)
            np.testing.assert_array_equal(again[0], codes)
            np.testing.assert_array_equal(again[1], scores)
        for size in (1, 17, 300):
            for start in range(0, min(len(Z), 4 * size), size):
                part = slice(start, start + size)
                some = decode(embedding, Z[part], k=3, decoder=decoder)
                np.testing.assert_array_equal(some[0], codes[part])
                np.testing.assert_allclose(some[1], scores[part], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    "embedding",
    [Kerdock(53, dim=16), Nelson(25, dim=5), ReedSolomonSimplex(27, dim=8), Gaussian(40, dim=7)],
    ids=repr,
)
def test_no_rows_and_strange_layouts(embedding):
    k = min(2, embedding.n_classes)
    empty = decode(embedding, np.empty((0, embedding.real_dim), np.float32), k=k)
    assert empty[0].shape == empty[1].shape == (0, k)
    Z = np.random.default_rng(0).standard_normal((6, embedding.real_dim)).astype(np.float32)
    kept = Z.copy()
    expected = decode(embedding, Z, k=k)[0]
    Z.flags.writeable = False
    strided = np.repeat(np.repeat(Z, 2, axis=0), 2, axis=1)[::2, ::2]
    for same in (Z, np.asfortranarray(Z), strided, Z.astype(">f4"), Z.tolist()):
        np.testing.assert_array_equal(decode(embedding, same, k=k)[0], expected)
    np.testing.assert_array_equal(Z, kept)


# --- the parts of a decoder ---


@each
@settings(max_examples=8)
@given(data=st.data())
def test_scans_keep_within_their_stated_error(embedding, data):
    Z = data.draw(points(embedding)).astype(np.float64)
    largest = np.abs(Z).max(axis=1, keepdims=True)
    Z = (Z / np.where(largest > 0, largest, 1)).astype(np.float32)
    exact = exact_scores(embedding, Z)
    norms = np.linalg.norm(Z, axis=1, keepdims=True)
    for name in decoders_of(embedding):
        decoder = choose_decoder(embedding, name)
        best = Best.empty(len(Z), min(embedding.n_classes, 50))
        decoder.scan(embedding, Z, best)
        assert (best.codes >= 0).all()
        error = np.abs(best.scores - np.take_along_axis(exact, best.codes, axis=1))
        assert (error <= decoder.scan_error(embedding) * norms).all()
        double = decoder.scores(embedding, Z.astype(np.float64))
        assert double.shape == exact.shape
        assert (np.abs(double - exact) <= 1e-13 * norms).all()


@each
def test_auto_takes_the_fast_decoder_of_the_structure(embedding):
    chosen = choose_decoder(embedding)
    assert chosen.exhaustive
    assert chosen.structure == embedding.structure
    assert choose_decoder(embedding, chosen) is chosen
    assert choose_decoder(embedding, chosen.name).name == chosen.name


# --- the theorem: a margin above (b−a)/(1−a) survives the embedding ---


@each
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), spread=st.sampled_from([0.03, 0.3, 3.0]))
def test_margins_above_the_threshold_decode_without_loss(embedding, seed, spread):
    rows = vectors(embedding)
    re = (rows @ rows.conj().T).real[~np.eye(len(rows), dtype=bool)]
    if re.size == 0 or re.max() > 0.99:  # one label, or equal vectors: no margin is enough
        return
    rng = np.random.default_rng(seed)
    needed = lossless_margin(low=re.min(), high=re.max()) + 1e-6
    eta = rng.dirichlet(np.full(embedding.n_classes, spread))
    winner = int(rng.integers(embedding.n_classes))
    behind = np.delete(eta, winner).max() - eta[winner]
    # Move just enough mass to the winner: (1−t)(−behind) + t = needed.
    t = (needed + behind) / (1 + behind) if needed + behind > 0 else 0.0
    eta *= 1 - t
    eta[winner] += t
    assert eta[winner] - np.delete(eta, winner).max() > needed - 1e-9
    point = eta @ embedding.real_rows(np.arange(embedding.n_classes), np.float64)
    assert decode(embedding, point[None])[0][0, 0] == winner
