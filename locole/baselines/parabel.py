"""Parabel and Bonsai: trees of labels with linear classifiers, read by beam search."""

from __future__ import annotations

from typing import ClassVar

from locole.baselines.forest import Engine, LabelTrees
from locole.baselines.label_tree import Shape
from locole.io import saved_as
from locole.parameters import COUNT, at_least

__all__ = ["Bonsai", "Parabel"]

# Halving a million labels takes 20 levels: no tree comes here.
_MAX_DEPTH = 64


@saved_as("baseline.parabel")
class Parabel(LabelTrees):
    r"""Follow balanced binary trees of labels down to leaves, and score the labels there.

    Each tree splits the labels by balanced spherical 2-means of their mean rows until no more than
    ``max_leaf`` are together. Every child of a node, and every label of a leaf, has a linear classifier
    that is learnt from the rows of the node, here all children of a node at once:

    .. math:: \min_w \tfrac12\|w\|^2 + C \sum_i \max(0, 1 - s_i \langle w, x_i\rangle)^2

    with :math:`s_i = 1` for rows of the child and −1 for the others; small weights are cleared. A
    child has :math:`\log p = -\max(0, 1 - \langle w, x\rangle)^2`, and a label's score is the product of
    p along its path, averaged over trees. Only the ``beam`` likeliest nodes of a level are followed.

    From Y. Prabhu, A. Kag, S. Harsola, R. Agrawal and M. Varma, "Parabel: Partitioned Label Trees for
    Extreme Classification with Application to Dynamic Search Advertising" (WWW 2018), for rows with
    one label each. Rows are scaled to unit length and get a constant feature.

    Training costs O(nonzeros · (log₂(n_classes / max_leaf) + max_leaf)) for each tree and pass, a
    prediction O(nonzeros of the row · beam · log n_classes), and memory is that of the weights that are
    kept. Prefer it where labels are very many and answers must come in logarithmic time.

    Parameters
    ----------
    n_trees : int
        Trees, which differ by the starts of 2-means.
    max_leaf : int
        Labels that need no further split.
    beam : int
        Nodes followed in each level.
    C : float
        Weight of the losses.
    min_weight : float
        Weights smaller than this become zero.
    epochs : int
        Passes over the rows of a node at most.
    tol : float
        Passes end when no gradient exceeds this.
    engine : {"locole", "omikuji"}
        Whose trees: our own, or those of the package omikuji (``pip install 'locole[baselines]'``),
        which uses random numbers of its own, shows its progress always, answers row by row, and
        whose models cannot be saved or copied.
    random_state : int
        Seed.
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    verbose : int
        1 shows progress.

    Attributes
    ----------
    n_nodes_ : int
        Nodes of all trees.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> Parabel(max_leaf=3).fit(X[:1500], y[:1500]).score(X[1500:], y[1500:]) > 0.8
    True
    """

    _learnt: ClassVar = LabelTrees._learnt

    def __init__(
        self,
        *,
        n_trees: int = 3,
        max_leaf: int = 100,
        beam: int = 10,
        C: float = 1.0,
        min_weight: float = 0.1,
        epochs: int = 20,
        tol: float = 0.1,
        engine: Engine = "locole",
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_trees = n_trees
        self.max_leaf = max_leaf
        self.beam = beam
        self.C = C
        self.min_weight = min_weight
        self.epochs = epochs
        self.tol = tol
        self.engine = engine
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _shape(self) -> Shape:
        return Shape(2, int(self.max_leaf), _MAX_DEPTH, balanced=True)


@saved_as("baseline.bonsai")
class Bonsai(LabelTrees):
    """Parabel with shallow, wide trees: many children, of whatever size k-means makes them.

    Errors of a level cannot be mended further down, so fewer levels lose less; the price is more
    classifiers for each row. For the classifiers and the search see `Parabel`.

    From S. Khandagale, H. Xiao and R. Babbar, "Bonsai: diverse and shallow trees for extreme multi-label
    classification" (Machine Learning, 2020), for rows with one label each.

    Training costs O(nonzeros · (n_children + largest leaf)) for each tree, pass and level, and k-means
    keeps n_features · n_children numbers. Prefer it to `Parabel` where accuracy counts more than time.

    Parameters
    ----------
    n_trees : int
        Trees, which differ by the starts of k-means.
    n_children : int
        Parts into which a node is split.
    max_leaf : int
        Labels that need no further split.
    max_depth : int
        Levels of nodes; nodes of the last are leaves, whatever their size.
    beam, C, min_weight, epochs, tol, engine, random_state, n_jobs, verbose
        As for `Parabel`.

    Attributes
    ----------
    n_nodes_ : int
        Nodes of all trees.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> Bonsai(n_children=4, max_leaf=3).fit(X[:1500], y[:1500]).score(X[1500:], y[1500:]) > 0.8
    True
    """

    _parameter_constraints: ClassVar = {
        **LabelTrees._parameter_constraints,
        "n_children": at_least(2),
        "max_depth": COUNT,
    }
    _learnt: ClassVar = LabelTrees._learnt

    def __init__(
        self,
        *,
        n_trees: int = 3,
        n_children: int = 100,
        max_leaf: int = 100,
        max_depth: int = 3,
        beam: int = 10,
        C: float = 1.0,
        min_weight: float = 0.1,
        epochs: int = 20,
        tol: float = 0.1,
        engine: Engine = "locole",
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_trees = n_trees
        self.n_children = n_children
        self.max_leaf = max_leaf
        self.max_depth = max_depth
        self.beam = beam
        self.C = C
        self.min_weight = min_weight
        self.epochs = epochs
        self.tol = tol
        self.engine = engine
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _shape(self) -> Shape:
        return Shape(int(self.n_children), int(self.max_leaf), int(self.max_depth), balanced=False)

    def _whole_numbers(self) -> dict[str, int]:
        return {**super()._whole_numbers(), "n_children": 2, "max_depth": 1}
