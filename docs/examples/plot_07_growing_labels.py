"""
Growing labels
==============

Labels arrive while a model is in use: learn them from their first rows, without a fit from scratch.

The columns of an embedding do not depend on the number of labels, so a new label gets the next
column and the old ones keep theirs.
"""

import matplotlib.pyplot as plt
import numpy as np

from locole import LocoleClassifier
from locole.datasets import make_topics

data = make_topics(n_samples=8_000, n_features=3_000, n_classes=400, test_size=2_000)
first, later = data.y_train % 4 != 0, data.y_train % 4 == 0
old, new = data.y_test % 4 != 0, data.y_test % 4 == 0

model = LocoleClassifier(random_state=0).fit(data.X_train[first], data.y_train[first])
print(len(model.classes_), "labels,", model.embedding_)

# %%
# A hundred new labels arrive in ten batches, some of them with many rows and some with few.

shown = []
for some in np.array_split(np.flatnonzero(later), 10):
    model.partial_fit(data.X_train[some], data.y_train[some])
    answers = model.predict(data.X_test)
    right = answers == data.y_test
    shown.append((len(model.classes_), right[old].mean(), right[new].mean()))
print(len(model.classes_), "labels,", model.embedding_)

# %%
# Old labels are found as before, new ones as soon as rows of them were seen:

figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
batches = range(1, 11)
axes.plot(batches, [s[1] for s in shown], "o-", label="labels of the first fit")
axes.plot(batches, [s[2] for s in shown], "s-", label="labels that came later")
axes.set(xlabel="batches learnt", ylabel="test accuracy", ylim=(0, 1))
axes.legend()

# %%
# For comparison, a model that learns everything at once:

everything = LocoleClassifier(random_state=0).fit(data.X_train, data.y_train)
print(f"grown {model.score(data.X_test, data.y_test):.1%}, ", end="")
print(f"all at once {everything.score(data.X_test, data.y_test):.1%}")

# %%
# Labels can also be renamed, merged and retired; no fit is needed for that.

model.merge_labels({8: 4})
model.retire_labels([12])
print(
    len(model.classes_),
    "labels,",
    12 in model.predict(data.X_test),
    8 in model.predict(data.X_test),
)
