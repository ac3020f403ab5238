"""Settings of all tests: the same examples every time, whatever the machine."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "locole",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("locole")
