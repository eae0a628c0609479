"""An LSTM that predicts the next character of a text; Adam, clipped gradients, carried state."""

TEXT = "the quick brown fox jumps over the lazy dog and runs away from it, over and over again. "


def run(torch, steps=100):
    """The losses of so many steps, by the `torch` that is given."""
    nn, F = torch.nn, torch.nn.functional

    class Model(nn.Module):
        def __init__(self, characters):
            super().__init__()
            self.embedding = nn.Embedding(characters, 24)
            self.lstm = nn.LSTM(24, 48, num_layers=2, dropout=0.1, batch_first=True)
            self.head = nn.Linear(48, characters)

        def forward(self, tokens, state):
            hidden, state = self.lstm(self.embedding(tokens), state)
            return self.head(hidden), state

    characters = sorted(set(TEXT))
    tokens = torch.tensor([characters.index(character) for character in TEXT * 40])
    streams = tokens[: len(tokens) // 8 * 8].view(8, -1)
    torch.manual_seed(3)
    model = Model(len(characters))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, betas=(0.9, 0.99))
    losses, state = [], None
    for step in range(steps):
        start = step * 16 % (streams.size(1) - 17)
        inputs, targets = streams[:, start : start + 16], streams[:, start + 1 : start + 17]
        scores, state = model(inputs, state)
        state = tuple(part.detach() for part in state)
        loss = F.cross_entropy(scores.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.item())
    return losses
