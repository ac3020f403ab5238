"""Processes that learn one network together: what each does, and how the parts come together.

The work is cut into blocks that do not depend on how many there are, so neither do the bits:

- columns of the first layer, with their moments: each process has its own, and nobody else's,
- rows of a batch in products with dense weights, and outputs in their gradients: each process computes
  its blocks, and all get all of them.

Everything else is small and done by all alike. What a step moves is one number for each row of the
batch and unit of a layer, there and back, and one for each dense weight. The first layer, which is
almost all of a network, never moves, nor does its gradient.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from locole.kernels.simd import WIDTH
from locole.parallel import LostError, Member

__all__ = ["ALONE", "Alone", "Group", "joined"]

T = TypeVar("T")

# A process that says nothing for so long is given up; one that dies is noticed at once.
_PATIENCE = timedelta(minutes=10)
# Number of Linux's request for the address of an interface.
_SIOCGIFADDR = 0x8915


class Alone:
    """One process that does everything.

    Examples
    --------
    >>> ALONE.own([slice(0, 2), slice(2, 3)])
    [slice(0, 2, None), slice(2, 3, None)]
    """

    rank, size = 0, 1

    def own(self, blocks: Sequence[T]) -> Sequence[T]:
        """Blocks that are this process's to do."""
        return blocks

    def fill(self, out: NDArray, blocks: Sequence[slice]) -> None:
        """Bring in the rows of the blocks that others have done."""

    def part(self, array: Any) -> Any:
        """Own columns of an array that has those of the first layer."""
        return array

    def wide(self, part: Any) -> Any:
        """All columns, of which everybody has given his own."""
        return part

    def whole(self, part: NDArray) -> NDArray:
        """All columns, of which everybody has given his own, for the first process."""
        return part

    def agree(self, word: bool) -> bool:
        """What the first process says."""
        return word


#: The group of those who learn without others.
ALONE = Alone()


class Group(Alone):
    """One of several processes, which exchange arrays by torch.distributed.

    Parameters
    ----------
    rank, size : int
        Which process this is, out of how many.
    width : int
        Columns of the first layer.
    """

    def __init__(self, rank: int, size: int, width: int) -> None:
        self.rank, self.size, self.width = rank, size, width

    def own(self, blocks: Sequence[T], rank: int | None = None) -> Sequence[T]:
        """Blocks that are a process's to do, by default this one's."""
        first, last = self._bounds(len(blocks), rank)
        return blocks[first:last]

    def fill(self, out: NDArray, blocks: Sequence[slice]) -> None:
        """Bring in the rows of the blocks that others have done."""
        tensor = torch.from_numpy(out)
        parts = [self.own(blocks, rank) for rank in range(self.size)]
        self._tell_all([tensor[p[0].start : p[-1].stop] if p else None for p in parts])

    def part(self, array: Any) -> Any:
        """Own columns of an array that has those of the first layer."""
        return array[:, self._columns(self.rank)]

    def wide(self, part: Any) -> Any:
        """All columns, of which everybody has given his own."""
        own = torch.as_tensor(part).contiguous()
        parts = [
            own if rank == self.rank else own.new_empty((len(own), self._n_columns(rank)))
            for rank in range(self.size)
        ]
        self._tell_all([p if p.numel() else None for p in parts])
        made = torch.cat(parts, dim=1)
        return made.numpy() if isinstance(part, np.ndarray) else made

    def whole(self, part: NDArray) -> NDArray:
        """All columns for the first process; others get their own."""
        # Half precision travels as what it is kept as.
        sent = np.ascontiguousarray(part).view(np.int16 if part.dtype == np.uint16 else part.dtype)
        if self.rank:
            self._send(torch.from_numpy(sent))
            return part
        out = np.empty((len(part), self.width), dtype=sent.dtype)
        out[:, self._columns(0)] = sent
        for rank in range(1, self.size):
            into = torch.empty(
                (len(part), self._n_columns(rank)), dtype=torch.from_numpy(sent).dtype
            )
            self._receive(into, rank)
            out[:, self._columns(rank)] = into.numpy()
        return out.view(part.dtype)

    def agree(self, word: bool) -> bool:
        """What the first process says."""
        said = torch.tensor([word], dtype=torch.uint8)
        self._tell_all([said] + [None] * (self.size - 1))
        return bool(said)

    def _bounds(self, n: int, rank: int | None = None) -> tuple[int, int]:
        rank = self.rank if rank is None else rank
        return n * rank // self.size, n * (rank + 1) // self.size

    def _columns(self, rank: int) -> slice:
        first, last = self._bounds(self.width // WIDTH, rank)
        return slice(first * WIDTH, last * WIDTH)

    def _n_columns(self, rank: int) -> int:
        columns = self._columns(rank)
        return columns.stop - columns.start

    # Transport ----------------------------------------------------------------------------------

    def _tell_all(self, parts: Sequence[Any]) -> None:
        """Process i tells all others its part i, which they put in the place of theirs."""
        with _lost_if_silent():
            under_way = [
                dist.broadcast(part, src=rank, async_op=True)
                for rank, part in enumerate(parts)
                if part is not None
            ]
            for work in under_way:
                work.wait()

    def _send(self, tensor: Any) -> None:
        with _lost_if_silent():
            dist.send(tensor, dst=0)

    def _receive(self, tensor: Any, rank: int) -> None:
        with _lost_if_silent():
            dist.recv(tensor, src=rank)


@contextmanager
def _lost_if_silent() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise LostError(f"another process does not answer: {error}") from error


@contextmanager
def joined(member: Member, width: int) -> Iterator[Alone]:
    """Be one of the members of a worker group while the context lasts."""
    if member.size == 1:
        yield ALONE
        return
    # A host's name may stand for an address that others cannot reach.
    name = _interface(member.host)
    if name is not None:
        os.environ["GLOO_SOCKET_IFNAME"] = os.environ["NCCL_SOCKET_IFNAME"] = name
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    with _lost_if_silent():
        dist.init_process_group(
            backend,
            init_method=f"tcp://{member.meeting}",
            rank=member.rank,
            world_size=member.size,
            timeout=_PATIENCE,
        )
    try:
        yield Group(member.rank, member.size, width)
    finally:
        with suppress(RuntimeError):
            dist.destroy_process_group()


def _interface(host: str) -> str | None:
    """Name of the network interface that has this address, where the system tells."""
    try:
        from fcntl import ioctl
    except ImportError:
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            with suppress(OSError):
                found = ioctl(asked.fileno(), _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
                if socket.inet_ntoa(found[20:24]) == host:
                    return name
    return None
