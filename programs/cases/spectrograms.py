"""nnAudio: spectrograms as layers, some with weights that learn."""

import torch
from nnAudio import features

torch.manual_seed(0)
sound = torch.sin(torch.arange(4096) * 0.2)[None] + 0.1 * torch.randn(2, 4096)
quiet = {"verbose": False}
layers = {
    "stft": features.STFT(n_fft=256, hop_length=128, sr=8000, output_format="Magnitude", **quiet),
    "complex": features.STFT(n_fft=128, freq_bins=20, freq_scale="log", sr=8000, fmin=60, fmax=3000,
                             output_format="Complex", **quiet),
    "mel": features.MelSpectrogram(sr=8000, n_fft=256, n_mels=16, hop_length=128, **quiet),
    "mfcc": features.MFCC(sr=8000, n_mfcc=8, n_fft=256, n_mels=16, hop_length=128, verbose=False),
    "gamma": features.Gammatonegram(sr=8000, n_fft=256, n_bins=16, hop_length=128, **quiet),
    "cqt": features.CQT1992v2(sr=8000, fmin=220, n_bins=24, hop_length=128, **quiet),
    "vqt": features.VQT(sr=8000, fmin=220, n_bins=24, hop_length=128, gamma=5, **quiet),
}  # fmt: skip
for name, layer in layers.items():
    found = layer(sound)
    print(
        name, tuple(found.shape), found.double().abs().mean().item(), found.flatten()[:3].tolist()
    )
there = features.STFT(n_fft=256, hop_length=64, iSTFT=True, output_format="Complex", **quiet)
back = there.inverse(there(sound), onesided=True, length=4096)
print("inverse", (back - sound).abs().max().item() < 1e-3)
learning = features.MelSpectrogram(
    sr=8000, n_fft=128, n_mels=8, hop_length=128, trainable_mel=True, trainable_STFT=True, **quiet
)
descent = torch.optim.SGD(learning.parameters(), 1e-3)
for _ in range(3):
    descent.zero_grad()
    loss = (learning(sound) + 1e-3).log().square().mean()
    loss.backward()
    descent.step()
    print("loss", loss.item())
print("weights", [(name, tuple(p.shape)) for name, p in learning.named_parameters()])
