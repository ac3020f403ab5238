"""
Choosing an embedding
=====================

Accuracy against coherence: the figure of the paper, for one data set and one regressor.

The coherence λ is the largest inner product of two label vectors. The lower it is, the less
accuracy the embedding can cost.
"""

import matplotlib.pyplot as plt

from locole import LocoleClassifier
from locole.datasets import load_city_names
from locole.embeddings import make_embedding
from locole.theory import advise, coherence, welch_bound

data = load_city_names(min_population=1_000_000)
n_classes = len(data.label_names)
families = {
    "rademacher": (16, 32, 64, 128, 256),
    "gaussian": (16, 32, 64, 128, 256),
    "nelson": (29, 31, 61, 127),
    "kerdock": (64, 256),
    "gold": (32, 128),
}

# %%
# Every dim of every family: its coherence, and the accuracy of the elastic net with it. A complex
# vector of dim n needs 2n outputs, so dims of Nelson count twice.

found = {}
for family, dims in families.items():
    for dim in dims:
        embedding = make_embedding(family, n_classes, dim=dim)
        model = LocoleClassifier(embedding, regressor="elastic_net", calibration=False)
        accuracy = model.fit(data.X_train, data.y_train).score(data.X_test, data.y_test)
        found.setdefault(family, []).append(
            (coherence(embedding).coherence, accuracy, embedding.real_dim)
        )
        print(f"{embedding!s:45} λ {found[family][-1][0]:.3f}  accuracy {accuracy:.1%}")

# %%
# Left: lower coherence goes with higher accuracy. But lower coherence also takes more outputs. Right:
# at equal numbers of outputs, families differ little. On average the number of outputs decides;
# coherence is the guarantee for the worst case.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for family, points in found.items():
    lambdas, accuracies, outputs = zip(*sorted(points), strict=True)
    percents = [100 * accuracy for accuracy in accuracies]
    left.plot(lambdas, percents, "o-", label=family)
    right.plot(outputs, percents, "o-")
left.set(xlabel="coherence λ", ylabel="test accuracy, %")
right.set(xlabel="real outputs", xscale="log")
right.set_xticks([16, 64, 256], labels=["16", "64", "256"])
right.minorticks_off()
left.legend()

# %%
# No set of vectors is better than the Welch bound. `advise` lists the cheapest embedding of each
# family that reaches a coherence:

print(f"at 256 outputs the coherence is at least {welch_bound(n_classes, 256):.4f}")
print(advise(n_classes, coherence=0.1))
