"""From raw texts to labels."""

from locole.text.classifier import TextClassifier
from locole.text.features import TextFeatures

__all__ = ["TextClassifier", "TextFeatures"]
