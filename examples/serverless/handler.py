"""A function that embeds sentences: `handler({"sentences": [...]}, None)`.

MODEL names a folder with a model and its tokenizer, as `save_pretrained` writes them. Run as a
script, it embeds a few sentences: what `flambeau warmup --library` records.
"""

import functools
import os
from pathlib import Path

LIBRARY = Path(__file__).with_name("kernels")
if LIBRARY.exists():  # before torch is imported
    os.environ.setdefault("FLAMBEAU_LIBRARY", str(LIBRARY))

import torch  # noqa: E402
from transformers import AutoModel, AutoTokenizer  # noqa: E402


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


if __name__ == "__main__":
    short = "a lamp that floats on the river"
    for sentences in ([short], [short, " and ".join([short] * 4)], [short] * 32):
        handler({"sentences": sentences}, None)
