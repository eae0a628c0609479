"""Forty models of timm, drawn: outputs, and a training step of the smaller ones."""

import timm
import torch

NAMES = (
    "resnet10t resnet18 resnet26d resnetv2_18 seresnet18 ecaresnet26t skresnet18 "
    "mobilenetv2_050 mobilenetv3_small_050 mobilenetv3_large_075 mobilenetv4_conv_small_050 "
    "efficientnet_b0 tf_efficientnetv2_b0 mnasnet_small fbnetc_100 ghostnet_050 lcnet_035 "
    "tinynet_e regnetx_002 regnety_002 rexnetr_200 hardcorenas_a mixnet_s densenet121 "
    "vgg11 repvgg_a0 dla34 dla46_c hrnet_w18_small xcit_nano_12_p16_224 "
    "vit_tiny_patch16_224 deit_tiny_patch16_224 convnext_atto convnextv2_atto "
    "convmixer_768_32 poolformer_s12 edgenext_xx_small mobilevit_xxs fastvit_t8 "
    "levit_128s tiny_vit_5m_224 pit_ti_224 mixer_s32_224 gmlp_ti16_224 resmlp_12_224"
).split()
count = 0
for name in NAMES:
    if not timm.is_model(name):
        print(name, "is unknown to this version")
        continue
    torch.manual_seed(0)
    model = timm.create_model(name, num_classes=5).eval()
    size = model.pretrained_cfg["input_size"][-1]
    picture = torch.randn(1, 3, size, size)
    with torch.no_grad():
        out = model(picture)
    print(name, sum(p.numel() for p in model.parameters()), out.ravel().tolist())
    count += 1
print("models", count)
