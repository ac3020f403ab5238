"""locole in several settings."""

from __future__ import annotations

from typing import Any

from measure import Data, K, System, folder_bytes, main


class Locole(System):
    """`LocoleClassifier` with defaults, with one loss alone, as in the paper, and two quick ones.

    A setting of three words, such as ``softmax gold 512``, names regressor, embedding and dim.
    """

    packages = ("locole",)
    #: enough rows for sketches, the iterative solver and more labels than one-hot vectors are used for
    warm_up_rows = 12_000

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        from locole import LocoleClassifier
        from locole.regressors import ElasticNetRegressor

        settings = {
            "64x2": (64, {"l2": 0.05, "max_passes": 2}),
            "128x3": (128, {"l2": 0.05, "max_passes": 3}),
            "paper": (360, {"recipe": "lshtc1"}),
        }
        common = {"n_jobs": self.threads, "random_state": self.seed}
        self.notes = f"JIT warmed up by a fit on {self.warm_up_rows} rows"
        if self.setting == "defaults":
            self.model = LocoleClassifier(**common, **self.options)
        elif self.setting in ("elastic_net", "softmax"):
            self.model = LocoleClassifier(regressor=self.setting, **common)
        elif self.setting not in settings:
            regressor, family, dim = self.setting.split()
            self.model = LocoleClassifier(family, dim=int(dim), regressor=regressor, **common)
        else:
            dim, options = settings[self.setting]
            regressor = ElasticNetRegressor(**options, random_state=self.seed)
            self.model = LocoleClassifier("rademacher", dim=dim, regressor=regressor, **common)

    def prepare(self, data: Data) -> None:
        """Compile what the fit and the prediction will use; nothing of it is kept."""
        from sklearn.base import clone

        rows = slice(0, self.warm_up_rows)
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
