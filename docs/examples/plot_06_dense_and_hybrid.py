"""
Dense rows, and words beside them
=================================

Sentence embeddings alone, and together with the words of the same texts.

A sentence encoder would be downloaded, so this example makes one: latent semantic analysis of the
texts, by scikit-learn. With the package sentence-transformers, ``SentenceTransformer("all-
MiniLM-L6-v2").encode`` takes its place.
"""

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from locole import LocoleClassifier
from locole.datasets import load_city_names
from locole.text import TextClassifier

data = load_city_names(min_population=1_000_000)
names = np.array(data.label_names)
y_train, y_test = names[data.y_train], names[data.y_test]
encoder = make_pipeline(
    TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3)), TruncatedSVD(128, random_state=0)
).fit(data.text_train)


def encode(texts):
    """Return an array of shape (texts, 128)."""
    return encoder.transform(texts).astype(np.float32)


# %%
# Dense rows get prototypes: a vector for each label, refined by cross-entropy among the labels
# that are hardest to tell apart.

dense = LocoleClassifier().fit(encode(data.text_train), y_train)
print(dense.choice_)
scores = {"embeddings": dense.score(encode(data.text_test), y_test)}

# %%
# Words alone, and both in one ensemble, whose weights are fitted on validation rows:

scores["words"] = TextClassifier().fit(data.text_train, y_train).score(data.text_test, y_test)
both = TextClassifier(encoder=encode).fit(data.text_train, y_train)
scores["both"] = both.score(data.text_test, y_test)
for name, accuracy in scores.items():
    print(f"{name:11} {accuracy:.1%}")

# %%
# The ensemble says what each part is worth:

print(both.classifier_.choice_)
