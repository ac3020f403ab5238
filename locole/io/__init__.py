"""Model files: a folder with a strict manifest and memory-mapped arrays. No pickle anywhere."""

from locole.io.folder import Verify, read_manifest, read_model, write_model
from locole.io.manifest import FORMAT, Manifest
from locole.io.outline import Outline, all_parts, outline
from locole.io.state import SavedEstimator, saved_as

__all__ = [
    "FORMAT",
    "Manifest",
    "Outline",
    "SavedEstimator",
    "Verify",
    "all_parts",
    "outline",
    "read_manifest",
    "read_model",
    "saved_as",
    "write_model",
]
