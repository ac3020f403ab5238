"""Parabel as omikuji has it, with its defaults, and Bonsai."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from formats import feature_lines, write_lines
from measure import Data, K, System, folder_bytes, main


class Omikuji(System):
    """Three balanced trees; trained from a file in the format of the XMC repository."""

    packages = ("omikuji",)
    notes = "training reads a text file; prediction goes row by row through the Python binding"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        import omikuji

        self.Model = omikuji.Model

    def prepare(self, data: Data) -> None:
        """Write ``label index:value …`` under a line with the three sizes."""
        X, Y = data.train.X, data.train.Y
        ends = zip(Y.indptr[:-1], Y.indptr[1:], strict=True)
        labels = (",".join(map(str, Y.indices[a:b].tolist())) for a, b in ends)
        lines = (f"{some} {row}" for some, row in zip(labels, feature_lines(X), strict=True))
        head = f"{X.shape[0]} {X.shape[1]} {data.n_classes}"
        write_lines(self.folder / "train.txt", (x for part in ([head], lines) for x in part))

    def train(self, data: Data) -> None:
        """Default hyper-parameters, or those of Bonsai in its README."""
        path = str(self.folder / "train.txt")
        chosen = self.Model.default_hyper_param()
        if self.setting == "bonsai":
            chosen.cluster_balanced, chosen.cluster_k, chosen.max_depth = False, 100, 3
        for name, value in self.options.items():
            setattr(chosen, name, value)
        self.model = self.Model.train_on_data(path, chosen, self.threads)

    def ready(self, data: Data) -> None:
        """Save the model; turn the test rows into the pairs that the binding takes."""
        self.model.save(str(self.folder / "model"))
        self.model.init_prediction_thread_pool(self.threads)
        X = data.test.X
        pairs = list(zip(X.indices.tolist(), X.data.tolist(), strict=True))
        ends = X.indptr.tolist()
        self.rows = [pairs[a:b] for a, b in pairwise(ends)]

    def predict(self, data: Data) -> Any:
        """Default beam of ten."""
        return [self.model.predict(row, top_k=K) for row in self.rows]

    def codes(self, answer: Any) -> list[Any]:
        """Drop the scores."""
        return [[label for label, _ in row] for row in answer]

    def model_bytes(self) -> int:
        """Size of the saved folder."""
        return folder_bytes(self.folder / "model")


if __name__ == "__main__":
    main(Omikuji)
