"""Probabilistic label trees as napkinXC has them, with its defaults."""

from __future__ import annotations

from typing import Any

from measure import Data, K, System, folder_bytes, main


class NapkinXC(System):
    """One tree of balanced 2-means; the model is written to disk while it learns."""

    packages = ("napkinxc",)
    notes = "training includes writing the model"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        from napkinxc.models import PLT

        self.model = PLT(str(self.folder / "model"), seed=1, threads=self.threads, **self.options)

    def prepare(self, data: Data) -> None:
        """Labels as a list."""
        self.labels = data.train.y.tolist()

    def train(self, data: Data) -> None:
        """Default parameters."""
        self.model.fit(data.train.X, self.labels)

    def ready(self, data: Data) -> None:
        """Read the model back."""
        self.model.load()

    def predict(self, data: Data) -> Any:
        """Exact search of the tree, its default."""
        return self.model.predict(data.test.X, top_k=K)

    def model_bytes(self) -> int:
        """Size of the model's folder."""
        return folder_bytes(self.folder / "model")


if __name__ == "__main__":
    main(NapkinXC)
