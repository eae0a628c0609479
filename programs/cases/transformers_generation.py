"""Ways of generating with transformers, its Trainer, and pipelines over tiny drawn models."""

import tempfile
from pathlib import Path

import torch
import transformers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    T5Config,
    T5ForConditionalGeneration,
    Trainer,
    TrainingArguments,
)

transformers.logging.set_verbosity_error()
torch.manual_seed(0)
gpt = GPT2LMHeadModel(GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64))
gpt.eval()
ids = torch.randint(3, 99, (2, 7))
common = {"max_new_tokens": 8, "pad_token_id": 0, "eos_token_id": 98}
ways = {
    "greedy": {}, "beams": {"num_beams": 4, "num_return_sequences": 2},
    "penalties": {"repetition_penalty": 1.5, "no_repeat_ngram_size": 2},
    "bad words": {"bad_words_ids": [[5], [7, 8]], "min_new_tokens": 4},
    "sampled": {"do_sample": True}, "top k": {"do_sample": True, "top_k": 5},
    "top p": {"do_sample": True, "top_p": 0.7, "temperature": 1.4},
    "min p": {"do_sample": True, "min_p": 0.2}, "typical": {"do_sample": True, "typical_p": 0.6},
    "sampled beams": {"do_sample": True, "num_beams": 3}, "without a cache": {"use_cache": False},
    "epsilon": {"do_sample": True, "epsilon_cutoff": 0.01},
    "forced": {"forced_eos_token_id": 98},
    "exponential": {"exponential_decay_length_penalty": (2, 1.5)},
}  # fmt: skip
for name, words in ways.items():
    torch.manual_seed(1)
    print(name, gpt.generate(ids, **{"do_sample": False, **common, **words}).tolist())
scored = gpt.generate(
    ids, do_sample=False, output_scores=True, return_dict_in_generate=True, **common
)
print("scores", [float(step.max()) for step in scored.scores])
draft = GPT2LMHeadModel(GPT2Config(vocab_size=99, n_embd=16, n_layer=1, n_head=2, n_positions=64))
assisted = gpt.generate(ids[:1], assistant_model=draft.eval(), do_sample=False, **common)
print("assisted", assisted.tolist())
torch.manual_seed(2)
t5 = T5ForConditionalGeneration(T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=48, num_layers=2,
                                         num_heads=4, decoder_start_token_id=0)).eval()  # fmt: skip
print("t5", t5.generate(ids, num_beams=2, do_sample=False, max_new_tokens=6).tolist())

folder = Path(tempfile.mkdtemp())
letters = [chr(97 + place) for place in range(26)]
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *[f"##{one}" for one in letters]]
(folder / "vocab.txt").write_text("\n".join(words))
tokenizer = BertTokenizer(str(folder / "vocab.txt"))
small = {"vocab_size": len(words), "hidden_size": 32, "num_hidden_layers": 2,
         "num_attention_heads": 4, "intermediate_size": 48}  # fmt: skip
torch.manual_seed(3)
judge = BertForSequenceClassification(BertConfig(**small, num_labels=3))
texts = ["a kite in the wind", "rain on the roof", "tea for two", "stairs and doors"] * 4
rows = [{**tokenizer(text, padding="max_length", max_length=20, truncation=True),
         "labels": place % 3} for place, text in enumerate(texts)]  # fmt: skip
trainer = Trainer(
    model=judge, train_dataset=rows, eval_dataset=rows[:4],
    args=TrainingArguments(
        output_dir=str(folder / "out"), num_train_epochs=2, per_device_train_batch_size=4,
        learning_rate=1e-3, report_to=[], logging_steps=2, disable_tqdm=True, seed=0,
        save_strategy="epoch", lr_scheduler_type="cosine", warmup_steps=2, use_cpu=True,
    ),
)  # fmt: skip
import contextlib  # noqa: E402
import io  # noqa: E402

with contextlib.redirect_stdout(io.StringIO()):  # it tells how long that takes
    trainer.train()
    measured = trainer.evaluate()
print("losses", [row["loss"] for row in trainer.state.log_history if "loss" in row])
print("evaluated", measured["eval_loss"])
classify = transformers.pipeline(
    "text-classification", model=judge, tokenizer=tokenizer, device="cpu"
)
print("text-classification", classify(texts[:3]))
torch.manual_seed(4)
tags = BertForTokenClassification(BertConfig(**small, num_labels=2)).eval()
tagger = transformers.pipeline(
    "token-classification", model=tags, tokenizer=tokenizer, device="cpu"
)
print(
    "token-classification", [(one["entity"], float(one["score"])) for one in tagger("tea for two")]
)
torch.manual_seed(5)
filler = transformers.BertForMaskedLM(BertConfig(**small)).eval()
fill = transformers.pipeline("fill-mask", model=filler, tokenizer=tokenizer, device="cpu")
print("fill-mask", [(one["token"], one["score"]) for one in fill("t [MASK] a")])
features = transformers.pipeline(
    "feature-extraction", model=filler.bert, tokenizer=tokenizer, device="cpu"
)
print("feature-extraction", [float(x) for x in torch.tensor(features("tea")[0]).abs().sum(-1)])
