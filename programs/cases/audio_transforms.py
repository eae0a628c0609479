"""torchaudio's Python part: transforms, filters and models of sound."""

import torch
import torchaudio
from torchaudio import functional as F
from torchaudio import transforms as T

torch.manual_seed(0)
wave = torch.randn(2, 4000)
print("spectrogram", T.Spectrogram(n_fft=256)(wave).mean().item())
mel = T.MelSpectrogram(8000, n_fft=256, n_mels=20)(wave)
print("mel", mel.shape, mel.log().mean().item(), T.AmplitudeToDB()(mel).mean().item())
print("mfcc", T.MFCC(8000, n_mfcc=8, melkwargs={"n_fft": 256, "n_mels": 20})(wave).std().item())
print("resample", T.Resample(8000, 5000)(wave).square().sum().item())
print("lowpass", F.lowpass_biquad(wave, 8000, 1000.0).square().mean().item())
print("equalizer", F.equalizer_biquad(wave, 8000, 900.0, 3.0).std().item())
print(
    "filtfilt",
    F.filtfilt(wave[:, :400], torch.tensor([1.0, 0.3]), torch.tensor([0.5, 0.2])).std().item(),
)
spectrum = T.Spectrogram(n_fft=256, power=None)(wave)
print(
    "inverse", T.InverseSpectrogram(n_fft=256)(spectrum, 4000).sub(wave).abs().max().item() < 1e-4
)
print("stretch", T.TimeStretch(n_freq=129)(spectrum, 1.3).abs().mean().item())
torch.manual_seed(1)
print("masked", T.TimeMasking(10)(T.FrequencyMasking(5)(mel)).mean().item())
torch.manual_seed(2)
print("griffin", T.GriffinLim(256, n_iter=4)(T.Spectrogram(256)(wave)).square().mean().item())
print("pitch", T.PitchShift(8000, 2, n_fft=256)(wave).square().mean().item())
print(
    "convolve",
    F.convolve(wave, wave[:, :50]).sum().item(),
    F.fftconvolve(wave, wave[:, :50]).sum().item(),
)
print(
    "kaldi",
    torchaudio.compliance.kaldi.fbank(wave[:1], sample_frequency=8000.0, num_mel_bins=12)
    .mean()
    .item(),
)
print("loudness", F.loudness(3 * wave, 8000).item())
print("mu", F.mu_law_decoding(F.mu_law_encoding(wave.clamp(-1, 1), 64), 64).mean().item())
print(
    "delta",
    F.compute_deltas(mel).abs().mean().item(),
    F.spectral_centroid(wave, 8000, 0, torch.hann_window(256), 256, 128, 256).mean().item(),
)

torch.manual_seed(3)
encoder = torchaudio.models.Conformer(
    input_dim=16, num_heads=2, ffn_dim=32, num_layers=2, depthwise_conv_kernel_size=7
)
out, lengths = encoder(torch.randn(2, 12, 16), torch.tensor([12, 9]))
out.square().mean().backward()
print(
    "conformer",
    out.mean((1, 2)).tolist(),
    lengths.tolist(),
    sum(p.grad.norm().item() for p in encoder.parameters()),
)
torch.manual_seed(4)
separator = torchaudio.models.ConvTasNet(
    num_sources=2,
    enc_num_feats=16,
    msk_num_feats=8,
    msk_num_hidden_feats=8,
    msk_num_layers=2,
    msk_num_stacks=1,
)
print("tasnet", separator(wave[:, None, :512]).std().item())
torch.manual_seed(5)
hearing = torchaudio.models.wav2vec2_model(
    extractor_mode="group_norm",
    extractor_conv_layer_config=[(8, 10, 5), (8, 3, 2)],
    extractor_conv_bias=False,
    encoder_embed_dim=16,
    encoder_projection_dropout=0.0,
    encoder_pos_conv_kernel=8,
    encoder_pos_conv_groups=2,
    encoder_num_layers=2,
    encoder_num_heads=2,
    encoder_attention_dropout=0.0,
    encoder_ff_interm_features=24,
    encoder_ff_interm_dropout=0.0,
    encoder_dropout=0.0,
    encoder_layer_norm_first=False,
    encoder_layer_drop=0.0,
    aux_num_out=6,
)
scores, _ = hearing(wave[:, :1000])
print("wav2vec", scores.shape, scores.std().item())
