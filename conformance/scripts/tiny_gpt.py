"""A small GPT: shared embedding, causal attention two ways, warm-up, accumulation, sampling."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1337)


@dataclass
class Config:
    context: int = 8
    vocabulary: int = 20
    layers: int = 2
    heads: int = 2
    width: int = 16
    dropout: float = 0.1


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)
        allowed = torch.tril(torch.ones(config.context, config.context))
        self.register_buffer("allowed", allowed.view(1, 1, config.context, config.context))

    def forward(self, x, fused=True):
        B, T, C = x.size()
        parts = self.qkv(x).split(C, dim=2)
        q, k, v = (p.view(B, T, self.heads, C // self.heads).transpose(1, 2) for p in parts)
        if fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(k.size(-1))
            scores = scores.masked_fill(self.allowed[:, :, :T, :T] == 0, float("-inf"))
            y = F.softmax(scores, dim=-1) @ v
        return self.out(y.transpose(1, 2).contiguous().view(B, T, C))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config.width
        self.norm1, self.norm2 = nn.LayerNorm(width, bias=False), nn.RMSNorm(width)
        self.attention = Attention(config)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width),
            nn.Dropout(config.dropout),
        )  # fmt: skip

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.positions = nn.Embedding(config.context, config.width)
        self.blocks = nn.ModuleList([Block(config) for _ in range(config.layers)])
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        self.tokens.weight = self.head.weight
        self.apply(self._initialise)

    def _initialise(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)

    def forward(self, tokens, targets=None):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.size(1)))
        for block in self.blocks:
            x = block(x)
        scores = self.head(x)
        if targets is None:
            return scores
        return F.cross_entropy(scores.view(-1, scores.size(-1)), targets.reshape(-1))

    @torch.no_grad()
    def generate(self, tokens, count, k):
        for _ in range(count):
            scores = self(tokens[:, -self.config.context :])[:, -1] / 0.8
            least = torch.topk(scores, k).values[:, [-1]]
            scores[scores < least] = -float("inf")
            chosen = torch.multinomial(F.softmax(scores, dim=-1), num_samples=1)
            tokens = torch.cat((tokens, chosen), dim=1)
        return tokens


model = GPT(Config())
print(model, len(list(model.parameters())), model.head.weight is model.tokens.weight)
matrices = [p for p in model.parameters() if p.dim() >= 2]
vectors = [p for p in model.parameters() if p.dim() < 2]
groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95))


def factor(step, warm_up=3, total=12):
    if step < warm_up:
        return (step + 1) / (warm_up + 1)
    return 0.5 * (1.0 + math.cos(math.pi * (step - warm_up) / (total - warm_up)))


scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
data = torch.randint(0, 20, (400,))
for step in range(8):
    for _ in range(2):
        starts = torch.randint(len(data) - 8, (8,)).tolist()
        x = torch.stack([data[i : i + 8] for i in starts])
        y = torch.stack([data[i + 1 : i + 9] for i in starts])
        loss = model(x, y)
        (loss / 2).backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad(set_to_none=True)
    print(f"{step} loss {loss.item():.5f} norm {norm:.5f} lr {scheduler.get_last_lr()[0]:.6g}")
model.eval()
print(model.generate(torch.zeros((2, 1), dtype=torch.long), 12, k=5))
attention, x = model.blocks[0].attention, torch.randn(2, 8, 16)
torch.testing.assert_close(attention(x, fused=True), attention(x, fused=False))
print(attention(x).shape, model.state_dict().keys())
