"""
Label sets with a guarantee
===========================

Instead of one answer, a set of labels that contains the right one with guaranteed probability.

By split conformal prediction the guarantee holds whatever the model and the data are, as long as
new rows are like the validation rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from locole import LocoleClassifier
from locole.datasets import make_topics

data = make_topics(n_samples=8_000, n_features=2_000, n_classes=200, noise=0.78, test_size=3_000)
classifier = LocoleClassifier().fit(data.X_train, data.y_train)

# %%
# Sets for three coverages, and how many of them hold the label:

coverages = (0.8, 0.9, 0.95)
found = {coverage: classifier.predict_set(data.X_test, coverage=coverage) for coverage in coverages}
for coverage, sets in found.items():
    holds = np.mean([y in labels for y, labels in zip(data.y_test, sets, strict=True)])
    sizes = [len(labels) for labels in sets]
    print(
        f"asked for {coverage:.0%}: {holds:.1%} hold the label, {np.mean(sizes):.1f} labels on average"
    )

# %%
# Easy rows have small sets, hard rows large ones. An empty set says that no label is likely
# enough.

figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
for coverage, sets in found.items():
    sizes = np.bincount([min(len(labels), 12) for labels in sets], minlength=13)
    axes.plot(sizes / sizes.sum(), "o-", label=f"coverage {coverage:.0%}")
axes.set(xlabel="labels in the set (12: that or more)", ylabel="share of the rows")
axes.legend()

# %%
# ``method="aps"`` makes sets that adapt more to how hard a row is: larger ones for hard rows.
# ``by_frequency=True`` gives the guarantee to rare and to frequent labels separately.

for method in ("lac", "aps"):
    sizes = [len(labels) for labels in classifier.predict_set(data.X_test, 0.9, method=method)]
    print(
        f"{method}: {np.mean(np.array(sizes) == 0):.1%} empty, the largest has {max(sizes)} labels"
    )
