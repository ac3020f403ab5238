"""The models that are served, each replaced when its folder is."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from locole.exceptions import LocoleError
from locole.parallel.memory import release_free_memory
from locole.serving.problems import Problem
from locole.serving.served import OpenModel, ServedModel, load_served, stamp_of

__all__ = ["Registry", "places_of"]

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

#: Told what happened to which model, and more about it.
Listener = Callable[[str, str, dict[str, Any]], None]


def places_of(words: Iterable[str]) -> dict[str, str]:
    """Names and folders of models, given as ``folder`` or ``name=folder``.

    Examples
    --------
    >>> places_of(["models/cities", "names=models/old"])
    {'cities': 'models/cities', 'names': 'models/old'}
    """
    places: dict[str, str] = {}
    for word in words:
        name, equals, path = word.partition("=")
        if not (equals and _ID.fullmatch(name)):
            name, path = Path(word).absolute().name, word
        if not _ID.fullmatch(name):
            raise LocoleError(
                f"{name!r} is no name for an address: give NAME={word} with letters, digits, . _ and -."
            )
        if name in places:
            raise LocoleError(f"two models are called {name}: give one as NAME={word}.")
        places[name] = path
    return places


class Registry:
    """Models by name. Who asks gets a model that stays as it is while it is used.

    A folder whose manifest has changed is loaded beside the old model, which goes on answering until
    the new one has answered once; then one takes the other's place. A new one that cannot be loaded
    is refused, and not tried again until the folder changes again.

    Parameters
    ----------
    places : dict of str
        Folders by name. Requests only choose a name among these.
    open_model : callable
        From a path to a model and its notes.
    listener : callable, optional
        Told of ``loaded``, ``reloaded`` and ``refused`` models.
    """

    def __init__(
        self, places: dict[str, str], open_model: OpenModel, *, listener: Listener | None = None
    ) -> None:
        self._places, self._open = places, open_model
        self.listener = listener
        self._served: dict[str, ServedModel] = {}
        self._seen: dict[str, Any] = {}
        # Loading and learning, one at a time: both replace models.
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._watcher: threading.Thread | None = None

    def load(self) -> None:
        """Load all models; raises if one cannot be loaded."""
        for name, path in self._places.items():
            self._seen[name] = stamp_of(path)
            self._served[name] = load_served(name, path, self._open)
            self._tell("loaded", name, self._about(name))

    def all(self) -> list[ServedModel]:
        """Models in the order in which they were given."""
        return list(self._served.values())

    def get(self, name: str) -> ServedModel:
        """Return the model of that name as it is now, or raise `Problem` 404."""
        found = self._served.get(name)
        if found is None:
            raise Problem(404, "there is no such model here.", title="Project not found")
        return found

    # Replace ------------------------------------------------------------------------------------

    def refresh(self) -> bool:
        """Load the models whose folders have changed; say whether there were any."""
        changed = False
        for name, path in self._places.items():
            with self._lock:
                stamp = stamp_of(path)
                if stamp is not None and stamp != self._seen[name]:
                    self._seen[name] = stamp
                    self._reload(name, path)
                    changed = True
        return changed

    def _reload(self, name: str, path: str) -> None:
        try:
            new = load_served(name, path, self._open)
        except (LocoleError, OSError, ValueError, MemoryError) as error:
            self._tell("refused", name, {**self._about(name), "reason": str(error)})
            return
        self._served[name] = new
        self._tell("reloaded", name, self._about(name))

    def replace(self, name: str, change: Callable[[ServedModel, str], None]) -> ServedModel:
        """Let a function write another model into the folder of one, and take that up.

        Nobody else of this process replaces models meanwhile.
        """
        with self._lock:
            self.refresh()
            change(self.get(name), self._places[name])
            self.refresh()
            return self.get(name)

    # Watch --------------------------------------------------------------------------------------

    def watch(self, every_s: float) -> None:
        """Look at the folders again and again, in a thread of its own, until `close`."""
        if every_s > 0:
            self._watcher = threading.Thread(
                target=self._keep_watching, args=(every_s,), name="locole-reload", daemon=True
            )
            self._watcher.start()

    def close(self) -> None:
        """End the watching."""
        self._ended.set()
        if self._watcher is not None:
            self._watcher.join()

    def _keep_watching(self, every_s: float) -> None:
        changed = False
        while not self._ended.wait(every_s):
            if changed:
                # Who asked the old model has been answered since.
                release_free_memory()
            changed = self.refresh()

    def _about(self, name: str) -> dict[str, Any]:
        served = self._served[name]
        return {"version": served.version, "labels": served.n_labels}

    def _tell(self, event: str, name: str, about: dict[str, Any]) -> None:
        if self.listener is not None:
            self.listener(event, name, about)
