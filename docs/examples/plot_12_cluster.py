"""
A cluster
=========

The elastic net solves blocks of outputs independently, so that blocks can be solved on the nodes
of a Ray cluster.

This script starts a cluster of one node on this machine and stops it again. On a real one,
``RayEngine("host:6379")`` takes its place; nothing else changes.
"""

import ray

from locole import LocoleClassifier
from locole.datasets import make_topics
from locole.parallel import RayEngine

data = make_topics(n_samples=3_000, n_features=1_000, n_classes=300, test_size=500)
settings = {"embedding": "kerdock", "dim": 256, "regressor": "elastic_net", "calibration": False}

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
there = LocoleClassifier(**settings, engine=RayEngine()).fit(data.X_train, data.y_train)
ray.shutdown()
print(f"trained on the cluster: {there.score(data.X_test, data.y_test):.1%}")

# %%
# The weights are the same bits as on threads of one machine, whatever the number of nodes and the
# order in which blocks are finished:

here = LocoleClassifier(**settings).fit(data.X_train, data.y_train)
print((here.regressor_.coef_ == there.regressor_.coef_).all())

# %%
# The engine is not part of the model: saved and loaded, it predicts without Ray.

labels, scores = there.predict_topk(data.X_test[:2], k=3)
print(labels)
