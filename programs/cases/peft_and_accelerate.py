"""LoRA on a tiny GPT-2 under accelerate: losses, adapters saved and loaded."""

import tempfile

import torch
from accelerate import Accelerator
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel


def base():
    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(vocab_size=50, n_embd=32, n_layer=2, n_head=2))


accelerator = Accelerator(cpu=True)
lora = LoraConfig(r=4, target_modules=["c_attn"], lora_dropout=0.1, fan_in_fan_out=True)
model = get_peft_model(base(), lora)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
model, optimizer = accelerator.prepare(model, optimizer)
ids = torch.randint(0, 50, (2, 10))
for _ in range(3):
    loss = model(input_ids=ids, labels=ids).loss
    accelerator.backward(loss)
    accelerator.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print("loss", loss.item())
with tempfile.TemporaryDirectory() as folder:
    accelerator.unwrap_model(model).save_pretrained(folder)
    again = PeftModel.from_pretrained(base(), folder).eval()
print("logits", again(input_ids=ids).logits.sum(-1).tolist())
