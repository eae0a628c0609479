"""A small GPT that learns to count in steps; AdamW in two groups, warm-up and cosine, clipping."""

import math

WIDTH, HEADS, LENGTH, VOCABULARY = 32, 4, 24, 10


def model_of(torch):
    """The untrained model: two blocks, embeddings shared with the output layer."""
    nn, F = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
            self.out = nn.Linear(WIDTH, WIDTH)

        def forward(self, x):
            batch, time, _ = x.shape
            query, key, value = (
                part.view(batch, time, HEADS, -1).transpose(1, 2)
                for part in self.qkv(x).split(WIDTH, dim=2)
            )
            attended = F.scaled_dot_product_attention(
                query, key, value, dropout_p=0.1, is_causal=True
            )
            return self.out(attended.transpose(1, 2).reshape(batch, time, WIDTH))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.attention = nn.LayerNorm(WIDTH), Attention()
            self.second = nn.LayerNorm(WIDTH)
            self.mlp = nn.Sequential(
                nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.1)
            )

        def forward(self, x):
            x = x + self.attention(self.first(x))
            return x + self.mlp(self.second(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(VOCABULARY, WIDTH)
            self.places = nn.Embedding(LENGTH, WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(2))
            self.norm = nn.LayerNorm(WIDTH)
            self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
            self.apply(self.initialize)
            self.head.weight = self.tokens.weight

        def initialize(self, module):
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)

        def forward(self, tokens):
            x = self.tokens(tokens) + self.places(torch.arange(tokens.size(1)))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    return GPT()


def run(torch, steps=100):
    """The losses of so many steps, by the `torch` that is given."""
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(4)
    model = model_of(torch)
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
        lr=3e-3,
        betas=(0.9, 0.95),
    )
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / 10, 0.5 + 0.5 * math.cos(math.pi * step / steps))
    )
    losses = []
    for _ in range(steps):
        start, stride = torch.randint(0, 10, (16, 1)), torch.randint(1, 3, (16, 1))
        sequence = (start + stride * torch.arange(LENGTH + 1)) % 10
        scores = model(sequence[:, :-1])
        loss = F.cross_entropy(scores.reshape(-1, VOCABULARY), sequence[:, 1:].reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses
