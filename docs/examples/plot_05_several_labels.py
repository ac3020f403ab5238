"""
Several labels for each row
===========================

Rows with any number of labels: give a collection of labels for each row, or an indicator matrix.

The data are generated: a row is the sum of one to four rows of `make_topics`, with the labels of
all of them.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

from locole import LocoleClassifier
from locole.baselines import Centroids
from locole.datasets import make_topics
from locole.metrics import Propensities, f1_score, ranking_report

topics = make_topics(n_samples=10_000, n_features=3_000, n_classes=300, noise=0.7)
rng = np.random.default_rng(0)
counts = rng.integers(1, 5, size=6_000)
owners = np.repeat(np.arange(6_000), counts)
drawn = rng.integers(10_000, size=owners.size)
X = (
    sp.csr_array((np.ones(owners.size, np.float32), (owners, drawn)), (6_000, 10_000))
    @ topics.X_train
)
labels = [set(topics.y_train[some].tolist()) for some in np.split(drawn, np.cumsum(counts)[:-1])]
train, test = slice(0, 5_000), slice(5_000, 6_000)
print(X.shape, f"{np.mean([len(some) for some in labels]):.1f} labels for each row")

# %%
# The fit is the same as with one label. ``predict`` answers with an indicator matrix; the threshold
# is that of the best F1 on validation rows. ``predict_topk`` ranks labels, here with their marginal
# probabilities.

model = LocoleClassifier().fit(X[train], labels[train])
found = model.predict(X[test])
predicted = [set(model.classes_[found[[row]].indices].tolist()) for row in range(1_000)]
print(f"micro F1 {f1_score(labels[test], predicted, average='micro'):.1%}")
ranked, p = model.predict_topk(X[test][:3], k=4, proba=True)
for own, some, of in zip(labels[test], ranked, p, strict=False):
    print(sorted(own), {int(label): round(float(q), 2) for label, q in zip(some, of, strict=True)})

# %%
# The field's metrics for ranked labels, beside class centroids:

propensities = Propensities(labels[train])
reports = {}
for name, each in {"locole": model, "centroids": Centroids().fit(X[train], labels[train])}.items():
    ranked, _ = each.predict_topk(X[test], k=5)
    reports[name] = ranking_report(labels[test], ranked, k=(1, 3, 5), propensities=propensities)
figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
for shift, (name, report) in zip((-0.2, 0.2), reports.items(), strict=True):
    axes.bar(np.arange(len(report)) + shift, report.values(), width=0.4, label=name)
axes.set_xticks(range(len(report)), report, rotation=45)
axes.legend()
