"""A function that embeds sentences: `handler({"sentences": [...]}, None)`.

MODEL names a folder with a model and its tokenizer, as `save_pretrained` writes them.
"""

import functools
import os

import torch
from transformers import AutoModel, AutoTokenizer


@functools.cache
def loaded():
    """The tokenizer and the model: read once, by the first request."""
    folder = os.environ["MODEL"]
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return tokenizer, AutoModel.from_pretrained(folder, local_files_only=True).eval()


def handler(event, context):
    """The mean of each sentence's tokens, as a vector of length 1."""
    tokenizer, model = loaded()
    batch = tokenizer(event["sentences"], padding=True, return_tensors="pt")
    with torch.inference_mode():
        states = model(**batch).last_hidden_state
        words = batch["attention_mask"][..., None]
        means = (states * words).sum(1) / words.sum(1)
        return torch.nn.functional.normalize(means).tolist()
