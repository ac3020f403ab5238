"""The dense layers in torch: loss of a batch, and gradients of everything that made it.

Products are cut into blocks that do not depend on the number of threads, nor of processes, so neither do
the weights; whatever else torch computes runs on one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from locole.kernels.sparse_layer import TINY, adamax
from locole.parallel.blocks import slices
from locole.regressors.mlp.group import ALONE, Alone
from locole.regressors.mlp.momentum import BETAS, EPS
from locole.regressors.mlp.shape import NORM_EPS, Arrays, Shape
from locole.regressors.mlp.vectors import JointLoss

__all__ = ["Network", "Outcome", "one_thread"]

# Rows of a batch, and units of a layer, that one task takes. Batches are flat: products are cut by
# units.
_ROWS, _UNITS = 64, 256
# Numbers of an array that one task moves.
_NUMBERS = 1 << 18
# How far a batch moves the running mean and variance.
_MOMENTUM = 0.1

# NaN and infinity are found by the loss: no need for a warning.
_QUIET = np.errstate(over="ignore", invalid="ignore")
_BETAS = np.array(BETAS, dtype=np.float32)
_EPS = np.float32(EPS)
_TINY = np.float32(TINY)

#: From points and rows to losses and their gradients.
Loss = Callable[[NDArray, NDArray], tuple[NDArray, NDArray]]


class Outcome(NamedTuple):
    """Sum of the losses of a batch, and the gradients of their mean."""

    loss: float
    first: Any
    dense: dict[str, Any]

    @property
    def is_finite(self) -> bool:
        """Whether a step may be taken."""
        return bool(np.isfinite(self.loss) and np.isfinite(float(self.first.sum())))


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep torch to one thread: the last bit of a sum depends on their number."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Network:
    """Dense layers over a first layer that is computed elsewhere.

    Parameters
    ----------
    shape : Shape
        Sizes and switches.
    arrays : dict of arrays
        All dense numbers, shared with torch and changed in place.
    loss : function
        From points and numbers of rows to losses and their gradients.
    joint : JointLoss, optional
        In place of ``loss`` if label vectors are learnt, too.
    dropout : float
        Part of the hidden units that are left out of each row.
    group : Alone
        With whom the work is shared.
    """

    def __init__(
        self,
        shape: Shape,
        arrays: Arrays,
        loss: Loss,
        *,
        joint: JointLoss | None = None,
        dropout: float = 0.0,
        group: Alone = ALONE,
    ) -> None:
        self.shape, self.arrays, self.loss, self.dropout = shape, arrays, loss, dropout
        self.joint, self.group = joint, group
        learnt = [name for name in arrays if not name.startswith("running")]
        self.moments = {name: np.zeros((2, arrays[name].size), np.float32) for name in learnt}
        self.tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        for name in learnt:
            self.tensors[name].requires_grad_()
        # Gradients of weights: memory that is new in each step costs more than what is computed into it.
        self._rooms = {name: np.empty_like(arrays[name]) for name in learnt if name[:6] == "weight"}

    def learn(self, A: Any, rows: NDArray, rng: np.random.Generator, apply: Any) -> Outcome:
        """Loss and gradients of a batch, whose rows times the first layer are A."""
        leaf = self._leaf(A)
        Z = self._points(leaf, rng, apply)
        total, penalty = self._total(Z, rows, apply)
        wanted = [leaf, *(self.tensors[name] for name in self.moments)]
        first, *dense = torch.autograd.grad(total / len(A) + penalty, wanted)
        return Outcome(float(total.detach()), first, dict(zip(self.moments, dense, strict=True)))

    def _total(self, Z: Any, rows: NDArray, apply: Any) -> tuple[Any, Any]:
        """Sum of the losses, and the penalty of the label vectors."""
        if self.joint is None:
            return _Losses.apply(Z, lambda Z: self._losses(Z, rows, apply)), 0.0
        G = self.tensors["vectors"]

        def product(left: Any, right: Any) -> Any:
            return self._product(left, right, apply)

        losses = self.joint.losses(Z, G, rows, product)
        return losses.sum(dtype=torch.float64), self.joint.penalty(G, rows, product)

    def _leaf(self, A: Any) -> Any:
        return torch.from_numpy(A).requires_grad_()

    def update(self, gradients: dict[str, Any], pace: float, apply: Any) -> None:
        """Take a step of Adamax."""
        for name, gradient in gradients.items():
            array, (m, u) = self.arrays[name].reshape(-1), self.moments[name]
            own = np.float32(pace * self._part(name))
            self._move(array, m, u, gradient.numpy().reshape(-1), own, apply)
        if self.joint is not None:
            G = self.arrays["vectors"]
            G /= np.linalg.norm(G, axis=1, keepdims=True)

    def _part(self, name: str) -> float:
        """Part of the learning rate that these numbers learn with."""
        if self.joint is None or name != "vectors":
            return 1.0
        return self.joint.settings.embedding_rate

    def _move(self, w: Any, m: Any, u: Any, g: Any, pace: np.float32, apply: Any) -> None:
        def move(part: slice) -> None:
            adamax(w[part], m[part], u[part], g[part], _BETAS, _EPS, pace)

        list(apply(move, slices(w.size, _NUMBERS)))

    def pull(self) -> None:
        """Bring all numbers back to ``arrays`` and ``moments``, where they are already."""

    def push(self) -> None:
        """Take all numbers from ``arrays`` and ``moments``, where they are already."""

    def _points(self, A: Any, rng: np.random.Generator, apply: Any) -> Any:
        shape, t = self.shape, self.tensors
        H = A[:, : shape.hidden[0]] + t["bias0"]
        for i in range(1, len(shape.hidden) + 1):
            if shape.batch_norm:
                H = functional.batch_norm(
                    H, t[f"running_mean{i}"], t[f"running_var{i}"], t[f"gain{i}"], t[f"shift{i}"],
                    training=True, momentum=_MOMENTUM, eps=NORM_EPS,
                )  # fmt: skip
            H = functional.relu(H)
            if self.dropout > 0:
                H = H * _mask(H.shape, self.dropout, rng).to(H.device)
            H = self._product(H, t[f"weight{i}"], apply, f"weight{i}") + t[f"bias{i}"]
        if shape.skip:
            H = H + A[:, shape.hidden[0] : shape.first_columns]
        if shape.normalise:
            H = functional.normalize(H, dim=1)
        return H * t["log_scale"].exp() if shape.scaled else H

    def _product(self, H: Any, V: Any, apply: Any, name: str | None = None) -> Any:
        """``H @ V.T``; the gradient of what has a name is used up when the next one is computed."""
        room = None if name is None else self._rooms[name]
        return _Product.apply(H, V, _Share(apply, self.group), room)

    def _losses(self, Z: NDArray, rows: NDArray, apply: Any) -> tuple[NDArray, NDArray]:
        losses, gradients = np.empty(len(Z)), np.empty_like(Z)

        @_QUIET
        def fill(part: slice) -> None:
            losses[part], gradients[part] = self.loss(Z[part], rows[part])

        parts = slices(len(Z), _ROWS)
        list(apply(fill, self.group.own(parts)))
        for array in (losses, gradients):
            self.group.fill(array, parts)
        return losses, gradients


def _mask(size: Any, drop: float, rng: np.random.Generator) -> Any:
    kept = rng.random(tuple(size), dtype=np.float32) >= drop
    return torch.from_numpy(kept.astype(np.float32) / np.float32(1 - drop))


class _Losses(torch.autograd.Function):
    """Sum of losses that come with their gradients."""

    @staticmethod
    def forward(ctx: Any, Z: Any, losses: Any) -> Any:
        loss, gradient = losses(Z.detach().cpu().numpy())
        gradient = torch.from_numpy(np.ascontiguousarray(gradient, dtype=np.float32))
        ctx.save_for_backward(gradient.to(Z.device))
        return torch.tensor(float(loss.sum(dtype=np.float64)), dtype=torch.float64)

    @staticmethod
    def backward(ctx: Any, *slopes: Any) -> Any:
        (gradient,) = ctx.saved_tensors
        return gradient * slopes[0].item(), None


class _Product(torch.autograd.Function):
    """``H @ V.T`` and its gradients, in blocks of units."""

    @staticmethod
    def forward(
        ctx: Any, H: Any, V: Any, share: _Share, room: NDArray[np.float32] | None = None
    ) -> Any:
        ctx.save_for_backward(H, V)
        ctx.share, ctx.room = share, room
        return _tensor(share.product(V.detach().numpy(), H.detach().numpy().T).T)

    @staticmethod
    def backward(ctx: Any, *slopes: Any) -> Any:
        H, V = (tensor.detach().numpy() for tensor in ctx.saved_tensors)
        # Without numbers so small that arithmetic with them is slow: labels that are out of question.
        G = slopes[0].numpy() + _TINY - _TINY
        back = ctx.share.product(V.T, G.T).T
        return _tensor(back), _tensor(ctx.share.product(G.T, H, ctx.room)), None, None


def _tensor(array: NDArray) -> Any:
    return torch.from_numpy(np.ascontiguousarray(array))


class _Share(NamedTuple):
    """Threads of this process and other processes, between whom a product is shared."""

    apply: Any
    group: Alone

    def product(self, left: NDArray, right: NDArray, out: NDArray | None = None) -> NDArray:
        """``left @ right``, in blocks of rows, which is written to ``out``."""
        if out is None:
            out = np.empty((left.shape[0], right.shape[1]), dtype=np.float32)

        @_QUIET
        def fill(part: slice) -> None:
            np.matmul(left[part], right, out=out[part])

        parts = slices(left.shape[0], _UNITS)
        list(self.apply(fill, self.group.own(parts)))
        self.group.fill(out, parts)
        return out
