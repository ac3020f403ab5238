"""Small classification problems on which classifiers are tried."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def prototypes(
    n_classes: int = 30, *, n_samples: int = 300, n_features: int = 64, noise: float = 0.3
) -> tuple[np.ndarray, np.ndarray]:
    """Noisy copies of a random sign vector for each class: easy for a linear regressor."""
    rng = np.random.default_rng(0)
    centres = rng.choice([-1.0, 1.0], (n_classes, n_features))
    y = np.arange(n_samples) % n_classes
    return centres[y] + noise * rng.standard_normal((n_samples, n_features)), y


def words(
    n_classes: int = 40, *, n_samples: int = 400, n_features: int = 300
) -> tuple[sp.csr_array, np.ndarray]:
    """Sparse counts: every class has five words of its own among common ones."""
    rng = np.random.default_rng(1)
    own = rng.integers(0, n_features, (n_classes, 5))
    y = rng.integers(0, n_classes, n_samples)
    y[:n_classes] = np.arange(n_classes)
    picked = np.take_along_axis(own[y], rng.integers(0, 5, (n_samples, 4)), axis=1)
    common = rng.integers(0, n_features, (n_samples, 3))
    columns = np.hstack([picked, common])
    rows = np.repeat(np.arange(n_samples), columns.shape[1])
    counts = np.ones(columns.size)
    return sp.csr_array((counts, (rows, columns.ravel())), shape=(n_samples, n_features)), y


def texts() -> tuple[list[str], list[str]]:
    """Animals from short descriptions."""
    facts = {
        "cat": ["purrs and has whiskers", "whiskers and soft fur, purrs at night"],
        "dog": ["barks and wags its tail", "loyal, barks at strangers, wags"],
        "fish": ["swims with fins and gills", "gills, scales, lives in water, swims"],
        "bird": ["flies, sings and has feathers", "feathers, a beak, sings at dawn"],
    }
    pairs = [(text, animal) for animal, lines in facts.items() for text in lines]
    return [text for text, _ in pairs], [animal for _, animal in pairs]
