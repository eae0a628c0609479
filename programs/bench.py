"""What libraries cost under flambeau and under PyTorch, in alternating runs.

    python programs/bench.py --flambeau VENV --torch VENV [--rounds N] [NAME ...]

The environments are those of `run.py`. Each task runs in a process of its own, which tells the
seconds from the start of Python to the first result, the seconds of one more call, and its memory.
The table has the least of each over the rounds, and theirs by ours. Threads: OMP_NUM_THREADS.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

START = "import time; begun = time.perf_counter()\n"
END = """
first = time.perf_counter() - begun
times = []
for _ in range(CALLS):
    start = time.perf_counter()
    call()
    times.append(time.perf_counter() - start)
import json, resource
print(json.dumps([first, min(times), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""
BERT = """
import torch, transformers
torch.manual_seed(0)
model = transformers.BertModel(transformers.BertConfig()).eval()
ids = torch.randint(0, 30000, (8, 128))
def call():
    with torch.inference_mode():
        model(ids)
call()
"""
TASKS = {
    "classify a text": """
import torch, transformers
from pathlib import Path
folder = Path(FOLDER)
letters = [chr(97 + k) for k in range(26)]
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *["##" + one for one in letters]]
(folder / "vocab.txt").write_text("\\n".join(words))
torch.manual_seed(0)
config = transformers.DistilBertConfig(
    vocab_size=57, dim=256, n_layers=4, n_heads=4, hidden_dim=1024)
tokenizer = transformers.BertTokenizer(str(folder / "vocab.txt"))
classify = transformers.pipeline("text-classification", device="cpu", tokenizer=tokenizer,
                                 model=transformers.DistilBertForSequenceClassification(config))
def call():
    classify("a lamp that floats on the river")
call()
""",
    "classify an image (timm)": """
import timm, torch
torch.manual_seed(0)
model = timm.create_model("resnet18").eval()
picture = torch.randn(1, 3, 224, 224)
def call():
    with torch.inference_mode():
        model(picture)
call()
""",
    "BERT-base encodes 8 x 128": BERT,
    "GPT-2 small writes 20 tokens": """
import torch, transformers
torch.manual_seed(0)
model = transformers.GPT2LMHeadModel(transformers.GPT2Config()).eval()
ids = torch.randint(0, 50000, (1, 16))
def call():
    model.generate(ids, max_new_tokens=20, min_new_tokens=20, do_sample=False, pad_token_id=0)
call()
""",
    "ViT-B/16 of one image": """
import timm, torch
torch.manual_seed(0)
model = timm.create_model("vit_base_patch16_224").eval()
picture = torch.randn(1, 3, 224, 224)
def call():
    with torch.inference_mode():
        model(picture)
call()
""",
    "Whisper-tiny writes 10 tokens": """
import torch, transformers
torch.manual_seed(0)
config = transformers.WhisperConfig(d_model=384, encoder_layers=4, decoder_layers=4,
    encoder_attention_heads=6, decoder_attention_heads=6, encoder_ffn_dim=1536,
    decoder_ffn_dim=1536)
model = transformers.WhisperForConditionalGeneration(config).eval()
sound = torch.randn(1, 80, 3000)
def call():
    model.generate(sound, max_new_tokens=10, min_new_tokens=10, do_sample=False)
call()
""",
    "a LoRA step of GPT-2 small": """
import peft, torch, transformers
torch.manual_seed(0)
model = transformers.GPT2LMHeadModel(transformers.GPT2Config())
model = peft.get_peft_model(model, peft.LoraConfig(r=8, target_modules=["c_attn"]))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
ids = torch.randint(0, 50000, (2, 64))
def call():
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
call()
""",
    "a Lightning epoch of a small CNN": """
import logging, lightning, torch, warnings
warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
nn = torch.nn
class Digits(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                                 nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(),
                                 nn.Linear(512, 10))
    def training_step(self, batch, place):
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.rand(1792, 1, 8, 8), torch.randint(0, 10, (1792,)))
def call():
    trainer = lightning.Trainer(max_epochs=1, logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False,
                                accelerator="cpu")
    trainer.fit(Digits(), torch.utils.data.DataLoader(data, batch_size=64))
call()
""",
}


def measured(environment: Path, code: str, calls: int) -> list[float]:
    """Seconds to the first result, seconds of a call, MB; from a new process."""
    settings = {**os.environ, "HF_HUB_OFFLINE": "1"}
    settings.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory() as folder:
        whole = f"{START}FOLDER, CALLS = {folder!r}, {calls}\n{code}{END}"
        done = subprocess.run(
            [str(environment / "bin" / "python"), "-W", "ignore", "-c", whole],
            env=settings, capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{environment}: {done.stderr.strip()[-2000:]}")
    found: list[float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def main() -> None:
    """Carry out the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flambeau", type=Path, required=True, metavar="VENV")
    parser.add_argument("--torch", type=Path, required=True, metavar="VENV")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=5)
    parser.add_argument("names", nargs="*", help="words that the names of tasks begin with")
    options = parser.parse_args()
    print(f"{time.strftime('%Y-%m-%d')}, ours / PyTorch, least of {options.rounds} rounds")
    print(f"{'':34}{'first result, s':>24}{'one more, ms':>24}{'memory, MB':>20}")
    for name, code in TASKS.items():
        if options.names and not any(name.startswith(word) for word in options.names):
            continue
        rounds = [
            [measured(place, code, options.calls) for place in (options.flambeau, options.torch)]
            for _ in range(options.rounds)
        ]
        ours, theirs = (
            [min(one[side][k] for one in rounds) for k in range(3)] for side in range(2)
        )
        columns = [
            f"{a * scale:.4g} / {b * scale:.4g} = {b / a:.2f}"
            for a, b, scale in zip(ours, theirs, (1, 1000, 1), strict=True)
        ]
        print(f"{name:34}{columns[0]:>24}{columns[1]:>24}{columns[2]:>20}", flush=True)


if __name__ == "__main__":
    main()
