"""What the routes of one app share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from fastapi import Request

from locole.serving.batching import Batcher
from locole.serving.figures import Figures
from locole.serving.registry import Registry
from locole.serving.settings import Settings

__all__ = ["State", "state_of"]


@dataclass
class State:
    """Models, limits, threads and figures of a server."""

    registry: Registry
    settings: Settings
    figures: Figures
    batcher: Batcher
    is_ending: Callable[[], bool]


def state_of(request: Request) -> State:
    """State of the app that got the request."""
    return cast(State, request.app.state.serving)
