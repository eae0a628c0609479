"""sentence-transformers: a tiny model encodes, searches, learns, and comes back from a file."""

import tempfile
from pathlib import Path

import sentence_transformers
import torch
import transformers
from sentence_transformers import SentenceTransformer, losses, models, util

print("version", sentence_transformers.__version__)
torch.manual_seed(0)
vocab = (
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    + [chr(97 + i) for i in range(26)]
    + ["##" + chr(97 + i) for i in range(26)]
)
d = tempfile.mkdtemp()
Path(d, "vocab.txt").write_text("\n".join(vocab))
cfg = transformers.BertConfig(
    vocab_size=len(vocab),
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=37,
    max_position_embeddings=64,
)
transformers.BertModel(cfg).save_pretrained(d)
transformers.BertTokenizer(d + "/vocab.txt").save_pretrained(d)
word = models.Transformer(d, max_seq_length=32)
pool = models.Pooling(word.get_word_embedding_dimension(), pooling_mode="mean")
m = SentenceTransformer(
    modules=[word, pool, models.Dense(32, 16), models.Normalize()], device="cpu"
)
e = m.encode(["hello world", "a cat", "the dog ran"], convert_to_tensor=True)
print("encode", e.shape, e.flatten()[:8].tolist())
print("cos", util.cos_sim(e, e).tolist())
print("search", util.semantic_search(e[:1], e, top_k=2)[0][0]["corpus_id"])
m.save(d + "/st")
m2 = SentenceTransformer(d + "/st", device="cpu")
print("again", float((m2.encode(["a cat"], convert_to_tensor=True) - e[1]).abs().max()) < 1e-06)
loss = losses.CosineSimilarityLoss(m)
feats = [m.tokenize(["a cat", "b dog"]), m.tokenize(["the cat", "x y"])]
m.train()
torch.manual_seed(1)
total = loss(feats, torch.tensor([0.9, 0.1]))
total.backward()
print("loss", total.item(), sum(float(p.grad.norm()) for p in m.parameters() if p.grad is not None))
