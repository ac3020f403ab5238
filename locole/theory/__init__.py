"""Coherence, bounds and the choice of a dimension."""
