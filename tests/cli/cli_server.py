"""Runs ``locole`` for shells of the tests in a fork of a process that has imported everything.

A start of Python with all imports takes two seconds, a fork some milliseconds. The client, a few lines
of Python, hands its arguments, folder and open files over a socket and ends with the code it gets.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from samples import write_samples

#: For processes of tests: this tree, one thread for each, and any character.
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(Path(__file__).parents[2]),
    "PYTHONIOENCODING": "utf-8",
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
}
CLIENT = """\
import array, json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({path!r})
    files = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]
    server.sendmsg([json.dumps([os.getcwd(), sys.argv[1:]]).encode()], files)
    for number in range(3):
        os.close(number)
    os._exit(server.recv(1)[0])
"""


def write_command(folder: Path, path: str) -> None:
    """Make the command ``locole`` in a folder for PATH."""
    (folder / "client.py").write_text(CLIENT.format(path=path))
    command = folder / "locole"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E {folder}/client.py "$@"\n')
    command.chmod(0o755)


def warm_up() -> None:
    """Import everything and load the compiled kernels, which every fork then has."""
    import locole.cli.cities
    import locole.cli.page  # noqa: F401
    from locole.cli import main

    with tempfile.TemporaryDirectory() as folder:
        write_samples(Path(folder))
        for kind in ("tsv", "svm"):
            train, test, model = (
                f"{folder}/{name}" for name in (f"train.{kind}", f"test.{kind}", kind)
            )
            code = main(["fit", train, "-o", model, "--test", test, "--json", "-j", "1"])
            assert code == 0


def serve(path: str) -> None:
    """Answer one client after the other, for ever."""
    sys.stdout, stdout = sys.stderr, sys.stdout
    warm_up()
    sys.stdout = stdout
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(8)
    print("ready", flush=True)
    while True:
        client, _ = listener.accept()
        if os.fork() == 0:
            # A grandchild does the work, so that the commands of a pipe run side by side.
            if os.fork():
                os._exit(0)
            listener.close()
            _answer(client)
        os.wait()
        client.close()


def _answer(client: socket.socket) -> None:
    from locole.cli import main

    code = 99
    try:
        words, files, _, _ = socket.recv_fds(client, 1 << 16, 3)
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        # The server's own are bound to other files.
        for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
        folder, arguments = json.loads(words)
        os.chdir(folder)
        code = main(arguments)
        sys.stdout.flush()
    finally:
        sys.stderr.flush()
        client.sendall(bytes([code]))
        os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
