"""What Parabel and Bonsai share: trees of labels with linear classifiers, read by beam search."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.baselines.base import Baseline
from locole.baselines.label_tree import (
    NodeSettings,
    Places,
    Shape,
    Tree,
    grow_tree,
    label_centroids,
    learn_node,
)
from locole.baselines.omikuji_engine import best_by_omikuji, learn_by_omikuji
from locole.exceptions import ModelFileError
from locole.io.trust import check_indices, check_pointers
from locole.kernels.csr import Csr
from locole.kernels.label_tree import Forest, search_trees
from locole.parallel.blocks import map_blocks, n_threads
from locole.parameters import COUNT, N_JOBS, NOT_NEGATIVE, PASSES, POSITIVE, SEED, VERBOSE, one_of
from locole.samples import Samples
from locole.sparse_rows import unit_rows, with_constant

__all__ = ["Engine", "LabelTrees"]

_NO_LABELS = np.empty(0, dtype=np.int64)

Engine = Literal["locole", "omikuji"]


class LabelTrees(Baseline):
    """What Parabel and Bonsai share: all but the shape of the trees.

    Attributes
    ----------
    n_nodes_ : int
        Nodes of all trees.
    """

    _own: ClassVar = {
        "_roots": np.ndarray,
        "_children": np.ndarray,
        "_targets": np.ndarray,
        "_lists": np.ndarray,
        "_nodes": np.ndarray,
        "_weights": sp.csr_array,
    }
    _parameter_constraints: ClassVar = {
        "n_trees": COUNT,
        "max_leaf": COUNT,
        "beam": COUNT,
        "C": POSITIVE,
        "min_weight": NOT_NEGATIVE,
        "epochs": PASSES,
        "tol": NOT_NEGATIVE,
        "engine": one_of(*get_args(Engine)),
        "random_state": SEED,
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }
    _renamed: ClassVar = {"threshold": "min_weight"}
    _learnt: ClassVar = {**Baseline._learnt, **_own}
    _block_rows: ClassVar[int] = 256
    _takes_several: ClassVar = True

    n_trees: int
    max_leaf: int
    beam: int
    C: float
    min_weight: float
    epochs: int
    tol: float
    engine: Engine
    random_state: int
    n_jobs: int | None
    verbose: int

    @abstractmethod
    def _shape(self) -> Shape:
        """Form of the trees."""

    @property
    def n_nodes_(self) -> int:
        """Nodes of all trees."""
        return self._children.size - 1

    def trees(self) -> list[Tree]:
        """Return the trees, without their classifiers.

        Returns
        -------
        list of Tree
            The label trees.
        """
        stops = [*self._roots[1:], self.n_nodes_]
        return [self._tree(a, b) for a, b in zip(self._roots, stops, strict=True)]

    def _tree(self, first: int, stop: int) -> Tree:
        below = [
            self._targets[self._children[v] : self._children[v + 1]] for v in range(first, stop)
        ]
        children = [t - first if t[0] < self.n_nodes_ else t[:0] for t in below]
        labels: list[Any] = [t - self.n_nodes_ for t in below]
        for node in reversed(range(stop - first)):
            if children[node].size:
                labels[node] = np.sort(np.concatenate([labels[c] for c in children[node]]))
        return Tree(labels, children)

    def _learn(self, samples: Samples) -> None:
        self.__dict__.pop("_omikuji", None)
        if self.engine == "omikuji":
            self._learn_by_omikuji(samples)
            return
        X = with_constant(unit_rows(samples.X))
        samples = samples._replace(X=X)
        trees = self._grow(samples)
        sizes = [len(tree.labels) for tree in trees]
        first = np.cumsum(sizes) - sizes
        nodes = [(t, node) for t, size in enumerate(sizes) for node in range(size)]
        targets = [trees[t].targets(node, first[t], len(nodes)) for t, node in nodes]
        learnt = self._learn_nodes(samples, trees, nodes)
        self._roots = first.astype(np.int64)
        self._children = _pointers([t.size for t in targets])
        self._targets = np.concatenate(targets).astype(np.int64)
        # Sorted by feature and then by node: a row reads the lists of its features only.
        features = np.concatenate([features for features, _ in learnt])
        where = np.repeat(np.arange(len(nodes)), [part.size for part, _ in learnt])
        order = np.lexsort((where, features))
        self._lists = _pointers(np.bincount(features, minlength=X.shape[1]))
        self._nodes = where[order].astype(np.int32)
        self._weights = _stacked([weights for _, weights in learnt])[order]

    def _learn_by_omikuji(self, samples: Samples) -> None:
        shape = self._shape()
        settings = {
            "n_trees": self.n_trees,
            # It aborts where there are fewer labels than parts.
            "min_branch_size": max(shape.max_leaf, shape.n_children),
            "max_depth": shape.max_depth,
            "cluster_k": shape.n_children,
            "cluster_balanced": shape.balanced,
            "linear_c": self.C,
            "linear_weight_threshold": self.min_weight,
            "linear_max_iter": self.epochs,
            "linear_eps": self.tol,
        }
        for name in LabelTrees._own:  # of an earlier fit by the other engine
            self.__dict__.pop(name, None)
        threads = n_threads(self.n_jobs)
        self._omikuji = learn_by_omikuji(samples, settings, threads)

    def _state(self) -> dict[str, Any]:
        if "_omikuji" in vars(self):
            raise ModelFileError(
                "trees of omikuji cannot be saved, because omikuji trusts the files that it reads: "
                "take engine='locole'"
            )
        return super()._state()

    def _grow(self, samples: Samples) -> list[Tree]:
        shape = self._shape()
        centroids = label_centroids(
            samples.X[:, :-1], samples.codes, self.classes_.size, owners=samples.owners
        )

        def grow(which: slice) -> Tree:
            rng = np.random.default_rng([self.random_state, which.start])
            return grow_tree(centroids, shape, rng)

        return self._each(grow, self.n_trees, "trees")

    def _learn_nodes(
        self, samples: Samples, trees: list[Tree], nodes: list[tuple[int, int]]
    ) -> list[tuple[NDArray[np.int32], sp.csr_array]]:
        settings = NodeSettings(self.C, self.min_weight, self.epochs, self.tol)
        owners = samples.owners

        def learn(which: slice) -> tuple[NDArray[np.int32], sp.csr_array]:
            t, node = nodes[which.start]
            tree = trees[t]
            child = tree.place_in(node, self.classes_.size)[samples.codes]
            n_outputs = tree.children[node].size or tree.labels[node].size
            rng = np.random.default_rng([self.random_state, t, node])
            return learn_node(samples.X, Places.of(child, owners), n_outputs, settings, rng)

        return self._each(learn, len(nodes), "nodes")

    def _each(self, function: Any, n_tasks: int, what: str) -> list[Any]:
        description = f"learning {what}" if self.verbose else None
        return map_blocks(function, n_tasks, block=1, n_jobs=self.n_jobs, description=description)

    def _rank(self, X: sp.csr_array, k: int) -> tuple[NDArray[np.int64], NDArray]:
        if "_omikuji" in vars(self):
            return best_by_omikuji(self._omikuji, X, k, int(self.beam))
        X = with_constant(unit_rows(X))
        scores = np.full((X.shape[0], k), -np.inf)
        codes = np.full((X.shape[0], k), -1, dtype=np.int64)
        room = np.empty(int(np.diff(self._children).max()))
        totals = np.empty((1, self.classes_.size))
        forest = Forest(
            self._roots, self._children, self._targets, self._lists, self._nodes,
            Csr.of(self._weights),
        )  # fmt: skip
        beam = min(int(self.beam), self.n_nodes_)
        search_trees(Csr.of(X), forest, beam, room, totals, _NO_LABELS, scores, codes)
        return codes, scores

    def _check_learnt(self) -> None:
        super()._check_learnt()
        self._check_trees()
        self._check_classifiers()

    def _check_trees(self) -> None:
        roots, children, targets = self._roots, self._children, self._targets
        dtypes = ("int64",)
        check_pointers(children, "children of nodes", end=targets.size, dtypes=dtypes, rise=True)
        n, n_labels = self.n_nodes_, self.classes_.size
        check_indices(targets, "children", below=n + n_labels, dtypes=dtypes)
        check_indices(roots, "roots", below=n, dtypes=dtypes, rising_within=np.empty(0, np.int64))
        if n < 1 or not roots.size or roots[0] != 0:
            raise ModelFileError("its trees have no roots")
        tree = np.searchsorted(roots, np.arange(n), side="right") - 1
        parent = np.repeat(np.arange(n), np.diff(children))
        inner = targets < n
        if (inner != inner[children[parent]]).any():
            raise ModelFileError("it has nodes with nodes and labels as children")
        below = targets[inner]
        is_tree = (below > parent[inner]).all() and (tree[below] == tree[parent[inner]]).all()
        others = np.setdiff1d(np.arange(n), roots)
        if not is_tree or not np.array_equal(np.sort(below), others):
            raise ModelFileError("its nodes are no trees")
        place = tree[parent[~inner]] * n_labels + targets[~inner] - n
        if not np.array_equal(np.sort(place), np.arange(roots.size * n_labels)):
            raise ModelFileError("its trees do not hold each label once")

    def _check_classifiers(self) -> None:
        lists, nodes, W = self._lists, self._nodes, self._weights
        # The last feature is the constant.
        check_pointers(
            lists, "features", end=nodes.size, size=self.n_features_in_ + 2, dtypes=("int64",)
        )
        check_indices(
            nodes, "nodes of features", below=self.n_nodes_, dtypes=("int32",), rising_within=lists
        )
        if W.dtype != np.float32:
            raise ModelFileError("its classifiers have the wrong type")
        n_children = np.diff(self._children)
        if W.shape != (nodes.size, n_children.max()) or not np.isfinite(W.data).all():
            raise ModelFileError("its weights do not fit its nodes and features")
        if (W.indices >= np.repeat(n_children[nodes], np.diff(W.indptr))).any():
            raise ModelFileError("it has weights for children that do not exist")


def _pointers(counts: Any) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _stacked(parts: list[sp.csr_array]) -> sp.csr_array:
    """One below the other; narrower ones are filled up by zeros."""
    width = max(part.shape[1] for part in parts)
    return sp.csr_array(
        (
            np.concatenate([part.data for part in parts]),
            np.concatenate([part.indices for part in parts]),
            _pointers([n for part in parts for n in np.diff(part.indptr)]),
        ),
        shape=(sum(part.shape[0] for part in parts), width),
    )
