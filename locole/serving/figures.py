"""Figures for Prometheus."""

from __future__ import annotations

from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

__all__ = ["Figures"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_ROWS = (1, 2, 4, 8, 16, 32, 64)


class Figures:
    """What a server counts and measures."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        own: Any = {"registry": self.registry}
        self.requests = Counter(
            "locole_requests", "Requests that were answered.", ["route", "status", "model"], **own
        )
        self.seconds = Histogram(
            "locole_request_seconds", "Time to answer.", ["route"], buckets=_SECONDS, **own
        )
        self.rejected = Counter(
            "locole_rejected", "Requests that were refused, by why.", ["reason"], **own
        )
        self.rows = Counter("locole_rows", "Texts and rows that were answered.", ["model"], **own)
        self.batches = Histogram(
            "locole_batch_rows", "Rows that were answered together.", buckets=_ROWS, **own
        )
        self.waiting = Gauge("locole_waiting_rows", "Rows without an answer yet.", **own)
        self.models = Gauge(
            "locole_model_loaded_seconds",
            "When the model in use was loaded, in seconds since 1970.",
            ["model", "version"],
            **own,
        )
        self.reloads = Counter(
            "locole_reloads", "Models that were replaced or refused.", ["model", "result"], **own
        )
        ProcessCollector(registry=self.registry)

    def text(self) -> bytes:
        """All figures as Prometheus reads them."""
        return generate_latest(self.registry)
