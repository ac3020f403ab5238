"""XR-Linear as libpecos has it, the three calls of its README."""

from __future__ import annotations

from typing import Any

import numpy as np
from measure import Data, K, System, folder_bytes, main


class Pecos(System):
    """Label features, hierarchical clusters, one linear ranker for each level."""

    packages = ("libpecos",)
    notes = "prediction by the C++ model, loaded as its README advises"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        from pecos.xmc import Indexer, LabelEmbeddingFactory
        from pecos.xmc.xlinear.model import XLinearModel

        self.Indexer, self.Factory, self.Model = Indexer, LabelEmbeddingFactory, XLinearModel

    def prepare(self, data: Data) -> None:
        """Labels as a matrix."""
        self.Y = data.train.Y.astype(np.float32)

    def train(self, data: Data) -> None:
        """Default parameters."""
        features = self.Factory.create(self.Y, data.train.X, threads=self.threads)
        clusters = self.Indexer.gen(features, threads=self.threads)
        self.model = self.Model.train(
            data.train.X, self.Y, C=clusters, threads=self.threads, **self.options
        )

    def ready(self, data: Data) -> None:
        """Save the model and load it for prediction only."""
        self.model.save(str(self.folder / "model"))
        self.model = self.Model.load(str(self.folder / "model"), is_predict_only=True)

    def predict(self, data: Data) -> Any:
        """Default beam of ten."""
        return self.model.predict(data.test.X, only_topk=K, threads=self.threads)

    def codes(self, answer: Any) -> list[Any]:
        """Labels of each row by falling score."""
        rows = zip(answer.indptr[:-1], answer.indptr[1:], strict=True)
        return [answer.indices[a:b][np.argsort(-answer.data[a:b])] for a, b in rows]

    def model_bytes(self) -> int:
        """Size of the saved folder."""
        return folder_bytes(self.folder / "model")


if __name__ == "__main__":
    main(Pecos)
