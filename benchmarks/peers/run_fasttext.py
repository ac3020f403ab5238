"""fastText with hierarchical softmax, as its tutorial does it for many labels."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from formats import token_lines, write_lines
from measure import Data, K, Part, System, folder_bytes, main

PREFIX = "__label__"
# The command under "Scaling things up" in the tutorial on text classification.
TUTORIAL = {"lr": 1.0, "epoch": 25, "wordNgrams": 2, "bucket": 200_000, "dim": 50, "loss": "hs"}


class FastText(System):
    """Learns from words, not from the features that the others get, where there is a text."""

    packages = ("fasttext-numpy2",)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        import fasttext

        self.package = fasttext

    def prepare(self, data: Data) -> None:
        """Lower case, punctuation apart, as in the tutorial; without a text the features as words."""
        has_text = data.train.text is not None
        self.options = TUTORIAL | ({} if has_text else {"wordNgrams": 1}) | self.options
        source = "raw text" if has_text else "features as words, no word pairs"
        self.notes = f"settings of its tutorial; {source}; training reads a text file"
        lines = zip(data.train.y.tolist(), self._words(data.train), strict=True)
        write_lines(self.folder / "train.txt", (f"{PREFIX}{label} {row}" for label, row in lines))
        self.rows = list(self._words(data.test))

    def _words(self, part: Part) -> Iterable[str]:
        if part.text is None:
            return token_lines(part.X)
        return (re.sub(r"([.!?,'/()])", r" \1 ", line).lower() for line in part.text)

    def train(self, data: Data) -> None:
        """Halve the learning rate after an overflow, as its FAQ advises; the time lost counts.

        The threads share the weights without locks, so that runs differ a little in spite of the seed.
        """
        while True:
            try:
                self.model = self._trained()
                return
            except RuntimeError as error:
                if "NaN" not in str(error) or self.options["lr"] < 0.01:
                    raise
            self.options = self.options | {"lr": self.options["lr"] / 2}
            self.notes += f"; overflow, so again with lr = {self.options['lr']:g}"

    def _trained(self) -> Any:
        return self.package.train_supervised(
            str(self.folder / "train.txt"), thread=self.threads, seed=0, verbose=0, **self.options
        )

    def ready(self, data: Data) -> None:
        """Save the model."""
        self.model.save_model(str(self.folder / "model.bin"))

    def predict(self, data: Data) -> Any:
        """Labels and probabilities, on one thread."""
        return self.model.predict(self.rows, k=K)[0]

    def codes(self, answer: Any) -> list[Any]:
        """Labels without their prefix."""
        return [[int(label.removeprefix(PREFIX)) for label in row] for row in answer]

    def model_bytes(self) -> int:
        """Size of the saved file."""
        return folder_bytes(self.folder / "model.bin")


if __name__ == "__main__":
    main(FastText)
