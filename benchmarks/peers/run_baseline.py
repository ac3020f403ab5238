"""One class of `locole.baselines`, named by the setting, with its defaults."""

from __future__ import annotations

from typing import Any

from measure import System, main
from run_locole import Locole


class Baseline(Locole):
    """Whatever the class does, behind the interface that all of them have."""

    warm_up_rows = 1000

    def __init__(self, *args: Any) -> None:
        System.__init__(self, *args)
        import locole.baselines

        self.notes = f"JIT warmed up by a fit on {self.warm_up_rows} rows"
        self.model = getattr(locole.baselines, self.setting)()
        if "n_jobs" in self.model.get_params():
            self.model.set_params(n_jobs=self.threads)


if __name__ == "__main__":
    main(Baseline)
