"""Requests that wait together are answered together."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
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

    Nothing waits for a batch to fill: a thread that is free takes what is there. But rows whose
    question a thread is answering wait for it, unless they fill a batch: most of the time of a small
    batch is Python's, which threads spend in turns, so that two halves side by side take longer than
    the whole. So a lone request is answered at once, and under load the batches grow by themselves, up
    to ``batch_rows``. Questions take turns, and a request with many rows has at most one batch for each
    thread in the queue.

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
        # What waits, by question; the first has waited longest for its turn.
        self._queues: dict[Hashable, deque[_Piece]] = {}
        # Batches of each question that threads are answering.
        self._asked: Counter[Hashable] = Counter()
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
        self._queues.setdefault(question, deque()).extend(pieces)
        self._pump()
        try:
            answers = await asyncio.gather(*(piece.future for piece in pieces))
        except BaseException:
            # Nobody waits for the others any more.
            for piece in pieces:
                piece.future.cancel()
            self._forget_cancelled(question)
            raise
        return [answer for part in answers for answer in part]

    def _forget_cancelled(self, question: Hashable) -> None:
        waiting = self._queues.get(question, ())
        left = deque(piece for piece in waiting if not piece.future.cancelled())
        if left:
            self._queues[question] = left
        else:
            self._queues.pop(question, None)

    def _pump(self) -> None:
        """Give batches to free threads."""
        while self._free > 0 and (batch := self._next_batch()):
            if self._on_batch is not None:
                self._on_batch(sum(len(piece.rows) for piece in batch))
            self._start(batch)

    def _next_batch(self) -> list[_Piece]:
        """The first pieces of the question whose turn it is; none if there is no such question."""
        for question, waiting in self._queues.items():
            n_rows = sum(len(piece.rows) for piece in waiting)
            if question not in self._asked or n_rows >= self._batch_rows:
                return self._take(question)
        return []

    def _take(self, question: Hashable) -> list[_Piece]:
        """The first pieces of a question, up to a batch; the others wait for its next turn."""
        waiting = self._queues.pop(question)
        batch = [waiting.popleft()]
        room = self._batch_rows - len(batch[0].rows)
        while waiting and len(waiting[0].rows) <= room:
            batch.append(waiting.popleft())
            room -= len(batch[-1].rows)
        if waiting:
            self._queues[question] = waiting
        return batch

    def _start(self, batch: list[_Piece]) -> None:
        """Give a batch to a thread."""
        question, rows = batch[0].question, [row for piece in batch for row in piece.rows]
        self._free -= 1
        self._asked[question] += 1
        loop = asyncio.get_running_loop()
        asked = loop.run_in_executor(self._pool, self._answer, question, rows)
        asked.add_done_callback(partial(self._done, batch))

    def _done(self, batch: list[_Piece], asked: asyncio.Future[list[Any]]) -> None:
        self._free += 1
        # Without those of nobody: a question holds a model.
        self._asked -= Counter([batch[0].question])
        error = None if asked.cancelled() else asked.exception()
        if error is not None and len(batch) > 1:
            # One of them is at fault: the others must not pay for it.
            for piece in batch:
                self._start([piece])
        elif error is not None:
            _settle(batch[0], error=error)
        elif not asked.cancelled():
            answers = asked.result()
            for piece in batch:
                _settle(piece, answers[: len(piece.rows)])
                answers = answers[len(piece.rows) :]
        self._pump()


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
