"""Models of sequences: tagging, translation with beam search, decoding."""

import math
from typing import List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Tagger(nn.Module):
    def __init__(self, words: int = 11, tags: int = 3, size: int = 4):
        super().__init__()
        self.embedding = nn.Embedding(words, size)
        self.lstm = nn.LSTM(size, size, num_layers=2, bidirectional=True, batch_first=True)
        self.hidden_to_tag = nn.Linear(2 * size, tags)

    def forward(self, sentences: Tensor, lengths: Optional[List[int]] = None) -> Tuple[Tensor, Tensor]:
        output, (hidden, _) = self.lstm(self.embedding(sentences))
        scores = F.log_softmax(self.hidden_to_tag(output), dim=-1)
        if lengths is not None:
            steps = torch.arange(sentences.size(1))
            scores = scores * (steps < torch.tensor(lengths)[:, None]).unsqueeze(-1)
        return scores, hidden


class Encoder(nn.Module):
    def __init__(self, words: int, size: int):
        super().__init__()
        self.embedding = nn.Embedding(words, size)
        self.gru = nn.GRU(size, size)

    def forward(self, sentence: Tensor) -> Tuple[Tensor, Tensor]:
        output, hidden = self.gru(self.embedding(sentence).unsqueeze(1))
        return output.squeeze(1), hidden[0]


class Decoder(nn.Module):
    def __init__(self, words: int, size: int):
        super().__init__()
        self.embedding = nn.Embedding(words, size)
        self.cell = nn.GRUCell(2 * size, size)
        self.output = nn.Linear(size, words)

    def forward(self, word: Tensor, hidden: Tensor, memory: Tensor) -> Tuple[Tensor, Tensor]:
        weights = torch.softmax(hidden @ memory.t() / math.sqrt(memory.size(1)), dim=1)
        hidden = self.cell(torch.cat([self.embedding(word), weights @ memory], dim=1), hidden)
        return F.log_softmax(self.output(hidden), dim=1), hidden


class Translator(nn.Module):
    """Beam search over a recurrent decoder."""

    def __init__(self, words: int = 7, size: int = 4, beam: int = 3):
        super().__init__()
        self.encoder = Encoder(words, size)
        self.decoder = Decoder(words, size)
        self.beam = beam
        self.end = 1

    def forward(self, sentence: Tensor, limit: int) -> Tuple[List[List[int]], List[float]]:
        memory, hidden = self.encoder(sentence)
        beams: List[Tuple[float, List[int], Tensor]] = [(0.0, [0], hidden)]
        finished: List[Tuple[float, List[int]]] = []
        for step in range(limit):
            candidates: List[Tuple[float, int, int, Tensor]] = []
            for number, (score, words, state) in enumerate(beams):
                scores, new_state = self.decoder(torch.tensor([words[-1]]), state, memory)
                values, indices = scores[0].topk(self.beam)
                for j in range(self.beam):
                    candidates.append((score + float(values[j]), number, int(indices[j]), new_state))
            order = torch.tensor([c[0] for c in candidates]).argsort(descending=True)
            grown: List[Tuple[float, List[int], Tensor]] = []
            for k in [int(o) for o in order[: self.beam]]:
                score, number, word, state = candidates[k]
                words = beams[number][1] + [word]
                if word == self.end:
                    finished.append((score / len(words), words))
                else:
                    grown.append((score, words, state))
            if len(grown) == 0:
                break
            beams = grown
        for score, words, _ in beams:
            finished.append((score / len(words), words))
        return [words for _, words in finished], [score for score, _ in finished]


class Attention(nn.Module):
    def __init__(self, size: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query_key_value = nn.Linear(size, 3 * size)
        self.output = nn.Linear(size, size)

    def forward(self, x: Tensor, mask: Optional[Tensor] = None) -> Tensor:
        batch, length, size = x.shape
        parts = self.query_key_value(x).view(batch, length, 3, self.heads, size // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        scores = query @ key.transpose(-2, -1) / math.sqrt(size // self.heads)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        return self.output((scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, length, size))


class EncoderBlock(nn.Module):
    def __init__(self, size: int = 8, heads: int = 2):
        super().__init__()
        self.attention = Attention(size, heads)
        self.norm1 = nn.LayerNorm(size)
        self.norm2 = nn.LayerNorm(size)
        self.feed_forward = nn.Sequential(nn.Linear(size, 2 * size), nn.GELU(), nn.Dropout(0.0), nn.Linear(2 * size, size))

    def forward(self, x: Tensor, causal: bool = False) -> Tensor:
        mask = torch.tril(torch.ones(x.size(1), x.size(1))) if causal else None
        x = x + self.attention(self.norm1(x), mask)
        return x + self.feed_forward(self.norm2(x))


class CRF(nn.Module):
    """A linear chain: the likelihood of tags, and the best tags."""

    def __init__(self, tags: int = 3):
        super().__init__()
        self.tags = tags
        self.transitions = nn.Parameter(torch.randn(tags, tags))

    def forward(self, emissions: Tensor) -> Tensor:
        """The logarithm of the partition function."""
        alpha = emissions[0]
        for emission in emissions[1:]:
            alpha = torch.logsumexp(alpha[:, None] + self.transitions + emission, dim=0)
        return alpha.logsumexp(0)


class Viterbi(CRF):
    def forward(self, emissions: Tensor) -> Tuple[List[int], float]:
        score = emissions[0]
        history: List[Tensor] = []
        for i in range(1, emissions.size(0)):
            best, previous = (score.unsqueeze(1) + self.transitions).max(0)
            score = best + emissions[i]
            history.append(previous)
        tag = int(score.argmax())
        path = [tag]
        for previous in history[::-1]:
            tag = int(previous[tag])
            path.append(tag)
        path.reverse()
        return path, float(score.max())


class Transducer(nn.Module):
    """Greedy decoding of a recurrent neural network transducer."""

    blank: int

    def __init__(self, words: int = 4, size: int = 3):
        super().__init__()
        self.prediction = nn.LSTMCell(size, size)
        self.embedding = nn.Embedding(words, size)
        self.joint = nn.Linear(size, words)
        self.blank = 0

    def step(self, word: int, state: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Tensor]:
        return self.prediction(self.embedding(torch.tensor([word])), state)

    def forward(self, frames: Tensor, most: int = 2) -> List[int]:
        zero = torch.zeros(1, frames.size(1))
        state = self.step(self.blank, (zero, zero))
        words: List[int] = []
        for frame in frames:
            emitted = 0
            while emitted < most:
                word = int(self.joint(torch.tanh(frame + state[0])).argmax())
                if word == self.blank:
                    break
                words.append(word)
                state = self.step(word, state)
                emitted += 1
        return words


PROGRAMS = {
    "tagger": (Tagger, [(torch.tensor([[1, 2, 3], [4, 10, 0]]),), (torch.tensor([[1, 2, 3]]), [2])]),
    "translator": (Translator, [(torch.tensor([2, 3, 4]), 6), (torch.tensor([5]), 2)]),
    "encoder_block": (EncoderBlock, [(torch.randn(2, 5, 8),), (torch.randn(1, 3, 8), True)]),
    "crf": (CRF, [(torch.randn(5, 3),), (torch.randn(1, 3),)]),
    "viterbi": (Viterbi, [(torch.randn(5, 3),), (torch.randn(1, 3),)]),
    "transducer": (Transducer, [(torch.randn(6, 3),), (torch.randn(3, 3), 5)]),
}
