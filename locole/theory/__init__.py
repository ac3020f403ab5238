"""Coherence, bounds and the choice of a dimension."""

from locole.theory.bounds import (
    RiskBound,
    excess_risk_bound,
    lossless_margin,
    posterior_error_bar,
    required_coherence,
)
from locole.theory.certified import Certificate, certify
from locole.theory.coherence import Coherence, coherence
from locole.theory.dimension import Advice, Candidate, advise
from locole.theory.packing import (
    coherence_lower_bound,
    levenshtein_bound,
    orthoplex_bound,
    welch_bound,
)
from locole.theory.recovery import recovered_labels, recovery_coherence

__all__ = [
    "Advice",
    "Candidate",
    "Certificate",
    "Coherence",
    "RiskBound",
    "advise",
    "certify",
    "coherence",
    "coherence_lower_bound",
    "excess_risk_bound",
    "levenshtein_bound",
    "lossless_margin",
    "orthoplex_bound",
    "posterior_error_bar",
    "recovered_labels",
    "recovery_coherence",
    "required_coherence",
    "welch_bound",
]
