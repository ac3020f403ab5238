"""One class of `locole.baselines`, named by the setting, with its defaults."""

from __future__ import annotations

from typing import Any

from measure import Data, K, System, folder_bytes, main

WARM_UP_ROWS = 1000


class Baseline(System):
    """Whatever the class does, behind the interface that all of them have."""

    packages = ("locole",)
    notes = f"JIT warmed up by a fit on {WARM_UP_ROWS} rows"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        import locole.baselines

        self.model = getattr(locole.baselines, self.setting)()
        if "n_jobs" in self.model.get_params():
            self.model.set_params(n_jobs=self.threads)

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
    main(Baseline)
