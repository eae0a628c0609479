"""trl: a tiny decoder fine-tuned on texts (SFT), with LoRA, and on preferences (DPO)."""

import tempfile

import torch
from datasets import Dataset
from peft import LoraConfig
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, PrinterCallback
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

WORDS = "<pad> <end> <unk> the a cat dog sees likes runs small big red blue and".split()
core = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="<unk>"))
core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=core, pad_token="<pad>", eos_token="<end>", unk_token="<unk>"
)


def decoder():
    torch.manual_seed(0)
    sizes = GPT2Config(
        vocab_size=len(WORDS), n_positions=32, n_embd=32, n_layer=2, n_head=2,
        bos_token_id=1, eos_token_id=1, pad_token_id=0,
    )  # fmt: skip
    return GPT2LMHeadModel(sizes)


def losses(trainer):
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def steps(trainer):
    trainer.remove_callback(PrinterCallback)  # it tells the time, too
    trainer.train()


def settings(kind, folder, **more):
    return kind(
        output_dir=folder, per_device_train_batch_size=2, max_steps=4, logging_steps=1,
        report_to=[], save_strategy="no", use_cpu=True, learning_rate=1e-2, bf16=False,
        gradient_checkpointing=False, disable_tqdm=True, max_length=16, **more,
    )  # fmt: skip


texts = Dataset.from_list(
    [
        {"text": f"the {size} {who} {does} a {color} dog"}
        for size, who, does, color in [
            ("small", "cat", "sees", "red"), ("big", "dog", "likes", "blue"),
            ("red", "dog", "sees", "small"), ("blue", "cat", "likes", "big"),
            ("big", "cat", "runs", "red"), ("small", "dog", "runs", "blue"),
        ]
    ]
)  # fmt: skip
pairs = Dataset.from_list(
    [
        {"prompt": "the cat", "chosen": " sees a dog", "rejected": " runs"},
        {"prompt": "the dog", "chosen": " likes a cat", "rejected": " sees"},
        {"prompt": "a big dog", "chosen": " runs and runs", "rejected": " likes"},
        {"prompt": "a small cat", "chosen": " sees the dog", "rejected": " and and"},
    ]
)

with tempfile.TemporaryDirectory() as folder:
    model = decoder()
    trainer = SFTTrainer(model, settings(SFTConfig, folder), train_dataset=texts,
                         processing_class=tokenizer)  # fmt: skip
    steps(trainer)
    print("sft", losses(trainer))
    ids = tokenizer("the cat", return_tensors="pt").input_ids
    print("says", model.generate(ids, max_new_tokens=6, do_sample=False).tolist())

    adapter = LoraConfig(r=4, target_modules=["c_attn"], task_type="CAUSAL_LM")
    trainer = SFTTrainer(decoder(), settings(SFTConfig, folder), train_dataset=texts,
                         processing_class=tokenizer, peft_config=adapter)  # fmt: skip
    steps(trainer)
    print("lora", losses(trainer))

    trainer = DPOTrainer(decoder(), decoder(), settings(DPOConfig, folder), train_dataset=pairs,
                         processing_class=tokenizer)  # fmt: skip
    steps(trainer)
    print("dpo", losses(trainer))
    print("margins", [round(entry["rewards/margins"], 6) for entry in trainer.state.log_history
                      if "rewards/margins" in entry])  # fmt: skip
