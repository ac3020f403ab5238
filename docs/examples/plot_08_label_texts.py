"""
Labels without rows, by their names
===================================

Zero-shot classification: labels that no training row has are found by their names.

Each text is a spelling of a city's name, each label a city. A fifth of the cities are hidden from
training; all that the model gets of them is the English name.
"""

import matplotlib.pyplot as plt
import numpy as np

from locole.datasets import load_city_names
from locole.text import TextClassifier

data = load_city_names(min_population=1_000_000)
names = np.array(data.label_names)
hidden = np.arange(names.size) % 5 == 0
seen = ~hidden[data.y_train]
texts = [text for text, keep in zip(data.text_train, seen, strict=True) if keep]
y_train, y_test = names[data.y_train[seen]], names[data.y_test]
print(f"{np.count_nonzero(~hidden)} labels with rows, {np.count_nonzero(hidden)} without")

# %%
# ``label_texts`` are names or descriptions of labels; here the label itself, such as "Istanbul
# (TR)", without its parentheses.

label_texts = {name: name.replace("(", "").replace(")", "") for name in names}
without = TextClassifier().fit(texts, y_train)
by_name = TextClassifier(label_texts=label_texts).fit(texts, y_train)
print(by_name.classifier_.choice_)

# %%
# Hidden labels are found, and the others are answered about as well as before:

is_hidden = hidden[data.y_test]
shares = {}
for kind, model in {"rows alone": without, "rows and names": by_name}.items():
    right = model.predict(data.text_test) == y_test
    shares[kind] = right[~is_hidden].mean(), right[is_hidden].mean()
    print(f"{kind:15} labels with rows {shares[kind][0]:.1%}, without {shares[kind][1]:.1%}")

figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
for shift, (kind, values) in zip((-0.2, 0.2), shares.items(), strict=True):
    axes.bar(np.arange(2) + shift, np.multiply(100, values), width=0.4, label=kind)
axes.set_xticks(range(2), ["labels with rows", "labels without rows"])
axes.set(ylabel="test accuracy, %")
axes.legend()

# %%
# A new label needs no training at all, only a name:

by_name.add_labels({"Atlantis (XX)": "Atlantis XX"})
print(by_name.predict(["Atlantida XX"]))
