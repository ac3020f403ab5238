"""Saving is all or nothing: at every moment the folder holds the old model or the new one."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import linecache
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from bags import letter_bag, letter_of

from locole.exceptions import ModelFileError
from locole.io import FORMAT, read_manifest, read_model, write_model
from locole.io import folder as folder_module

HERE = Path(__file__).parent
# How often a save is killed; the other storms are in proportion.
KILLS = 300
STEPS = ("mkdir", "fsync", "replace", "unlink")


def letter_in(path):
    return letter_of(read_model(path, verify=True))


def on_every_step(monkeypatch, action):
    """Call ``action(name)`` before every call of the system that changes the folder."""
    originals = {name: getattr(os, name) for name in STEPS}
    for name, original in originals.items():

        def step(*args, name=name, original=original, **kwargs):
            with monkeypatch.context() as patch:
                for other, function in originals.items():
                    patch.setattr(os, other, function)
                action(name)
            return original(*args, **kwargs)

        monkeypatch.setattr(os, name, step)


def test_saves_killed_interrupted_and_read_at_random_moments(tmp_path):
    run = subprocess.run(
        [sys.executable, HERE / "save_storm.py", tmp_path, str(KILLS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    seen = json.loads(run.stdout)
    killed, interrupted, each = seen["killed"], seen["interrupted"], seen["each"]
    # Before each call of the system: the old model up to one moment, and from then on the new one.
    assert each["a"] > 40
    assert each["b"] > 5
    assert each["turns"] == 1
    assert each["litter"] > 20
    assert killed["a"] + killed["b"] == KILLS
    # Many kills came in the middle of a save, else they would show nothing.
    assert killed["litter"] > KILLS // 20
    assert interrupted["litter"] == 0
    assert all(storm["left_at_the_end"] == 0 for storm in seen.values())


def test_the_folder_is_whole_at_every_step(tmp_path, monkeypatch):
    write_model(tmp_path / "model", letter_bag("a"))
    snapshots = []

    def snap(name):
        snapshots.append(tmp_path / f"snapshot {len(snapshots)}")
        shutil.copytree(tmp_path / "model", snapshots[-1])

    with monkeypatch.context() as patch:
        on_every_step(patch, snap)
        write_model(tmp_path / "model", letter_bag("b"))
    letters = "".join(letter_in(snapshot) for snapshot in snapshots)
    assert letters.startswith("aa")
    assert "a" not in letters.lstrip("a")
    assert len(letters) >= 6
    assert letter_in(tmp_path / "model") == "b"


def test_the_manifest_is_replaced_when_everything_is_on_disk(tmp_path, monkeypatch):
    write_model(tmp_path / "model", letter_bag("a"))
    steps = []
    on_every_step(monkeypatch, steps.append)
    write_model(tmp_path / "model", letter_bag("b"))
    # Arrays, then the folder that names them, then the manifest, then the folder, then the rest.
    expected = ["fsync", "replace", "fsync", "fsync", "replace", "fsync", "unlink"]
    assert steps == ["mkdir", *expected]


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), OSError(errno.ENOSPC, "no space left")])
@pytest.mark.parametrize("exists", [True, False])
def test_a_save_that_fails_at_any_step_leaves_no_litter(tmp_path, monkeypatch, stop, exists):
    path = tmp_path / "model"
    for fatal in range(20):
        shutil.rmtree(path, ignore_errors=True)
        if exists:
            write_model(path, letter_bag("a"))
        steps = []

        def fail(name, fatal=fatal, steps=steps):
            steps.append(name)
            if len(steps) == fatal + 1:
                raise stop

        with monkeypatch.context() as patch:
            on_every_step(patch, fail)
            try:
                write_model(path, letter_bag("b"))
                done = True
            except (KeyboardInterrupt, OSError):
                done = False
        if len(steps) <= fatal:
            break
        was_placed = steps[:fatal].count("replace") == 2
        if not exists and not was_placed:
            assert not path.exists()
        else:
            assert letter_in(path) == ("b" if was_placed else "a")
            # A full disk does not keep an old file from being removed the second time.
            assert len(os.listdir(path)) == 2 or (done and isinstance(stop, OSError))
    assert fatal > 5


# A file whose name was not yet known is closed when it is collected.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("exists", [True, False])
def test_a_save_interrupted_before_any_line_leaves_no_litter(tmp_path, monkeypatch, exists):
    files = (folder_module.__file__, contextlib.__file__)
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    path, old, new = tmp_path / "model", letter_bag("a"), letter_bag("b")
    _make, seen = folder_module._make, ""
    for number in itertools.count():
        shutil.rmtree(path, ignore_errors=True)
        if exists:
            write_model(path, old)
        left = itertools.count(number, -1)

        def trace(frame, event, _, left=left):
            if frame.f_code.co_filename not in files:
                return None
            # Python looks for signals at calls, never at a mere "try:".
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
            if event == "line" and line.strip() != "try:" and next(left) == 0:
                raise KeyboardInterrupt
            return trace

        def make(folder, trace=trace):
            # The first step that touches the folder.
            sys.settrace(trace)
            sys._getframe(1).f_trace = trace
            return _make(folder)

        before = sys.gettrace()
        try:
            with monkeypatch.context() as patch:
                patch.setattr(folder_module, "_make", make)
                write_model(path, new)
                break
        except KeyboardInterrupt:
            assert not path.exists() or len(os.listdir(path)) == 2
            seen += letter_in(path) if path.exists() else "-"
        finally:
            sys.settrace(before)
    assert set(seen) == ({"a", "b"} if exists else {"-", "b"})
    assert len(seen) > 100


def test_a_reader_that_comes_between_two_files_tries_again(tmp_path, monkeypatch):
    path = tmp_path / "model"
    write_model(path, letter_bag("a"))
    original, bags = folder_module._read_manifest, [letter_bag("b"), letter_bag("c")]

    def read_slowly(folder):
        manifest = original(folder)
        if bags:
            with monkeypatch.context() as patch:
                patch.setattr(folder_module, "_read_manifest", original)
                write_model(path, bags.pop(0))
        return manifest

    monkeypatch.setattr(folder_module, "_read_manifest", read_slowly)
    assert letter_in(path) == "c"


def test_a_loaded_model_outlives_its_files(tmp_path):
    path = tmp_path / "model"
    write_model(path, letter_bag("a"))
    loaded = read_model(path)
    write_model(path, letter_bag("b"))
    assert letter_of(loaded) == "a"
    write_model(path, loaded)
    shutil.rmtree(path)
    assert letter_of(loaded) == "a"


def test_a_model_can_be_saved_where_it_was_loaded_from(tmp_path):
    path = tmp_path / "model"
    write_model(path, letter_bag("a"))
    before = sorted(os.listdir(path))
    write_model(path, read_model(path))
    assert sorted(os.listdir(path)) == before
    assert letter_in(path) == "a"


def test_savers_of_one_folder_wait_for_each_other(tmp_path):
    path = tmp_path / "model"
    errors = []

    def save_often(letter):
        try:
            for _ in range(20):
                write_model(path, letter_bag(letter))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=save_often, args=[letter]) for letter in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert letter_in(path) in "abc"
    assert len(os.listdir(path)) == 2


def test_a_change_of_a_model_that_was_replaced_meanwhile_is_refused(tmp_path):
    path = tmp_path / "model"
    write_model(path, letter_bag("a"))
    first = read_manifest(path)
    write_model(path, letter_bag("b"), replaces=first)
    message = r"model holds another model than the one that was changed, .*: make the change again"
    with pytest.raises(ModelFileError, match=message):
        write_model(path, letter_bag("c"), replaces=first)
    assert letter_in(path) == "b"
    assert len(os.listdir(path)) == 2
    # Notes count: who changed them has made another model.
    second = read_manifest(path)
    write_model(path, letter_bag("b"), notes={"note": "mine"}, replaces=second)
    with pytest.raises(ModelFileError, match="somebody else has replaced it meanwhile"):
        write_model(path, letter_bag("c"), replaces=second)


# --- where a model may be written ---


def test_files_of_others_are_left_alone(tmp_path):
    path = tmp_path / "model"
    write_model(path, letter_bag("a"))
    (path / "README.md").write_text("mine")
    (path / "arrays-of-mine.safetensors").write_text("mine")
    write_model(path, letter_bag("b"))
    assert letter_in(path) == "b"
    others = {"README.md", "arrays-of-mine.safetensors"}
    assert set(os.listdir(path)) == {"manifest.json", read_manifest(path).arrays_file, *others}


def test_what_a_killed_save_has_left_is_removed(tmp_path):
    path = tmp_path / "model"
    path.mkdir()
    (path / ".saving-0123456789abcdef").write_bytes(b"half")
    (path / f"arrays-{'0' * 32}.safetensors").write_bytes(b"whole")
    write_model(path, letter_bag("a"))
    assert len(os.listdir(path)) == 2


def test_an_empty_folder_and_a_link_to_a_folder_will_do(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_model(tmp_path / "link", letter_bag("a"))
    assert letter_in(tmp_path / "real") == "a"


@pytest.mark.parametrize(
    ("files", "part"),
    [
        ({"thesis.tex": "text"}, "holds no model"),
        ({"manifest.json": "{}"}, "cannot read"),
        ({"manifest.json": f'{{"format": {FORMAT + 1}}}'}, "made by a newer locole"),
        ({"manifest.json": "\0\1"}, "cannot read"),
        ({f"arrays-{'0' * 32}.safetensors": "x", "other": "y"}, "holds no model"),
    ],
)
def test_a_folder_with_something_else_is_left_alone(tmp_path, files, part):
    path = tmp_path / "work"
    path.mkdir()
    for name, text in files.items():
        (path / name).write_text(text)
    with pytest.raises(ModelFileError, match=part):
        write_model(path, letter_bag("a"))
    assert {p.name: p.read_text() for p in path.iterdir()} == files


def test_paths_that_cannot_be_folders(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ModelFileError, match="is a file"):
        write_model(tmp_path / "file", letter_bag("a"))
    with pytest.raises(ModelFileError, match="there is no folder"):
        write_model(tmp_path / "no" / "such", letter_bag("a"))
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ModelFileError, match="is a file"):
        write_model(tmp_path / "dangling", letter_bag("a"))
    assert (tmp_path / "file").read_text() == "mine"


def test_paths_of_every_kind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ("plain", "with blank", "é", tmp_path / "absolute", Path("relative")):
        write_model(path, letter_bag("a"))
        assert letter_in(path) == "a"
