"""Batches: alike questions together, in turn, nobody pays for another's fault."""

from __future__ import annotations

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locole.serving.batching import Batcher
from locole.serving.problems import Problem


def run(scene, answer, **options):
    """Play a scene with a batcher."""

    async def play():
        batcher = Batcher(answer, **{"workers": 1, "batch_rows": 4, "max_waiting": 100, **options})
        try:
            return await scene(batcher)
        finally:
            batcher.close()

    return asyncio.run(play())


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 9)), min_size=1, max_size=12),
    st.integers(1, 3),
)
def test_everybody_gets_their_own_answers(requests, workers):
    sizes = []

    def answer(question, rows):
        sizes.append(len(rows))
        return [(question, row) for row in rows]

    async def scene(batcher):
        asked = [
            batcher.ask(question, [(i, j) for j in range(n)])
            for i, (question, n) in enumerate(requests)
        ]
        return await asyncio.gather(*asked)

    found = run(scene, answer, workers=workers, max_waiting=1000)
    assert found == [
        [(question, (i, j)) for j in range(n)] for i, (question, n) in enumerate(requests)
    ]
    assert max(sizes) <= 4
    assert sum(sizes) == sum(n for _, n in requests)


def test_who_waits_is_answered_together_and_in_turn():
    go_on, batches = threading.Event(), []

    def answer(question, rows):
        batches.append((question, rows))
        assert go_on.wait(20)
        return rows

    async def scene(batcher):
        names = [
            ("x", [0]),
            ("x", [1]),
            ("y", [2]),
            ("x", [3]),
            ("y", [4]),
            ("x", list(range(10, 20))),
        ]
        asked = [asyncio.ensure_future(batcher.ask(*name)) for name in names]
        await asyncio.sleep(0.01)
        assert batches == [("x", [0])]
        assert batcher.waiting == 15
        go_on.set()
        await asyncio.gather(*asked)
        assert batcher.waiting == 0

    run(scene, answer)
    # Only one part of a long request waits at a time, so that the others come first.
    assert batches[1:3] == [("x", [1, 3]), ("y", [2, 4])]
    assert [rows for _, rows in batches[3:]] == [[10, 11, 12, 13], [14, 15, 16, 17], [18, 19]]


def test_a_fault_is_that_of_one():
    first = threading.Event()

    def answer(question, rows):
        assert first.wait(20)
        if "bad" in rows:
            raise ValueError("bad")
        return rows

    async def scene(batcher):
        asked = [asyncio.ensure_future(batcher.ask(0, [row])) for row in ("a", "b", "bad", "c")]
        await asyncio.sleep(0.01)
        first.set()
        return await asyncio.gather(*asked, return_exceptions=True)

    found = run(scene, answer)
    assert found[:2] + found[3:] == [["a"], ["b"], ["c"]]
    assert isinstance(found[2], ValueError)


def test_too_many_are_refused_and_who_leaves_makes_room():
    go_on = threading.Event()

    def answer(question, rows):
        assert go_on.wait(20)
        return rows

    async def scene(batcher):
        kept = asyncio.ensure_future(batcher.ask(0, [1] * 60))
        left = asyncio.ensure_future(batcher.ask(0, [2] * 40))
        await asyncio.sleep(0.01)
        with pytest.raises(Problem) as refused:
            await batcher.ask(0, [3])
        assert refused.value.status_code == 503
        left.cancel()
        await asyncio.sleep(0.01)
        assert batcher.waiting == 60
        go_on.set()
        assert await kept == [1] * 60
        assert await batcher.ask(0, [4]) == [4]

    run(scene, answer)


@pytest.mark.parametrize(
    ("rows", "started"), [([1, 2, 3], [[0]]), ([1, 2, 3, 4], [[0], [1, 2, 3, 4]])]
)
def test_a_second_thread_takes_full_batches_and_other_questions(rows, started):
    go_on, batches = threading.Event(), {"x": [], "y": []}

    def answer(question, rows):
        batches[question].append(rows)
        assert go_on.wait(20)
        return rows

    async def scene(batcher):
        asked = [asyncio.ensure_future(batcher.ask("x", [row])) for row in (0, *rows)]
        await asyncio.sleep(0.05)
        assert batches["x"] == started
        asked.append(asyncio.ensure_future(batcher.ask("y", ["other"])))
        await asyncio.sleep(0.05)
        assert batches["y"] == ([["other"]] if len(started) == 1 else [])
        go_on.set()
        assert await asyncio.gather(*asked) == [[0], *([row] for row in rows), ["other"]]
        # A question holds a model, which must not stay in memory.
        assert not batcher._queues
        assert not batcher._asked

    run(scene, answer, workers=2)
    assert [row for batch in batches["x"] for row in batch] == [0, *rows]
