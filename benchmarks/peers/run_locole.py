"""locole in several settings."""

from __future__ import annotations

from typing import Any

from measure import Data, K, System, folder_bytes, main

# Enough rows for the iterative solver and for more labels than one-hot vectors are used for.
WARM_UP_ROWS = 3000


class Locole(System):
    """`LocoleClassifier` with defaults, with one loss alone, as in the paper, and two quick ones."""

    packages = ("locole",)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        from locole import LocoleClassifier
        from locole.regressors import ElasticNetRegressor

        settings = {
            "64x2": (64, ElasticNetRegressor(l2=0.05, max_passes=2)),
            "128x3": (128, ElasticNetRegressor(l2=0.05, max_passes=3)),
            "paper": (360, ElasticNetRegressor(recipe="lshtc1")),
        }
        self.notes = f"JIT warmed up by a fit on {WARM_UP_ROWS} rows"
        if self.setting == "defaults":
            self.model = LocoleClassifier(n_jobs=self.threads)
        elif self.setting in ("elastic_net", "softmax"):
            self.model = LocoleClassifier(regressor=self.setting, n_jobs=self.threads)
        else:
            dim, regressor = settings[self.setting]
            self.model = LocoleClassifier(
                "rademacher", dim=dim, regressor=regressor, n_jobs=self.threads
            )

    def prepare(self, data: Data) -> None:
        """Compile what the fit and the prediction will use; nothing of it is kept."""
        from sklearn.base import clone

        rows = slice(0, WARM_UP_ROWS)
        model = clone(self.model).fit(data.train.X[rows], data.train.y[rows])
        model.predict_topk(data.test.X[rows], k=K)

    def train(self, data: Data) -> None:
        """Fit from scratch."""
        self.model.fit(data.train.X, data.train.y)

    def predict(self, data: Data) -> Any:
        """Labels and scores."""
        return self.model.predict_topk(data.test.X, k=K)[0]

    def model_bytes(self) -> int:
        """Size of the saved folder."""
        self.model.save(self.folder / "model")
        return folder_bytes(self.folder / "model")


if __name__ == "__main__":
    main(Locole)
