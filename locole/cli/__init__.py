"""The command line: ``locole fit``, ``predict``, ``evaluate`` and the other verbs."""

from locole.cli.app import main

__all__ = ["main"]
