"""Requests that wait together are answered together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from locole.serving.problems import busy

__all__ = ["Batcher"]

#: Answers to rows, given what is asked of which model.
Answering = Callable[[Any, list[Any]], list[Any]]


@dataclass(eq=False)
class _Piece:
    """Rows of one request that are answered in one batch."""

    question: Hashable
    rows: list[Any]
    future: asyncio.Future[list[Any]] = field(default_factory=asyncio.Future)


class Batcher:
    """Gives waiting rows to a few threads, those with the same question in one batch.

    Nothing waits for a batch to fill: a thread that is free takes what is there. So a lone request is
    answered at once, and under load the batches grow by themselves, up to ``batch_rows``. A request
    with many rows has at most one batch for each thread in the queue, so that others get their turn.

    Lives in one event loop, whose thread alone touches the queue.

    Parameters
    ----------
    answer : callable
        From a question and a list of rows to a list of answers; called in a thread. A question is
        anything hashable: what is asked, of which model.
    workers : int
        Number of threads.
    batch_rows : int
        Rows that are answered together at most.
    max_waiting : int
        Rows that may be unanswered at a time; further requests are refused.
    on_batch : callable, optional
        Told the rows of every batch.
    """

    def __init__(
        self,
        answer: Answering,
        *,
        workers: int,
        batch_rows: int,
        max_waiting: int,
        on_batch: Callable[[int], None] | None = None,
    ) -> None:
        self._answer, self._on_batch = answer, on_batch
        self._workers, self._batch_rows, self._max_waiting = workers, batch_rows, max_waiting
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="locole-answers")
        self._free = workers
        self._queue: deque[_Piece] = deque()
        #: Rows that are not answered yet.
        self.waiting = 0

    async def ask(self, question: Hashable, rows: list[Any]) -> list[Any]:
        """Answers to the rows; raises `Problem` 503 if too many are waiting."""
        if self.waiting + len(rows) > self._max_waiting:
            raise busy(f"{self.waiting} rows are waiting for answers: come again in a second.")
        self.waiting += len(rows)
        try:
            found: list[Any] = []
            wave = self._workers * self._batch_rows
            for start in range(0, len(rows), wave):
                found += await self._ask_wave(question, rows[start : start + wave])
            return found
        finally:
            self.waiting -= len(rows)

    async def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Result of a function that is called in one of the threads."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *args)

    def close(self) -> None:
        """Let the threads end when they have answered."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def _ask_wave(self, question: Hashable, rows: list[Any]) -> list[Any]:
        step = self._batch_rows
        pieces = [_Piece(question, rows[i : i + step]) for i in range(0, len(rows), step)]
        self._queue.extend(pieces)
        self._pump()
        try:
            answers = await asyncio.gather(*(piece.future for piece in pieces))
        except BaseException:
            # Nobody waits for the others any more.
            for piece in pieces:
                piece.future.cancel()
            raise
        return [answer for part in answers for answer in part]

    def _pump(self) -> None:
        """Give batches to free threads."""
        while self._free > 0 and (batch := self._next_batch()):
            rows = [row for piece in batch for row in piece.rows]
            self._free -= 1
            if self._on_batch is not None:
                self._on_batch(len(rows))
            loop = asyncio.get_running_loop()
            asked = loop.run_in_executor(self._pool, self._answer, batch[0].question, rows)
            asked.add_done_callback(partial(self._done, batch))

    def _next_batch(self) -> list[_Piece]:
        """The piece that has waited longest, and others with the same question."""
        batch: list[_Piece] = []
        n_rows, others = 0, deque[_Piece]()
        while self._queue and n_rows < self._batch_rows:
            piece = self._queue.popleft()
            if piece.future.cancelled():
                continue
            fits = n_rows + len(piece.rows) <= self._batch_rows
            if batch and not (fits and piece.question == batch[0].question):
                others.append(piece)
                continue
            batch.append(piece)
            n_rows += len(piece.rows)
        self._queue.extendleft(reversed(others))
        return batch

    def _done(self, batch: list[_Piece], asked: asyncio.Future[list[Any]]) -> None:
        self._free += 1
        error = None if asked.cancelled() else asked.exception()
        if error is not None and len(batch) > 1:
            # One of them is at fault: the others must not pay for it.
            for piece in batch:
                self._alone(piece)
        elif error is not None:
            _settle(batch[0], error=error)
        elif not asked.cancelled():
            answers = asked.result()
            for piece in batch:
                _settle(piece, answers[: len(piece.rows)])
                answers = answers[len(piece.rows) :]
        self._pump()

    def _alone(self, piece: _Piece) -> None:
        loop = asyncio.get_running_loop()
        asked = loop.run_in_executor(self._pool, self._answer, piece.question, piece.rows)
        self._free -= 1
        asked.add_done_callback(partial(self._done, [piece]))


def _settle(
    piece: _Piece, answers: list[Any] | None = None, *, error: BaseException | None = None
) -> None:
    """Hand out answers, unless nobody waits for them any more."""
    if piece.future.done():
        return
    if error is None:
        piece.future.set_result(answers or [])
    else:
        piece.future.set_exception(error)
