"""`locole serve` under load: ``make bench-serve``, saved in ``benchmarks/records/serve.json``.

A model of 10,106 labels (``cve_product`` where the data are there, otherwise generated texts) is asked

- directly, one text a call on one thread, and in batches, on all;
- through HTTP by wrk, a text a request, with more and more connections;
- for ten minutes by mixed requests (single, batch, sets and explanations, labels, cards, Annif's
  interface, bad ones), while the memory of the server is watched and its model is replaced by one
  whose labels have other names, so that an answer of two versions would be seen; they end once the
  model has been replaced a hundred times, later on a slow machine;
- before and after ``kill -9`` in the midst of requests.

Takes about twelve minutes, most of them for the mixed requests. Needs wrk (``apt-get install wrk``).
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import machine
import numpy as np

from locole import load
from locole.datasets import load_texts, make_topics
from locole.text import TextClassifier

RECORD = Path(__file__).parent / "records" / "serve.json"
N_LABELS, TEXTS = 10_106, 2_000
CONNECTIONS = (1, 2, 4, 8, 16, 32)
BATCH = 64
# What the labels of every other model end with.
MARK = " (2)"
# wrk is given a time in advance; where the end is not known yet, it is interrupted.
LONGEST_S = 24 * 60 * 60
# wrk's own language: requests from a file, one after the other; figures as one line of JSON.
SCRIPT = """
local lines, threads, i = {}, {}, 0
unexpected, mixed = 0, 0
for line in io.lines("FILE") do lines[#lines + 1] = line end
setup = function(thread) threads[#threads + 1] = thread end
request = function()
  i = i % #lines + 1
  local method, path, kind, body = lines[i]:match("^(%S+)\\t(%S+)\\t(%S+)\\t(.*)$")
  return wrk.format(method, path, {["Content-Type"] = kind, Host = wrk.headers["Host"]}, body)
end
response = function(status, _, body)
  if status ~= 200 and status ~= 400 then unexpected = unexpected + 1 end
  local version = body:match('"version":"(%x+)"')
  if version then
    local _, all = body:gsub('"label":"', '')
    local _, marked = body:gsub('"label":"[^"]* %(2%)"', '')
    if marked ~= (version == "FIRST" and 0 or all) then mixed = mixed + 1 end
  end
end
done = function(summary, latency, _)
  local e = summary.errors
  local others, torn = 0, 0
  for _, thread in ipairs(threads) do
    others, torn = others + thread:get("unexpected"), torn + thread:get("mixed")
  end
  io.write(string.format(
    '{"requests": %d, "seconds": %f, "p50_s": %f, "p99_s": %f, "max_s": %f, ' ..
    '"not_2xx": %d, "unexpected": %d, "mixed": %d, "failed": %d}\\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e6,
    latency:percentile(99) / 1e6, latency.max / 1e6, e.status, others, torn,
    e.connect + e.read + e.write + e.timeout))
end
"""
JSON, FORM = "application/json", "application/x-www-form-urlencoded"


def texts_of(data: Path) -> tuple[str, list[str], Any, list[str]]:
    """Name of the data, training texts with labels, test texts."""
    folder = data / "cve_product"
    if folder.exists():
        texts, labels = load_texts(folder / "train.tsv.xz")
        return folder.name, texts, labels, load_texts(folder / "test.tsv.xz")[0][:TEXTS]
    rows = make_topics(60_000, 100_000, N_LABELS, nnz_per_row=30, test_size=TEXTS)
    train, test = (_as_texts(X) for X in (rows.X_train, rows.X_test))
    return "generated", train, [f"topic {label}" for label in rows.y_train], test


def _as_texts(X: Any) -> list[str]:
    return [" ".join(f"w{j}" for j in X.indices[a:b]) for a, b in itertools.pairwise(X.indptr)]


def direct(path: Path, texts: list[str]) -> dict[str, float]:
    """Rates of the library: a text a call on one thread; batches on one and on all threads."""
    model = load(path)
    found = {}
    model.classifier_.set_params(n_jobs=1)
    for text in texts[:100]:
        model.predict_topk([text], k=5, proba=True)
    times = []
    for text in texts[100:1100]:
        start = time.perf_counter()
        model.predict_topk([text], k=5, proba=True)
        times.append(time.perf_counter() - start)
    found["single_per_s"] = 1 / float(np.mean(times))
    found["single_p50_s"] = float(np.median(times))
    found["single_p99_s"] = float(np.quantile(times, 0.99))
    start = time.perf_counter()
    for i in range(0, len(texts), BATCH):
        model.predict_topk(texts[i : i + BATCH], k=5, proba=True)
    found["batch_per_s"] = len(texts) / (time.perf_counter() - start)
    return found


class Server:
    """`locole serve` in a process of its own."""

    def __init__(self, path: Path, jobs: int) -> None:
        words = [sys.executable, "-m", "locole", "serve", f"model={path}", "--port", "0", "--json"]
        self.process = subprocess.Popen(
            [*words, "-j", str(jobs)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        told = json.loads(self.process.stdout.readline())
        self.url, self.first_version = told["url"], told["models"][0]["version"]

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        assert self.process.wait(60) == 0
        assert self.process.stdout is not None
        self.process.stdout.close()

    def ask(self, path: str, body: Any = None) -> Any:
        """Answer to one request."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/{path}", data, {"Content-Type": JSON})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def cpu_s(self) -> float:
        """CPU seconds so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> tuple[int, int]:
        """Bytes in memory: all, and those that are the process's own."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        return tuple(1024 * int(lines[name].split()[0]) for name in ("VmRSS", "RssAnon"))  # type: ignore[return-value]

    def under(
        self,
        requests: list[str],
        *,
        connections: int,
        seconds: float = LONGEST_S,
        until: Callable[[], None] = lambda: None,
    ) -> dict[str, Any]:
        """Figures of wrk, which asks for some seconds, or until a function returns."""
        with tempfile.TemporaryDirectory() as folder:
            file, script = Path(folder) / "requests.tsv", Path(folder) / "ask.lua"
            file.write_text("".join(f"{line}\n" for line in requests), encoding="utf-8")
            filled = SCRIPT.replace("FILE", str(file)).replace("FIRST", self.first_version)
            script.write_text(filled)
            words = ["wrk", "-t1", f"-c{connections}", f"-d{round(seconds)}s", "-s", str(script)]
            words += ["--timeout", "30s", self.url]
            before = self.cpu_s()
            with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as asking:
                until()
                if seconds == LONGEST_S:
                    asking.send_signal(signal.SIGINT)
                said, _ = asking.communicate()
            found = json.loads(said.splitlines()[-1])
        if found["unexpected"] or found["mixed"] or found["failed"]:
            raise SystemExit(f"requests failed: {found}")
        found |= {"connections": connections, "per_s": found["requests"] / found["seconds"]}
        found["cpu_s_per_request"] = (self.cpu_s() - before) / max(found["requests"], 1)
        return found


def post(path: str, body: Any, kind: str = JSON) -> str:
    text = json.dumps(body) if kind == JSON else urlencode(body)
    return f"POST\t/{path}\t{kind}\t{text}"


def mixed(texts: list[str]) -> list[str]:
    """Requests of every kind; one in eight is refused."""
    found = []
    for i, text in enumerate(texts[:800]):
        api = "api/models/model"
        found += [
            post(f"{api}/predict", {"text": text}),
            post(f"{api}/predict", {"text": text, "k": 10, "coverage": 0.9}),
            post(f"{api}/predict", {"text": text, "explain": 1, "max_error": 0.1}),
            post("v1/projects/model/suggest", {"text": text, "limit": 5}, FORM),
            f"GET\t/{api}/labels?q={i % 100}\t{JSON}\t",
            f"GET\t/{api if i % 10 == 0 else 'healthz'}\t{JSON}\t",
            post(f"{api}/predict-batch", {"texts": texts[i : i + 10]}),
            post(f"{api}/predict", {"text": 5}),
        ]
    return found


def watched(
    server: Server, path: Path, other: Path, requests: list[str], *, minutes: float, times: int
) -> Any:
    """Mixed requests while memory is watched and the model replaced n times."""
    memory: list[tuple[float, int, int]] = []
    replaced: list[str] = []
    ended, start = threading.Event(), time.monotonic()

    def replace() -> None:
        models = itertools.cycle([load(other), load(path)])
        for i in range(times):
            time.sleep(max(0, start + i * 60 * minutes / times - time.monotonic()))
            next(models).save(path)
            before = (replaced or [server.first_version])[-1]
            while (new := server.ask("api/models")["models"][0]["version"]) == before:
                time.sleep(0.05)
            replaced.append(new)
        time.sleep(max(0, start + 60 * minutes - time.monotonic()))

    def watch() -> None:
        while not ended.wait(0.5):
            memory.append((time.monotonic() - start, *server.memory()))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        found = server.under(requests, connections=8, until=replace)
    finally:
        ended.set()
        watching.join()
    assert len(set(replaced)) == 2, replaced
    measured = {"minutes": found["seconds"] / 60, "replaced": len(replaced)}
    return {**found, **measured, "memory": by_tenth(memory)}


def by_tenth(memory: list[tuple[float, int, int]]) -> list[dict[str, float]]:
    """Smallest and largest memory within each tenth of the time: own bytes, and all."""
    found = []
    for part in np.array_split(np.array(memory), 10):
        own = np.sort(part[:, 2])
        found.append(
            {
                "until_s": float(part[-1, 0]),
                "own_bytes_min": int(own[0]),
                "own_bytes_p50": int(np.median(own)),
                "own_bytes_max": int(own[-1]),
                "all_bytes_max": int(part[:, 1].max()),
            }
        )
    return found


def killed(path: Path, jobs: int, requests: list[str], text: str) -> dict[str, Any]:
    """``kill -9`` in the midst of requests, and the same answer from the next server."""
    asked = "api/models/model/predict", {"text": text}
    server = Server(path, jobs)
    before = server.ask(*asked)
    load_ends = threading.Timer(1.5, server.process.kill)
    load_ends.start()
    with contextlib.suppress(SystemExit):  # requests fail here: that is the point
        server.under(requests, connections=8, seconds=3)
    load_ends.join()
    code = server.process.wait(60)
    assert server.process.stdout is not None
    server.process.stdout.close()
    start = time.monotonic()
    with Server(path, jobs) as again:
        after = again.ask(*asked)
        seconds = time.monotonic() - start
    assert before == after, (before, after)
    return {"exit_code": code, "same_answer": before == after, "restart_s": seconds}


def fitted(folder: Path, train: list[str], labels: Any) -> None:
    """A model, and the same one with other names of labels, to be replaced by one another."""
    model = TextClassifier().fit(train, labels)
    model.save(folder / "model")
    model.rename_labels({label: f"{label}{MARK}" for label in model.classes_.tolist()})
    model.save(folder / "renamed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--models", type=Path, help="folder to keep the two models in")
    parser.add_argument("--seconds", type=float, default=8, help="for each number of connections")
    parser.add_argument("--minutes", type=float, default=10, help="of mixed requests")
    parser.add_argument("--replaced", type=int, default=100, help="times, in these minutes")
    parser.add_argument("--jobs", type=int, default=2, help="threads of the server")
    parser.add_argument("--output", type=Path, default=RECORD)
    args = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("bench_serve needs wrk: apt-get install wrk")
    name, train, labels, texts = texts_of(args.data)
    with tempfile.TemporaryDirectory(prefix="locole-serve-") as temporary:
        folder = args.models or Path(temporary)
        folder.mkdir(exist_ok=True)
        paths = folder / "model", folder / "renamed"
        if not all(path.exists() for path in paths):
            fitted(folder, train, labels)
        record: dict[str, Any] = {
            "machine": machine.describe(),
            "data": name,
            "labels": len(load(paths[0]).classes_),
            "jobs": args.jobs,
            "direct": direct(paths[0], texts),
        }
        print(json.dumps(record["direct"]), file=sys.stderr, flush=True)
        single = [post("api/models/model/predict", {"text": text}) for text in texts]
        # The served model is replaced, so it is a copy.
        served = Path(temporary) / "served"
        shutil.copytree(paths[0], served)
        with Server(served, args.jobs) as server:
            server.under(single, connections=8, seconds=3)
            record["runs"] = []
            for connections in CONNECTIONS:
                run = server.under(single, connections=connections, seconds=args.seconds)
                assert run["not_2xx"] == 0, run
                run["ratio_to_direct"] = run["per_s"] / record["direct"]["single_per_s"]
                record["runs"].append(run)
                print(json.dumps(run), file=sys.stderr, flush=True)
            if args.minutes:
                record["mixed"] = watched(
                    server,
                    served,
                    paths[1],
                    mixed(texts),
                    minutes=args.minutes,
                    times=args.replaced,
                )
                print(json.dumps(record["mixed"]), file=sys.stderr, flush=True)
        record["killed"] = killed(served, args.jobs, single, texts[0])
        print(json.dumps(record["killed"]), file=sys.stderr, flush=True)
    args.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
