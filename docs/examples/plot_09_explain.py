"""
Explaining an answer
====================

Scores of the default model are sums over features. So the contributions of features are exact:
they add up to the score.
"""

import matplotlib.pyplot as plt
import numpy as np

from locole.datasets import load_city_names
from locole.text import TextClassifier

data = load_city_names(min_population=1_000_000)
names = np.array(data.label_names)
classifier = TextClassifier().fit(data.text_train, names[data.y_train])

# %%
# Why is a misspelt name recognised? `Explanation` prints what each word and each term adds to the
# score.

query = "Constantinopel TR"
[why] = classifier.explain([query])
print(why)

# %%
# The largest contributions as a picture:

terms = why.features[:12][::-1]
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.barh([str(term) for term, _ in terms], [value for _, value in terms])
axes.set(xlabel=f"added to the score of {why.label}", title=query)

# %%
# Why this label and not another? The same for the difference of two scores:

best, _ = classifier.predict_topk([query], k=2)
[lead] = classifier.explain([query], label=best[0, 0], against=best[0, 1])
print(f"{best[0, 0]} leads {best[0, 1]} by {lead.score:.2f}")
print([(str(term), round(float(value), 2)) for term, value in lead.features[:5]])
