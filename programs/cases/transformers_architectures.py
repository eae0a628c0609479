"""30 architectures of transformers, tiny and drawn: outputs, and the gradients of one step."""

import torch
import transformers
from transformers import AutoConfig, AutoModel

transformers.logging.set_verbosity_error()
SIZES = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
SPREAD = {**SIZES, "intermediate_size": 48}
GROUPED = {**SPREAD, "num_key_value_heads": 2, "head_dim": 8}
PAIR = {"vocab_size": 99, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
        "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2,
        "decoder_start_token_id": 2, "max_position_embeddings": 40}  # fmt: skip
PLANE = {**SPREAD, "image_size": 32, "patch_size": 8}
TEXT = {
    "bert": SPREAD, "roberta": SPREAD, "electra": {**SPREAD, "embedding_size": 16},
    "albert": {**SPREAD, "embedding_size": 16}, "mpnet": SPREAD, "deberta-v2": SPREAD,
    "distilbert": {"vocab_size": 99, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48},
    "xlnet": {"vocab_size": 99, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48},
    "gpt2": {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4},
    "gpt_neo": {"vocab_size": 99, "hidden_size": 32, "num_layers": 2, "num_heads": 4,
                "attention_types": [[["global", "local"], 1]], "window_size": 4},
    "gpt_neox": SPREAD, "opt": {**SIZES, "ffn_dim": 48, "word_embed_proj_dim": 32},
    "bloom": {"vocab_size": 99, "hidden_size": 32, "n_layer": 2, "n_head": 4},
    "llama": GROUPED, "mistral": {**GROUPED, "sliding_window": 4}, "qwen2": GROUPED,
    "qwen3": GROUPED, "gemma": GROUPED, "gemma2": {**GROUPED, "query_pre_attn_scalar": 8},
    "phi": SPREAD, "phi3": {**GROUPED, "pad_token_id": 0}, "falcon": SIZES,
    "mixtral": {**GROUPED, "num_local_experts": 4}, "mamba": {**SIZES, "state_size": 4},
    "t5": {"vocab_size": 99, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2,
           "num_heads": 4, "decoder_start_token_id": 0},
    "bart": PAIR, "pegasus": PAIR, "m2m_100": PAIR,
}  # fmt: skip
IMAGES = {
    "vit": PLANE, "deit": PLANE, "beit": PLANE,
    "convnext": {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2},
    "swin": {"image_size": 32, "patch_size": 4, "embed_dim": 8, "depths": [1, 1],
             "num_heads": [2, 2], "window_size": 4},
    "resnet": {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]},
}  # fmt: skip
SOUNDS = {"conv_dim": [16, 16], "conv_kernel": [10, 3], "conv_stride": [5, 2],
          "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8,
          "num_conv_pos_embedding_groups": 2}  # fmt: skip
HEARD = {"wav2vec2": {**SPREAD, **SOUNDS}, "hubert": {**SPREAD, **SOUNDS}}


def told(name, settings, **inputs):
    """What a model gives, and how large its gradients are."""
    torch.manual_seed(0)
    model = AutoModel.from_config(AutoConfig.for_model(name, **settings)).eval()
    out = model(**inputs)[0]
    out.float().square().mean().backward()
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    size = sum(float(g.double().square().sum()) for g in grads) ** 0.5
    print(name, tuple(out.shape), out.flatten()[:6].tolist(), "grad", len(grads), f"{size:.6g}")


torch.manual_seed(1)
ids = torch.randint(3, 99, (2, 9))
mask = torch.ones_like(ids)
mask[1, 6:] = 0
for name, settings in TEXT.items():
    more = {"decoder_input_ids": ids[:, :5]} if name in ("t5", "bart", "pegasus", "m2m_100") else {}
    told(name, settings, input_ids=ids, attention_mask=mask, **more)
picture = torch.randn(2, 3, 32, 32)
for name, settings in IMAGES.items():
    told(name, settings, pixel_values=picture)
wave = torch.randn(2, 400)
for name, settings in HEARD.items():
    told(name, settings, input_values=wave)

torch.manual_seed(2)
whisper = transformers.WhisperModel(transformers.WhisperConfig(
    **{**PAIR, "num_mel_bins": 8, "max_source_positions": 20, "max_target_positions": 20}
)).eval()  # fmt: skip
print("whisper", whisper(torch.randn(1, 8, 40), decoder_input_ids=ids[:1, :4])[0].mean(-1).tolist())
clip = transformers.CLIPModel(transformers.CLIPConfig(
    text_config={**SPREAD, "max_position_embeddings": 20, "eos_token_id": 98},
    vision_config=PLANE, projection_dim=16,
)).eval()  # fmt: skip
both = clip(input_ids=ids, pixel_values=picture, attention_mask=mask)
print("clip", both.logits_per_image.tolist())
