"""A Ray cluster of two hosts in two network namespaces: ``make check-hosts``.

Makes two namespaces joined by a cable of their own (a veth pair), starts a node of a cluster in each,
fits an elastic net and a network on both, and compares the weights with those of this process and the
bytes on the cable with what should have moved. Needs root and ``ip``; says so and ends with code 3
where that is not allowed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from locole.embeddings import Rademacher
from locole.parallel import RayEngine
from locole.regressors import ElasticNetRegressor, MLPRegressor
from locole.targets import Targets

NAMES = (f"locole-a-{os.getpid()}", f"locole-b-{os.getpid()}")
ADDRESSES = ("10.93.7.1", "10.93.7.2")
PORT = 6399
NOT_ALLOWED = 3
RAY = str(Path(sys.executable).with_name("ray"))
ENVIRONMENT = {
    **os.environ,
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": os.environ.get("RAY_AUTH_MODE", "disabled"),
}


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def make_hosts() -> None:
    """Two namespaces, a cable between them, an address at each end."""
    for name in NAMES:
        ip("netns", "add", name)
    ip("link", "add", "wire", "netns", NAMES[0], "type", "veth", "peer", "wire", "netns", NAMES[1])
    for name, address in zip(NAMES, ADDRESSES, strict=True):
        for link in ("lo", "wire"):
            ip("-n", name, "link", "set", link, "up")
        ip("-n", name, "addr", "add", f"{address}/24", "dev", "wire")


def remove_hosts() -> None:
    for name in NAMES:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def start_node(place: int) -> subprocess.Popen:
    """One node of the cluster, as a process that ends with it."""
    role = ["--head", f"--port={PORT}"] if place == 0 else [f"--address={ADDRESSES[0]}:{PORT}"]
    command = [
        "ip", "netns", "exec", NAMES[place], RAY, "start", *role, "--block", "--num-cpus=1",
        f"--node-ip-address={ADDRESSES[place]}", "--object-store-memory=200000000",
        "--disable-usage-stats", "--include-dashboard=false" if place == 0 else "--log-style=record",
    ]  # fmt: skip
    return subprocess.Popen(
        command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def moved_bytes() -> tuple[int, int]:
    """What the second host has received and sent so far."""
    found = []
    for way in ("rx", "tx"):
        command = [
            "ip",
            "netns",
            "exec",
            NAMES[1],
            "cat",
            f"/sys/class/net/wire/statistics/{way}_bytes",
        ]
        found.append(int(subprocess.run(command, check=True, capture_output=True).stdout))
    return found[0], found[1]


def problem() -> tuple[sp.csr_array, Targets]:
    rng = np.random.default_rng(0)
    X = sp.random_array((20_000, 20_000), density=0.003, rng=rng, format="csr", dtype=np.float32)
    return X, Targets(rng.integers(0, 1_000, X.shape[0]), Rademacher(1_000, dim=512))


def fitted(engine: object) -> np.ndarray:
    return ElasticNetRegressor(l2=1.0, max_passes=6, tol=0, engine=engine).fit(*problem()).coef_


def learnt(engine: object, epochs: int) -> np.ndarray:
    """First layer of a network; a step has 128 rows."""
    network = MLPRegressor(
        hidden=256, epochs=epochs, batch_size=128, start="random", skip=False, engine=engine
    )
    return network.fit(*problem()).first_


def drive() -> None:
    """Fit on the cluster; run in the first namespace."""
    import ray

    engine = RayEngine(f"{ADDRESSES[0]}:{PORT}")
    deadline = time.monotonic() + 60
    with engine.running():
        while sum(node["Alive"] for node in ray.nodes()) < 2:
            if time.monotonic() > deadline:
                raise SystemExit("the second host has not joined within a minute.")
            time.sleep(0.5)
        fitted(engine)  # workers start
        before, start = moved_bytes(), time.perf_counter()
        W = fitted(engine)
        seconds = time.perf_counter() - start
        time.sleep(1)
        after = moved_bytes()
        # What one epoch more has moved is what its steps have.
        marks = []
        for epochs in (1, 2):
            marks.append(moved_bytes())
            first = learnt(engine, epochs)
            time.sleep(1)
        marks.append(moved_bytes())
    X, targets = problem()
    steps = -(-X.shape[0] // 128)
    received = [(c - b) - (b - a) for a, b, c in zip(*marks, strict=True)]
    width, n_outputs = first.shape[1], targets.shape[1]
    exchanged = 4 * (128 * (2 * width + 2 * n_outputs) + width * n_outputs)
    network = {
        "same": bool(np.array_equal(first, learnt("threads", 2))),
        "received_a_step": received[0] / steps,
        "sent_a_step": received[1] / steps,
        "expected_a_step": exchanged / 2,
        "first_layer_bytes": first.nbytes,
    }
    figures = {
        "same": bool(np.array_equal(W, fitted("threads"))),
        "seconds": seconds,
        "x_bytes": X.data.nbytes + X.indices.nbytes + X.indptr.nbytes,
        "w_bytes": W.nbytes,
        "received_by_second_host": after[0] - before[0],
        "sent_by_second_host": after[1] - before[1],
        "network": network,
    }
    print(json.dumps(figures, indent=2))
    raise SystemExit(0 if figures["same"] and network["same"] else 1)


def main() -> int:
    try:
        make_hosts()
    except (OSError, subprocess.CalledProcessError) as error:
        remove_hosts()
        reason = getattr(error, "stderr", "") or str(error)
        print(f"this machine does not allow network namespaces: {reason.strip()}", file=sys.stderr)
        return NOT_ALLOWED
    nodes: list[subprocess.Popen] = []
    try:
        nodes.append(start_node(0))
        time.sleep(5)
        nodes.append(start_node(1))
        command = ["ip", "netns", "exec", NAMES[0], sys.executable, __file__, "drive"]
        done = subprocess.run(
            command, env={**ENVIRONMENT, "LOCOLE_HOSTS": ",".join(NAMES)}, check=False
        )
        return done.returncode
    finally:
        for node in reversed(nodes):
            node.terminate()
        for node in nodes:
            node.wait(timeout=60)
        remove_hosts()


if __name__ == "__main__":
    if "drive" in sys.argv[1:]:
        NAMES = tuple(os.environ["LOCOLE_HOSTS"].split(","))
        drive()
    raise SystemExit(main())
