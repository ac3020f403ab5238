"""Probabilistic label trees as Vowpal Wabbit has them, with the options of its demo."""

from __future__ import annotations

from typing import Any

from formats import feature_lines, write_lines
from measure import Data, K, System, folder_bytes, main

# As in demo/plt of its repository; the table of weights has 2^bits × 16 bytes. The demo takes 30 bits
# for more than 10,000 labels, which is 17 GB.
LOSS = "--loss_function logistic"
DEMO = {"kary_tree": 16, "passes": 5, "learning_rate": 0.5}
BITS, BITS_FEW_LABELS, FEW_LABELS = 28, 25, 256


class VowpalWabbit(System):
    """Online learning from a text file; one thread learns, another one parses."""

    packages = ("vowpalwabbit",)
    notes = (
        "options of its demo; training reads a text file and writes the model; prediction parses"
    )

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        from vowpalwabbit import Workspace

        self.Workspace = Workspace
        self.path = self.folder / "model.vw"

    def prepare(self, data: Data) -> None:
        """Write ``label | index:value …``."""
        lines = zip(data.train.y.tolist(), feature_lines(data.train.X), strict=True)
        write_lines(self.folder / "train.vw", (f"{label} | {row}" for label, row in lines))
        self.rows = [f"| {row}" for row in feature_lines(data.test.X)]

    def train(self, data: Data) -> None:
        """Five passes; the first one writes VW's binary cache for the others."""
        bits = BITS_FEW_LABELS if data.n_classes <= FEW_LABELS else BITS
        files = f"-d {self.folder / 'train.vw'} --cache_file {self.folder / 'cache'} -f {self.path}"
        chosen = " ".join(f"--{name} {value}" for name, value in (DEMO | self.options).items())
        options = f"--plt {data.n_classes} {LOSS} {chosen} --holdout_off -b {bits}"
        options += " --random_seed 0 --quiet"
        self.Workspace(f"{options} {files}").finish()

    def ready(self, data: Data) -> None:
        """Load the model for prediction."""
        self.model = self.Workspace(f"-i {self.path} {LOSS} -t --top_k {K} --quiet")

    def predict(self, data: Data) -> Any:
        """Row by row."""
        return [self.model.predict(row) for row in self.rows]

    def model_bytes(self) -> int:
        """Size of the saved file."""
        return folder_bytes(self.path)


if __name__ == "__main__":
    main(VowpalWabbit)
