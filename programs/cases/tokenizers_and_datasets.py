"""tokenizers and datasets: text to batches of tensors."""

import torch
from datasets import Dataset, concatenate_datasets
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch.utils.data import DataLoader
from transformers import DataCollatorWithPadding, PreTrainedTokenizerFast

TEXTS = [
    "the light of the flame",
    "a flame is light",
    "light falls on the water",
    "water puts the flame out",
    "the dark is out",
    "a torch lights the dark",
]
core = Tokenizer(models.BPE(unk_token="[UNK]"))
core.pre_tokenizer = pre_tokenizers.Whitespace()
special = ["[UNK]", "[PAD]"]
core.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=60, special_tokens=special))
tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, unk_token="[UNK]", pad_token="[PAD]")

data = Dataset.from_dict({"text": TEXTS, "label": [0, 0, 1, 1, 0, 1]})
data = data.map(lambda rows: tokenizer(rows["text"]), batched=True)
data = data.remove_columns(["text"])
columns = ["input_ids", "attention_mask", "label"]
torch_data = data.with_format("torch", columns=columns)
print("first", torch_data[0])
print("column", torch_data["label"][:], torch_data[:2]["label"].dtype)
split = data.train_test_split(test_size=2, seed=3)
print("split", split["train"]["label"][:], split["test"]["label"][:])

torch.manual_seed(0)
collate = DataCollatorWithPadding(tokenizer, return_tensors="pt")
loader = DataLoader(data, batch_size=3, shuffle=True, collate_fn=collate)
for batch in loader:
    print("batch", {name: (value.shape, value.tolist()) for name, value in sorted(batch.items())})

values = torch.arange(24.0).reshape(4, 2, 3)
arrays = Dataset.from_dict({"x": values.numpy(), "y": list(range(4))}).with_format("torch")
print("nested", arrays[1]["x"], arrays[[0, 2]]["x"].shape, arrays["x"][2:3])
both = concatenate_datasets([arrays, arrays]).shuffle(seed=1)
print("order", both["y"][:])
stream = both.to_iterable_dataset(num_shards=2).with_format("torch")
for batch in DataLoader(stream, batch_size=4):
    print("stream", batch["y"], batch["x"].mean().item())
