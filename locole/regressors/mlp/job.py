"""What a network is to learn from and how, learnt on this machine or on the nodes of an engine."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from locole.exceptions import LocoleError
from locole.parallel import Engine, Member
from locole.regressors.checkpoint import Checkpoints
from locole.regressors.mlp.fitting import Fit
from locole.regressors.mlp.group import joined
from locole.regressors.mlp.recipes import Settings
from locole.regressors.mlp.shape import Arrays, Shape
from locole.regressors.mlp.training import Training
from locole.regressors.problem import Problem

__all__ = ["Job", "Learnt", "learn"]


class Job(NamedTuple):
    """Everything that decides what is learnt, and where it begins."""

    rows: Problem
    validation: Problem | None
    settings: Settings
    shape: Shape
    W: NDArray
    """The first layer."""
    arrays: Arrays
    """All other numbers."""
    seed: int
    rate: float
    patience: int
    row_moment: bool
    device: str


class Learnt(NamedTuple):
    """The network at the end, and its history."""

    W: NDArray
    arrays: Arrays
    history: list[dict[str, float]]


def learn(
    job: Job,
    engine: Engine,
    checkpoints: Checkpoints | None,
    *,
    n_jobs: int | None,
    description: str | None,
) -> Learnt:
    """Learn where the engine says; the job's own arrays may be changed."""
    if job.row_moment and not engine.shares_memory:
        raise LocoleError(
            'second_moment="row" is for one machine: on several each has a part of every row, and of '
            "the memory. Leave it out."
        )
    learnt = engine.together(
        _work,
        shared=(job, checkpoints),
        resume=checkpoints.read if checkpoints else _nothing,
        n_jobs=n_jobs,
        description=description,
        total=_n_steps(job),
    )
    # What comes from the cluster's memory goes with the cluster.
    return Learnt(_writable(learnt.W), _all_writable(learnt.arrays), learnt.history)


def _writable(array: NDArray) -> NDArray:
    """Return the array itself, or a copy if it is somebody else's: those are read-only."""
    return array if array.flags.writeable else np.array(array)


def _all_writable(arrays: Arrays) -> Arrays:
    return {name: _writable(array) for name, array in arrays.items()}


def _nothing() -> None:
    return None


def _n_steps(job: Job) -> int:
    epochs = job.settings.for_rows(job.rows.n_rows).epochs or 0
    return epochs * -(-job.rows.n_rows // job.settings.batch_size)


def _work(shared: tuple[Job, Checkpoints | None], state: Any, member: Member) -> Learnt:
    """Learn in one process of a group, with its columns of the first layer."""
    job, checkpoints = shared
    with joined(member, job.shape.width) as group:
        W, arrays = _writable(group.part(job.W)), _all_writable(job.arrays)
        training = Training(
            job.rows, job.settings, job.shape, W, arrays,
            seed=job.seed, row_moment=job.row_moment, rate=job.rate, device=job.device, group=group,
        )  # fmt: skip
        fit = Fit(
            training, validation=job.validation, patience=job.patience, checkpoints=checkpoints
        )
        if state is not None:
            fit.restore(state)
        fit.run(n_jobs=member.threads, tell=member.tell)
        return Learnt(group.whole(W), arrays, fit.history)
