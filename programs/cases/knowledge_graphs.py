"""pykeen: embeddings of a small graph of facts.

ConvE without batch norms: before one, the gradient of a bias is zero but for rounding, and Adam
makes steps of it.
"""

import logging

import numpy as np
import torch
from pykeen.models import ERModel
from pykeen.pipeline import pipeline
from pykeen.triples import TriplesFactory

logging.disable(logging.WARNING)
draw = np.random.default_rng(0)
facts = sorted({(f"e{a}", f"r{r}", f"e{b}") for a, r, b in draw.integers(0, [12, 3, 12], (70, 3))})
whole = TriplesFactory.from_labeled_triples(np.array(facts, dtype=str))
train, test = whole.split([0.8, 0.2], random_state=0)
print(train.num_triples, test.num_triples, whole.num_entities, whole.num_relations)
kinds = {"TransE": {}, "DistMult": {}, "ComplEx": {}, "RotatE": {}, "TransH": {}, "HolE": {},
         "ConvE": {"embedding_dim": 16, "embedding_height": 4, "embedding_width": 4,
                   "output_channels": 4, "apply_batch_normalization": False},
         "TuckER": {"relation_dim": 6}}  # fmt: skip
for kind, options in kinds.items():
    found = pipeline(
        training=train, testing=test, model=kind,
        model_kwargs={"embedding_dim": 8, **options}, random_seed=1, device="cpu",
        optimizer="Adam", optimizer_kwargs={"lr": 0.02},
        training_loop="lcwa" if kind in ("ConvE", "TuckER") else "slcwa",
        training_kwargs={"num_epochs": 2, "batch_size": 16, "use_tqdm": False},
        evaluation_kwargs={"use_tqdm": False, "batch_size": 8},
    )  # fmt: skip
    print(kind, found.losses, found.get_metric("mrr"), found.get_metric("hits@10"))
    assert isinstance(found.model, ERModel)
    triples = test.mapped_triples[:3]
    with torch.no_grad():
        print("  ", found.model.predict_hrt(triples).ravel().tolist())
