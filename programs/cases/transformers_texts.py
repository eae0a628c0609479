"""Tiny random text models of transformers: outputs, losses, three training steps, generation."""

import torch
import transformers
from transformers import BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel

transformers.logging.set_verbosity_error()
torch.manual_seed(0)
small = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
bert = BertForSequenceClassification(BertConfig(vocab_size=99, **small))
ids = torch.randint(0, 99, (2, 12))
labels = torch.tensor([0, 1])
optimizer = torch.optim.AdamW(bert.parameters(), lr=1e-3)
for _ in range(3):
    out = bert(input_ids=ids, labels=labels)
    optimizer.zero_grad()
    out.loss.backward()
    optimizer.step()
    print("bert loss", out.loss.item())
print("bert logits", bert.eval()(input_ids=ids).logits.tolist())

torch.manual_seed(1)
gpt = GPT2LMHeadModel(GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64))
gpt.eval()
print("gpt2 logits", gpt(ids).logits.sum(-1).tolist())
common = {"max_new_tokens": 8, "pad_token_id": 0, "eos_token_id": 98}
print("greedy", gpt.generate(ids, do_sample=False, **common).tolist())
print("beams", gpt.generate(ids, num_beams=3, do_sample=False, **common).tolist())
torch.manual_seed(2)
print("sampled", gpt.generate(ids, do_sample=True, top_k=20, **common).tolist())
