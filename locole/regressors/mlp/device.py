"""The same training in torch operations alone, for graphics processors.

Slower than the kernels on a processor, and no promise of equal bits; the tests run it there all the
same, against the kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from locole.exceptions import LocoleError
from locole.io.trust import check_indices, check_like
from locole.regressors.mlp.batches import Batch
from locole.regressors.mlp.momentum import BETAS, EPS, IdleMomentum
from locole.regressors.mlp.network import Network

__all__ = ["DeviceLayer", "DeviceNetwork", "choose_device"]


def choose_device(device: str) -> str | None:
    """Name of the device, or None for the kernels on the processor."""
    if device == "cuda" and not torch.cuda.is_available():
        raise LocoleError('torch finds no cuda device here: take device="cpu".')
    return "cuda" if device != "cpu" and torch.cuda.is_available() else None


class DeviceLayer:
    """The first layer on a device; what `SparseLayer` is on the processor."""

    def __init__(self, W: NDArray, *, rates: ArrayLike, row_moment: bool, device: str) -> None:
        if W.dtype != np.float32 or row_moment:
            raise LocoleError(
                'first_layer="float16" and second_moment="row" are for the processor only: take '
                'device="cpu", or leave them out.'
            )
        self.W, self.device = W, device
        self._W = torch.from_numpy(W).to(device, copy=True)
        self._M, self._U = torch.zeros_like(self._W), torch.zeros_like(self._W)
        self.last = np.zeros(W.shape[0], dtype=np.int64)
        self.idle = IdleMomentum(rates)

    def product(self, batch: Batch, apply: Any) -> Any:
        """Rows of the batch times the weights as dense Adamax would have them now."""
        rows, features, values = self._entries(batch)
        w = self._caught_up(batch)[0]
        # embedding_bag wants the entries row by row
        order = torch.sort(rows, stable=True)[1]
        counts = np.bincount(batch.entries.who, minlength=batch.n_rows)
        starts = self._tensor(np.cumsum(counts) - counts)
        return torch.nn.functional.embedding_bag(
            features[order], w, starts, mode="sum", per_sample_weights=values[order]
        )

    def update(self, batch: Batch, G: Any, apply: Any, *, horizon: int | None = None) -> float:
        """Take a step with the gradient ``batchᵀ G``; rows are left as they are after it."""
        rows, features, values = self._entries(batch)
        w, m, u = self._caught_up(batch)
        pace = self.idle.advance()
        g = torch.zeros_like(w).index_add_(0, features, values[:, None] * G[rows])
        m += (1 - BETAS[0]) * (g - m)
        u = torch.maximum(BETAS[1] * u, g.abs() + EPS)
        touched = self._tensor(batch.features)
        self._W[touched], self._M[touched], self._U[touched] = w - pace * m / u, m, u
        self.last[batch.features] = self.idle.done
        return pace

    def settle(self, apply: Any) -> None:
        """Give all rows what they have missed, and bring the weights back to the processor."""
        rows = np.flatnonzero((self.last > 0) & (self.last < self.idle.done))
        touched = self._tensor(rows)
        w, m, u = self._missed(touched, self.idle.between(self.last[rows], self.idle.done))
        self._W[touched], self._M[touched], self._U[touched] = w, m, u
        self.last[rows] = self.idle.done
        self.W[:] = self._W.cpu().numpy()

    def state(self) -> dict[str, Any]:
        """All that the next steps depend on."""
        tensors = {"W": self._W, "M": self._M, "U": self._U}
        arrays = {name: tensor.cpu().numpy() for name, tensor in tensors.items()}
        return {**arrays, "last": self.last, "done": self.idle.done}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state, whose arrays are copied after a check."""
        check_like(state, self.state(), "first layer")
        check_indices(np.append(state["last"], state["done"]), "steps", below=self.idle.n_steps + 1)
        self.idle.done = int(state["done"])
        self.last[:] = state["last"]
        for name in ("W", "M", "U"):
            getattr(self, f"_{name}")[:] = self._tensor(state[name])
        self.W[:] = state["W"]

    def _tensor(self, array: NDArray) -> Any:
        return torch.from_numpy(np.array(array)).to(self.device)

    def _entries(self, batch: Batch) -> tuple[Any, Any, Any]:
        """Row, place of the feature within the batch's, and value of each entry."""
        features = np.repeat(np.arange(batch.features.size), np.diff(batch.entries.starts))
        return (
            self._tensor(batch.entries.who),
            self._tensor(features),
            self._tensor(batch.entries.values),
        )

    def _caught_up(self, batch: Batch) -> tuple[Any, Any, Any]:
        idle = self.idle.between(self.last[batch.features], self.idle.done)
        return self._missed(self._tensor(batch.features), idle)

    def _missed(self, rows: Any, idle: NDArray[np.float32]) -> tuple[Any, Any, Any]:
        S, T, keep1, keep2 = self._tensor(idle).T[:, :, None]
        w, m, u = self._W[rows], self._M[rows], self._U[rows]
        # 0/0 where a row has missed nothing and never had a gradient
        w = w - m * torch.minimum(torch.nan_to_num(S / u, nan=0.0), T)
        return w, keep1 * m, keep2 * u


class DeviceNetwork(Network):
    """The dense layers on a device; losses are computed on the processor."""

    def __init__(self, *args: Any, device: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.device = device
        self.tensors = {
            name: tensor.detach().to(device, copy=True).requires_grad_(name in self.moments)
            for name, tensor in self.tensors.items()
        }
        self._moments = {name: torch.zeros((2, *self.tensors[name].shape), device=device)
                         for name in self.moments}  # fmt: skip

    def _leaf(self, A: Any) -> Any:
        return A.detach().requires_grad_()

    def _product(self, H: Any, V: Any, apply: Any, name: str | None = None) -> Any:
        return H @ V.T

    def update(self, gradients: dict[str, Any], pace: float, apply: Any) -> None:
        """Take a step of Adamax, on the device."""
        for name, g in gradients.items():
            m, u = self._moments[name]
            m += (1 - BETAS[0]) * (g - m)
            torch.maximum(BETAS[1] * u, g.abs() + EPS, out=u)
            with torch.no_grad():
                self.tensors[name] -= pace * self._part(name) * m / u
        if self.joint is not None:
            with torch.no_grad():
                G = self.tensors["vectors"]
                G /= torch.linalg.vector_norm(G, dim=1, keepdim=True)

    def pull(self) -> None:
        """Bring all numbers back to the processor."""
        for name, tensor in self.tensors.items():
            self.arrays[name][:] = tensor.detach().cpu().numpy()
        for name, moments in self._moments.items():
            self.moments[name][:] = moments.reshape(2, -1).cpu().numpy()

    def push(self) -> None:
        """Bring all numbers to the device."""
        with torch.no_grad():
            for name, tensor in self.tensors.items():
                tensor[:] = torch.from_numpy(self.arrays[name]).to(self.device)
            for name, moments in self._moments.items():
                given = torch.from_numpy(self.moments[name]).to(self.device)
                moments[:] = given.reshape(moments.shape)
