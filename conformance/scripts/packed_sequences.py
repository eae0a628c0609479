"""Sentences of different lengths through LSTM, GRU and RNN; a character model that writes."""

import torch
from torch import nn
from torch.nn.utils.rnn import (
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
)

torch.manual_seed(0)
sentences = [torch.randint(1, 20, (length,)) for length in (5, 3, 7, 1)]
lengths = torch.tensor([len(sentence) for sentence in sentences])
padded = pad_sequence(sentences, batch_first=True)
labels = torch.tensor([0, 1, 0, 1])
print(padded, pack_sequence(sentences, enforce_sorted=False))


class Classifier(nn.Module):
    def __init__(self, rnn):
        super().__init__()
        self.embedding = nn.Embedding(20, 6, padding_idx=0)
        self.rnn = rnn
        self.out = nn.Linear(rnn.hidden_size * (1 + rnn.bidirectional), 2)

    def forward(self, tokens, lengths):
        embedded = self.embedding(tokens)
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        outputs, hidden = self.rnn(packed)
        outputs, _ = pad_packed_sequence(outputs, batch_first=True)
        hidden = hidden[0] if isinstance(hidden, tuple) else hidden
        last = torch.cat(tuple(hidden[-1 - self.rnn.bidirectional :]), 1)
        return self.out(last), outputs


for rnn in (
    nn.LSTM(6, 4, 2, batch_first=True, bidirectional=True, dropout=0.2),
    nn.GRU(6, 4, batch_first=True),
    nn.RNN(6, 4, nonlinearity="relu", batch_first=True),
):
    model = Classifier(rnn)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(4):
        scores, outputs = model(padded, lengths)
        loss = nn.functional.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{type(rnn).__name__} {loss.item():.6f} {outputs.shape}")
print(model, model.embedding.weight.grad[:2])

text = "hello world, hello flame"
letters = sorted(set(text))
codes = torch.tensor([letters.index(letter) for letter in text])


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(letters), 8)
        self.cell = nn.GRUCell(8, 16)
        self.out = nn.Linear(16, len(letters))

    def forward(self, letter, hidden=None):
        hidden = self.cell(self.embedding(letter), hidden)
        return self.out(hidden), hidden


writer = Writer()
optimizer = torch.optim.RMSprop(writer.parameters(), lr=0.01)
for _ in range(3):
    hidden, loss = None, 0
    for position in range(len(codes) - 1):
        scores, hidden = writer(codes[position : position + 1], hidden)
        loss = loss + nn.functional.cross_entropy(scores, codes[position + 1 : position + 2])
        if position % 8 == 7:
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_value_(writer.parameters(), 0.25)
            optimizer.step()
            print(f"{loss.item():.5f}")
            hidden, loss = hidden.detach(), 0
with torch.no_grad():
    letter, hidden, written = codes[:1], None, ""
    for _ in range(20):
        scores, hidden = writer(letter, hidden)
        letter = torch.multinomial(torch.softmax(scores / 0.8, -1), 1).view(-1)
        written += letters[letter.item()]
print(repr(written))

for wrong in (
    lambda: pack_padded_sequence(padded, lengths, batch_first=True),
    lambda: nn.LSTM(6, 4)(torch.zeros(2, 3, 5)),
    lambda: nn.GRU(6, 4)(torch.zeros(2, 3, 6), torch.zeros(1, 2, 4)),
):
    try:
        wrong()
    except RuntimeError as error:
        print(error)
