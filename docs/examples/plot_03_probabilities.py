"""
Probabilities and abstention
============================

How sure is an answer, and which answers should be left to a person?

The default model sets validation rows aside and fits probabilities to their scores.
"""

import matplotlib.pyplot as plt
import numpy as np

from locole import LocoleClassifier
from locole.datasets import make_topics
from locole.metrics import calibration_bins, expected_calibration_error, risk_coverage

data = make_topics(n_samples=8_000, n_features=2_000, n_classes=200, noise=0.78, test_size=3_000)
classifier = LocoleClassifier().fit(data.X_train, data.y_train)
labels, p = classifier.predict_topk(data.X_test, k=1, proba=True)
proba, right = p[:, 0], labels[:, 0] == data.y_test
print(f"accuracy {right.mean():.1%}, mean probability of the answers {proba.mean():.1%}")
print(f"expected calibration error {expected_calibration_error(proba, right):.1%}")

# %%
# Left: answers that are given with probability p should be right with probability p. Right: the
# share of wrong answers, if only the surest ones are given.

mean, accuracy, _ = calibration_bins(proba, right, n_bins=10)
curve = risk_coverage(proba, right)
figure, (left, other) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.plot([0, 1], [0, 1], color="0.7")
left.plot(mean, accuracy, "o-")
left.set(xlabel="probability", ylabel="share of right answers")
other.plot(curve.coverage, curve.risk)
other.set(xlabel="share of rows that are answered", ylabel="share of wrong answers")

# %%
# Ask for a limit instead of a threshold. The limit holds with a probability of 95 % over the draw
# of the validation rows; ``reject_label`` takes the place of answers that are held back.

threshold = classifier.threshold(max_error=0.1)
print(f"answers are given from a probability of {threshold.min_proba:.2f} on")
answers = classifier.predict(data.X_test, max_error=0.1, reject_label=-1)
given = answers != -1
print(f"answered {given.mean():.1%} of the rows, ", end="")
print(f"wrong {np.mean(answers[given] != data.y_test[given]):.1%} of them")
