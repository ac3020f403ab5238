"""Bad input to `decode`: one clear sentence that says what to do."""

from __future__ import annotations

import numpy as np
import pytest

from locole.decoders import choose_decoder, decode
from locole.embeddings import Kerdock, Nelson, Rademacher, ReedSolomonSimplex
from locole.exceptions import LocoleError

KERDOCK = Kerdock(20, dim=16)
Z = np.ones((3, 16), dtype=np.float32)


@pytest.mark.parametrize(
    ("k", "part"),
    [
        (21, "k=21 is more than the 20 labels there are: take a smaller k"),
        (0, "whole number of at least 1, not 0"),
        (-1, "whole number of at least 1, not -1"),
        (True, "whole number of at least 1, not True"),
        (1.5, "whole number of at least 1, not 1.5"),
        (None, "whole number of at least 1, not None"),
        ("5", "whole number of at least 1, not '5'"),
    ],
)
def test_bad_k(k, part):
    with pytest.raises(LocoleError, match=part):
        decode(KERDOCK, Z, k=k)


def test_k_of_numpys_kind_is_fine():
    assert decode(KERDOCK, Z, k=np.int32(20))[0].shape == (3, 20)


@pytest.mark.parametrize(
    ("points", "part"),
    [
        (Z[:, :15], r"shape \(rows, real_dim\) = \(rows, 16\), not \(3, 15\)"),
        (Z[0], r"shape .* not \(16,\)"),
        (Z[None], r"shape .* not \(1, 3, 16\)"),
        (Z * np.nan, "NaN or infinity: look at the regressor"),
        (np.where(np.eye(3, 16), np.inf, Z), "NaN or infinity"),
        (np.where(np.eye(3, 16), -np.inf, Z), "NaN or infinity"),
        (Z * 1j, r"must be real: give complex points as \[real parts, imaginary parts\]"),
        (np.full((3, 16), "a"), "must be real"),
        (Z > 0, "must be real"),
    ],
)
def test_bad_points(points, part):
    with pytest.raises(LocoleError, match=part):
        decode(KERDOCK, points)


def test_complex_codes_want_the_real_view():
    with pytest.raises(LocoleError, match=r"\(rows, 10\), not \(2, 5\)"):
        decode(Nelson(9, dim=5), np.ones((2, 5)))


def test_unknown_decoders_are_answered_with_the_known_ones():
    with pytest.raises(LocoleError, match=r"unknown decoder 'fast': take one of .*fwht.*auto"):
        decode(KERDOCK, Z, decoder="fast")


@pytest.mark.parametrize(
    ("embedding", "decoder"),
    [
        (KERDOCK, "fft"),
        (KERDOCK, "gather"),
        (KERDOCK, "argmax"),
        (Nelson(9, dim=5), "fwht"),
        (ReedSolomonSimplex(9, dim=8), "argmax"),
        (Rademacher(9, dim=8), "fwht"),
    ],
)
def test_a_decoder_that_does_not_fit_names_one_that_does(embedding, decoder):
    name = type(embedding).__name__
    part = f"decoder '{decoder}' cannot decode {name}: take 'auto' or 'dense'"
    with pytest.raises(LocoleError, match=part):
        choose_decoder(embedding, decoder)


def test_errors_are_value_errors():
    with pytest.raises(ValueError, match="take a smaller k"):
        decode(KERDOCK, Z, k=100)


@pytest.mark.parametrize("n_jobs", [0])
def test_no_threads(n_jobs):
    with pytest.raises(LocoleError, match="n_jobs must not be 0"):
        decode(KERDOCK, Z, n_jobs=n_jobs)
