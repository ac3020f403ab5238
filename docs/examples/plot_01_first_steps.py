"""
First steps
===========

Train on a sparse matrix, ask for the best labels, save and load.

`make_topics` generates rows like those of texts: each label draws its features from a
distribution of its own, and the labels are of very different sizes.
"""

import tempfile

from locole import LocoleClassifier, load
from locole.datasets import make_topics

data = make_topics(n_samples=6_000, n_features=5_000, n_classes=500, test_size=1_000)
print(data.X_train.shape, len(set(data.y_train)), "labels")

# %%
# A fit takes no parameters. ``choice_`` says which parts of the default model are used, and why.

classifier = LocoleClassifier(random_state=0).fit(data.X_train, data.y_train)
print(classifier.choice_)
print(f"test accuracy {classifier.score(data.X_test, data.y_test):.1%}")

# %%
# The best labels of a row, without a score for every label:

labels, scores = classifier.predict_topk(data.X_test[:3], k=5)
print(labels)
print(scores.round(1))

# %%
# A model file is a folder without code in it: loading one runs nothing.

with tempfile.TemporaryDirectory() as folder:
    classifier.save(f"{folder}/model")
    same = load(f"{folder}/model")
    print((same.predict(data.X_test) == classifier.predict(data.X_test)).all())
