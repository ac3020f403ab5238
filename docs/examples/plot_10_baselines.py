"""
Comparing with baselines
========================

Other methods for very many labels have the same interface. Here: accuracy against seconds of
training.
"""

import time

import matplotlib.pyplot as plt

from locole import LocoleClassifier
from locole.baselines import MACH, WLTLS, Bonsai, Centroids, Parabel, PPDSparse
from locole.datasets import load_city_names

data = load_city_names(min_population=1_000_000)
X, y = data.X_train, data.y_train
print(X.shape, f"{len(data.label_names):,} labels")

# %%
# Kernels are compiled when they first run, so every system is fitted once to a few rows before it
# is timed.

systems = {
    "locole": LocoleClassifier(random_state=0),
    "elastic net": LocoleClassifier(regressor="elastic_net", calibration=False, random_state=0),
    "centroids": Centroids(),
    "Parabel": Parabel(random_state=0),
    "Bonsai": Bonsai(random_state=0),
    "PPD-Sparse": PPDSparse(),
    "MACH": MACH(random_state=0),
    "W-LTLS": WLTLS(random_state=0),
}
found = {}
for name, system in systems.items():
    system.fit(X[:1_500], y[:1_500])
    start = time.process_time()
    system.fit(X, y)
    seconds = time.process_time() - start
    found[name] = seconds, system.score(data.X_test, data.y_test)
    print(f"{name:12} {found[name][1]:6.1%} {seconds:6.2f} s")

# %%
# Seconds are those of the machine that built this page, perhaps a busy one. The research pages
# have careful measurements on larger sets.

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for name, (seconds, accuracy) in found.items():
    axes.scatter(seconds, 100 * accuracy, marker="*" if name == "locole" else "o", s=60)
    axes.annotate(name, (seconds, 100 * accuracy), xytext=(5, 4), textcoords="offset points")
axes.set(xscale="log", xlabel="CPU seconds of training", ylabel="test accuracy, %")
axes.margins(x=0.2)
