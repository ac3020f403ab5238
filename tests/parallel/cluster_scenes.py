"""Scenes on real Ray clusters of several nodes on this machine; run in a process of their own.

A process of its own, because Ray may end it, and because all processes that a scene starts have its
environment: so the tests find those that are left. Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import time
import warnings
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

import locole.parallel.cluster as watching
import locole.parallel.shared_folder as files
import locole.regressors.dual as dual
from locole.baselines import PPDSparse
from locole.classifier import LocoleClassifier
from locole.cli import main
from locole.embeddings import Rademacher
from locole.exceptions import LocoleError, LocoleWarning
from locole.parallel import RayEngine, in_order
from locole.regressors import ElasticNetRegressor
from locole.targets import Targets

sys.path.append(str(Path(__file__).parents[1]))

from samples import write_samples

STORE = {"object_store_memory": 80 << 20, "num_cpus": 1}
# A dead node is noticed after seconds instead of a quarter of a minute.
HEALTH = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 3,
}
ORIGINAL = dual.solve_outputs
#: Two runs that end at once.
SPEC = """
data = ["topics"]
seeds = [0, 1]
data_options = { topics = { n_samples = 60, n_classes = 5, n_features = 50 } }
[[methods]]
method = "wltls"
"""


def problem() -> tuple[sp.csr_array, np.ndarray]:
    rng = np.random.default_rng(0)
    X = sp.random_array((600, 500), density=0.03, rng=rng, format="csr").astype(np.float32)
    return X, rng.integers(0, 40, 600)


def slowly(work, outputs):
    """A block of outputs that takes long enough to be killed at."""
    time.sleep(1)
    return ORIGINAL(work, outputs)


def square(shared, task):
    """Late ones first, so that the order of finishing is not that of the tasks."""
    time.sleep(0.3 if task == 0 else 0)
    assert not shared.flags.writeable
    return float(shared.sum()) + task**2


def nap(shared, task):
    time.sleep(60 * task)


def refuse(shared, task):
    raise LocoleError(f"task {task} is not to be done: leave it out.")


@contextmanager
def slow_blocks():
    dual.solve_outputs = slowly
    try:
        yield
    finally:
        dual.solve_outputs = ORIGINAL


def solved(engine, **settings):
    X, codes = problem()
    targets = Targets(codes, Rademacher(40, dim=64 * 5 + 7))
    model = ElasticNetRegressor(l2=0.5, max_passes=3, tol=0, engine=engine, **settings)
    W = model.fit(X, targets).coef_.T
    return (W.toarray() if sp.issparse(W) else W), model


def is_same(engine, **settings) -> bool:
    """Whether the weights are those of the threads of this process, bit for bit."""
    (here, _), (there, _) = solved("threads", **settings), solved(engine, **settings)
    return here.dtype == there.dtype and here.tobytes() == there.tobytes()


def said(function) -> tuple[object, list[str]]:
    """Result of a call and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function()
    return result, [str(w.message) for w in caught if issubclass(w.category, LocoleWarning)]


def processes(start: bytes) -> list[int]:
    """Processes of this scene whose command line starts so."""
    token, found = os.environ["LOCOLE_SCENE"].encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_one = (folder / "cmdline").read_bytes().startswith(start)
            if is_one and token in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def busy_workers() -> list[int]:
    """Those that are doing a task of ours."""
    return processes(b"ray::_work")


def when_busy(action, n_workers: int = 1) -> threading.Thread:
    """Act as soon as so many tasks are under way."""
    return when(lambda: len(busy_workers()) >= n_workers, action)


def when(condition, action) -> threading.Thread:
    """Act as soon as a condition is true."""

    def wait_and_act():
        while not condition():
            time.sleep(0.05)
        action()

    thread = threading.Thread(target=wait_and_act, daemon=True)
    thread.start()
    return thread


def comes_true(condition, patience_s: float = 20.0) -> bool:
    deadline = time.monotonic() + patience_s
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
    return condition()


@contextmanager
def cluster(n_nodes: int):
    import ray
    from ray.cluster_utils import Cluster

    head = {**STORE, "include_dashboard": False, "_system_config": HEALTH}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        nodes = [made.add_node(**STORE) for _ in range(n_nodes - 1)]
        yield made, nodes
    finally:
        ray.shutdown()
        made.shutdown()
        # What a killed node of this cluster leaves would end by itself, but later. (The cluster of
        # `interrupted` is the engine's own, and nothing is cleared away there.)
        for process in processes(b""):
            if process != os.getpid():
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)


def three_nodes() -> dict[str, object]:
    X, y = problem()
    with cluster(3) as (made, nodes):
        engine = RayEngine(made.address)
        report: dict[str, object] = {}
        with engine.running():
            import ray

            report["nodes"] = len(ray.nodes())
            found = list(engine.map(square, range(12), shared=np.ones(1000)))
            report["order"] = [place for place, _ in found]
            report["squares"] = dict(found) == {i: 1000.0 + i**2 for i in range(12)}
            report["two_at_a_time"] = in_order(
                engine, square, range(5), shared=np.ones(1), n_jobs=2
            ) == [1.0 + i**2 for i in range(5)]
            report["dense"] = is_same(engine)
            report["sparse"] = is_same(engine, l1=0.05)
            with tempfile.TemporaryDirectory() as folder:
                files._LARGE_BYTES = 1 << 10
                report["through_files"] = is_same(RayEngine(made.address, folder=folder))
                report["files"] = len(os.listdir(folder))
            here, there = (PPDSparse(engine=e).fit(abs(X), y) for e in ("threads", engine))
            report["ppd_sparse"] = (here.coef_.T != there.coef_.T).nnz == 0 and bool(
                (here.gaps_ == there.gaps_).all()
            )
            sets = [[label, (label + row) % 40] for row, label in enumerate(y)]
            several = [
                LocoleClassifier("kerdock", regressor="elastic_net", engine=e).fit(X, sets)
                for e in ("threads", engine)
            ]
            here, there = (model.regressor_.coef_.T.tobytes() for model in several)
            report["several_labels"] = here == there
            try:
                in_order(engine, refuse, [7], shared=None)
            except LocoleError as error:
                report["refused"] = str(error)
            found = engine.map(nap, range(4), shared=None)
            next(found)
            # One that Ray is just starting would escape.
            comes_true(lambda: len(busy_workers()) == 3)
            found.close()
            report["cancelled"] = comes_true(lambda: not busy_workers())
            with slow_blocks():
                killer = when_busy(lambda: os.kill(busy_workers()[0], signal.SIGKILL))
                report["worker"], report["worker_said"] = said(lambda: is_same(engine))
                killer.join()
                killer = when_busy(
                    lambda: made.remove_node(nodes[0], allow_graceful=False), n_workers=3
                )
                report["node"], report["node_said"] = said(lambda: is_same(engine))
                killer.join()
        report["left"] = not ray.is_initialized()
        # The cluster was not ours: it is still there, with the nodes that live.
        with engine.running():
            report["stays"] = sum(node["Alive"] for node in ray.nodes())
    return report


def lost_head() -> dict[str, object]:
    X, y = problem()
    few = X[:300], y[:300]
    regressor = ElasticNetRegressor(l2=0.5, max_passes=3, tol=0)
    model = LocoleClassifier("rademacher", dim=300, regressor=regressor).fit(X, y)
    before, wanted = model.predict(X), clone(model).fit(*few).regressor_.coef_.T
    watching._PATIENCE_S = 4.0
    with tempfile.TemporaryDirectory() as folder, cluster(2) as (made, _):

        def kill_head():
            for processes in made.head_node.all_processes.values():
                for process in processes:
                    process.process.kill()

        model.set_params(engine=RayEngine(made.address), regressor__checkpoint=folder)
        killer = when(lambda: os.listdir(folder) and busy_workers(), kill_head)
        report: dict[str, object] = {}
        with slow_blocks():
            start = time.monotonic()
            try:
                model.fit(*few)
            except LocoleError as error:
                report["error"] = str(error)
            report["seconds"] = time.monotonic() - start
        killer.join()
        report["same_model"] = bool((model.predict(X) == before).all())
        report["kept"] = len(os.listdir(folder))
        again = model.set_params(engine="threads").fit(*few).regressor_.coef_.T
        report["same_weights"] = again.tobytes() == wanted.tobytes()
    return report


def interrupted() -> dict[str, object]:
    """Ctrl-C at a cluster that the engine has started itself, then a second fit in peace."""
    engine = RayEngine("local")
    report: dict[str, object] = {}
    with slow_blocks():
        when_busy(lambda: os.kill(os.getpid(), signal.SIGINT))
        try:
            solved(engine, n_jobs=1)
        except KeyboardInterrupt:
            report["interrupted"] = True
    import ray

    report["left"] = not ray.is_initialized() and not busy_workers()
    with engine.running(2):
        report["same_afterwards"] = is_same(engine, n_jobs=2)
        report["commands"] = commands()
    return report


def commands() -> dict[str, object]:
    """Fit and predict at the command line, on threads and on the cluster."""
    ray, shards = ["--engine", "ray", "--address", "local"], "shards"
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(sys.stderr):
        os.chdir(folder)
        write_samples(Path(folder))
        os.mkdir(shards)
        Path("mine.toml").write_text(SPEC)
        lines = Path("test.svm").read_text().splitlines(keepends=True)
        for part in range(3):
            Path(shards, f"part-{part}.svm").write_text("".join(lines[part::3]))
        codes = [
            main(["fit", "train.svm", "-o", "here", "--l1", "0.01"]),
            main(["fit", "train.svm", "-o", "there", "--l1", "0.01", *ray]),
            main(["fit", "train.svm", "-o", "ppd", "--model", "ppd_sparse", *ray]),
            main(["predict", "here", shards, "-o", "one"]),
            main(["predict", "there", shards, "-o", "two", *ray]),
            main(["bench", "mine.toml", "--out", "records", "--jobs", "1", *ray]),
        ]
        records = [json.loads(line) for line in Path("records/mine.jsonl").read_text().splitlines()]
        os.chdir("/")
        return {
            "codes": codes,
            "runs": sorted((record["seed"], record["status"]) for record in records),
            "files": sorted(os.listdir(Path(folder, "two"))),
            "same": [
                Path(folder, "one", name).read_bytes() == Path(folder, "two", name).read_bytes()
                for name in sorted(os.listdir(Path(folder, "two")))
            ],
        }


def play_one(scenes) -> None:
    """Play the scene that the command line names, and print its report."""
    print(json.dumps(scenes[sys.argv[1]]()))


if __name__ == "__main__":
    play_one({"three_nodes": three_nodes, "lost_head": lost_head, "interrupted": interrupted})
