"""Settings of all tests: the same examples every time, whatever the machine."""

from __future__ import annotations

import signal

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

# A shell in the background has its children ignore Ctrl-C, and they theirs; tests send it to some.
signal.signal(signal.SIGINT, signal.default_int_handler)
