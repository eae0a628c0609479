"""Calls of torch.nn.functional and torch's other programs, with arguments right and wrong.

A row is a call, and its inputs: `x: 2 3` is a float tensor of that shape, `i < 5: 4` one of
integers below 5, `p: 3 4` one of numbers between 0 and 1.
"""

from __future__ import annotations

ACTIVATIONS = """
F.relu(x) | x: 3 4
F.relu(x * 1, True) | x: 3 4
F.relu6(x * 4, inplace=True) | x: 3 4
F.selu(x), F.silu(x), F.mish(x), F.hardswish(x * 3), F.hardsigmoid(x * 3) | x: 3 4
F.selu(x * 1, True), F.silu(x * 1, True), F.mish(x * 1, True) | x: 3 4
F.hardswish(x * 3, True), F.hardsigmoid(x * 3, True) | x: 3 4
F.elu(x, 0.5), F.celu(x, 0.5), F.leaky_relu(x, 0.2) | x: 3 4
F.elu(x * 1, 0.5, True), F.celu(x * 1, 0.5, True), F.leaky_relu(x * 1, 0.2, True) | x: 3 4
F.threshold(x, 0.1, 20.0), F.threshold(x * 1, 0.1, 20.0, True) | x: 3 4
F.rrelu(x, 0.1, 0.3), F.rrelu(x * 1, 0.2, 0.4, False, True) | x: 3 4
F.hardtanh(x, -0.5, 0.5), F.hardtanh(x * 1, -0.5, 0.5, True) | x: 3 4
F.hardtanh(x, 0.5, -0.5) | x: 3 4
F.tanhshrink(x), F.softsign(x), F.tanh(x), F.sigmoid(x) | x: 3 4
F.glu(x), F.glu(x, 0) | x: 4 4
F.glu(x) | x:
F.softmax(x, 1), F.softmax(x, dim=0, dtype=torch.float64) | x: 3 4
F.softmax(x) | x: 3 4
F.softmax(x) | x: 3 4 2
F.softmax(x) | x: 3
F.log_softmax(x, 1), F.log_softmax(x, -1, dtype=torch.float64) | x: 3 4
F.log_softmax(x) | x: 3 4 2 2
F.softmin(x, 1), F.softmin(x, 0, dtype=torch.float64) | x: 3 4
F.softmin(x) | x: 3 4
F.gumbel_softmax(x, 0.7, True).sum(1), F.gumbel_softmax(x, dim=0).sum(0) | x: 3 4
F.gumbel_softmax(x, eps=1e-5).sum(1) | x: 3 4
"""

DROPOUT = """
F.dropout(x, 0.3, False), F.dropout(x, 1.0), F.dropout(x * 1, 0.0, True, True) | x: 3 4
F.dropout(x, 1.5) | x: 3 4
F.alpha_dropout(x, 0.3), F.alpha_dropout(x * 1, 0.0, True, True) | x: 3 4
F.alpha_dropout(x, -0.5) | x: 3 4
F.feature_alpha_dropout(x, 0.3), F.feature_alpha_dropout(x * 1, 0.0, True, True) | x: 2 3 4
F.dropout1d(x, 1.0), F.dropout1d(x * 1, 1.0, True, True), F.dropout1d(x[0], 1.0) | x: 2 3 4
F.dropout1d(x[0] * 1, 1.0, True, True), F.dropout1d(x[0], 0.2, False) | x: 2 3 4
F.dropout1d(x) | x: 3
F.dropout1d(x, 2.0) | x: 3
F.dropout2d(x, 1.0), F.dropout2d(x * 1, 1.0, True, True) | x: 2 3 4 2
F.dropout2d(x, 1.0) | x: 2 3 4
F.dropout2d(x, 1.0) | x: 2 3
F.dropout3d(x, 1.0), F.dropout3d(x[0], 1.0), F.dropout3d(x[0] * 1, 1.0, True, True) | x: 2 3 4 2 2
F.dropout3d(x, 1.0) | x: 2 3 4
"""

LOSSES = """
F.l1_loss(x, y), F.l1_loss(x, y, reduction="none"), F.l1_loss(x, y, reduce=False) | x: 3 4 | y: 3 4
F.l1_loss(x, y, weight=w), F.l1_loss(x, y, weight=w, reduction="sum") | x: 3 4 | y: 3 4 | w: 3 4
F.l1_loss(x, y, weight=w, reduction="none") | x: 3 4 | y: 3 4 | w: 3 4
F.l1_loss(x, y, weight=w, reduction="half") | x: 3 4 | y: 3 4 | w: 3 4
F.l1_loss(x, y, weight=w) | x: 3 4 | y: 3 4 | w: 4
F.l1_loss(x, y) | x: 3 4 | y: 4
F.l1_loss(x, y, reduction="half") | x: 3 4 | y: 3 4
F.l1_loss(x, y, reduction="elementwise_mean") | x: 3 4 | y: 3 4
F.mse_loss(x, y), F.mse_loss(x, y, size_average=False) | x: 3 4 | y: 3 4
F.mse_loss(x, y, weight=w), F.mse_loss(x, y, weight=w, reduction="sum") | x: 3 4 | y: 3 4 | w: 3 4
F.mse_loss(x, y, weight=w, reduction="half") | x: 3 4 | y: 3 4 | w: 3 4
F.mse_loss(x, y) | x: 3 4 | y: 3 1
F.huber_loss(x, y), F.huber_loss(x, y, "sum", 0.3) | x: 3 4 | y: 3 4
F.huber_loss(x, y, weight=w), F.huber_loss(x, y, "sum", weight=w) | x: 3 4 | y: 3 4 | w: 3 4
F.huber_loss(x, y, "none", weight=w) | x: 3 4 | y: 3 4 | w: 3 4
F.huber_loss(x, y, "half", weight=w) | x: 3 4 | y: 3 4 | w: 3 4
F.huber_loss(x, y, weight=w) | x: 3 4 | y: 3 4 | w: 3
F.smooth_l1_loss(x, y), F.smooth_l1_loss(x, y, beta=0.0, reduction="sum") | x: 3 4 | y: 3 4
F.smooth_l1_loss(x, y) | x: 3 4 | y: 1 4
F.poisson_nll_loss(x, y), F.poisson_nll_loss(y, y, False, True) | x: 3 4 | p y: 3 4
F.poisson_nll_loss(x, y, reduction="half") | x: 3 4 | p y: 3 4
F.poisson_nll_loss(x, y, reduction="elementwise_mean") | x: 3 4 | p y: 3 4
F.hinge_embedding_loss(x, y), F.hinge_embedding_loss(x, y, 0.3, reduce=False) | x: 3 4 | y: 3 4
F.margin_ranking_loss(x, y, x.sign()), F.margin_ranking_loss(x, y, x, 0.4, True) | x: 3 | y: 3
F.margin_ranking_loss(x, y, x) | x: 3 | y: 3 3
F.cosine_embedding_loss(x, y, torch.ones(3)) | x: 3 4 | y: 3 4
F.triplet_margin_loss(x, y, z), F.triplet_margin_loss(x, y, z, swap=True) | x: 3 4 | y: 3 4 | z: 3 4
F.triplet_margin_loss(x, y, z, margin=0.0) | x: 3 4 | y: 3 4 | z: 3 4
F.nll_loss(x, t), F.nll_loss(x, t, w, reduction="sum", ignore_index=1) | x: 3 4 | t < 4: 3 | p w: 4
F.nll_loss(x, t, size_average=False) | x: 3 4 | t < 4: 3
F.nll_loss(x, t, reduce=False) | x: 3 4 | t < 4: 3
F.cross_entropy(x, t), F.cross_entropy(x, t, w, label_smoothing=0.1) | x: 3 4 | t < 4: 3 | p w: 4
F.cross_entropy(x, t, reduction="none") | x: 3 4 | t < 4: 3
F.kl_div(x, y), F.kl_div(x, y, reduction="batchmean") | x: 3 4 | p y: 3 4
F.kl_div(x, y, reduction="sum"), F.kl_div(x, y, log_target=True, reduction="none") | x: 3 4 | p y: 3 4
F.kl_div(x, y, size_average=False, reduction="batchmean") | x: 3 4 | p y: 3 4
F.kl_div(x, y, reduction="batchmean") | x: | p y:
F.kl_div(x, y, reduction="half") | x: 3 4 | p y: 3 4
F.binary_cross_entropy(x, y), F.binary_cross_entropy(x, y, w) | p x: 3 4 | p y: 3 4 | p w: 4
F.binary_cross_entropy(x, y, reduce=False) | p x: 3 4 | p y: 3 4
F.binary_cross_entropy(x, y) | p x: 3 4 | p y: 4
F.binary_cross_entropy_with_logits(x, y, w, pos_weight=w) | x: 3 4 | p y: 3 4 | p w: 4
F.binary_cross_entropy_with_logits(x, y) | x: 3 4 | p y: 3
F.soft_margin_loss(x, y), F.soft_margin_loss(x, y, reduction="sum") | x: 3 4 | y: 3 4
F.multilabel_margin_loss(x, t) | x: 3 4 | t < 4: 3 4
F.multilabel_soft_margin_loss(x, y), F.multilabel_soft_margin_loss(x, y, w) | x: 3 4 | p y: 3 4 | p w: 4
F.multilabel_soft_margin_loss(x, y, reduction="none") | x: 2 3 4 | p y: 2 3 4
F.multilabel_soft_margin_loss(x, y, reduction="half") | x: 3 4 | p y: 3 4
F.multi_margin_loss(x, t), F.multi_margin_loss(x, t, 2, 0.5, w) | x: 3 4 | t < 4: 3 | p w: 4
F.multi_margin_loss(x, t, 3) | x: 3 4 | t < 4: 3
F.multi_margin_loss(x, t, weight=x) | x: 3 4 | t < 4: 3
F.ctc_loss(F.log_softmax(x, 2), t + 1, n + 5, n + 2) | x: 5 2 6 | t < 4: 2 2 | n < 1: 2
"""

EMBEDDING = """
F.embedding(t, x), F.embedding(t, x, 1), F.embedding(t, x, padding_idx=-2) | t < 5: 2 3 | x: 5 4
F.embedding(t, x, 5) | t < 5: 2 3 | x: 5 4
F.embedding(t, x, -6) | t < 5: 2 3 | x: 5 4
F.embedding_bag(t, x), F.embedding_bag(t, x, mode="sum") | t < 5: 2 3 | x: 5 4
F.embedding_bag(t, x, mode="max") | t < 5: 2 3 | x: 5 4
F.embedding_bag(t, x, o), F.embedding_bag(t, x, o, padding_idx=2) | t < 5: 6 | x: 5 4 | o < 1: 2
F.embedding_bag(t, x, mode="sum", per_sample_weights=w) | t < 5: 2 3 | x: 5 4 | w: 2 3
F.embedding_bag(x, t, mode="sum") | t < 5: 2 3 | x: 5 4
F.embedding_bag(t, x, per_sample_weights=w) | t < 5: 2 3 | x: 5 4 | w: 2 3
F.embedding_bag(t, x, mode="sum", per_sample_weights=w) | t < 5: 2 3 | x: 5 4 | w: 3
F.embedding_bag(t, x) | t < 5: 3 | x: 5 4
F.embedding_bag(t, x, o) | t < 5: 2 3 | x: 5 4 | o < 1: 2
F.embedding_bag(t, x, t) | t < 5: 2 3 1 | x: 5 4
F.embedding_bag(t, x, o) | t < 5: 3 | x: 5 4 | o < 1: 2 1
F.embedding_bag(t, x) | t < 5: 2 3 | x: 5
F.embedding_bag(t, x, mode="min") | t < 5: 2 3 | x: 5 4
F.embedding_bag(t, x, mode="max", sparse=True) | t < 5: 2 3 | x: 5 4
F.embedding_bag(t, x, mode="max", scale_grad_by_freq=True) | t < 5: 2 3 | x: 5 4
F.pad(x, [1, 2]), F.pad(x, (1, 1), "reflect"), F.pad(x, [1, 0], value=2.0) | x: 2 3 4
F.unfold(x, 2), F.unfold(x, [2, 3], padding=1, stride=(1, 2)) | x: 2 3 4 5
F.fold(x, [3, 4], 2), F.fold(x, (3, 4), [2, 2]) | x: 2 8 6
"""

POOLING = """
F.max_pool1d(x, 2), F.max_pool1d(x, 3, 1, 1), F.max_pool1d(x, 2, return_indices=True) | x: 2 3 8
F.max_pool2d(x, 2), F.max_pool2d(x, (2, 1), 1, ceil_mode=True) | x: 2 3 5 6
F.max_pool2d(x, 2, return_indices=True)[1], F.max_pool2d(x, [2, 2], stride=[1, 2]) | x: 2 3 5 6
F.max_pool3d(x, 2), F.max_pool3d(x, 2, return_indices=True)[1] | x: 2 3 4 4 4
F.adaptive_max_pool1d(x, 2), F.adaptive_max_pool1d(x, 2, return_indices=True) | x: 2 3 8
F.adaptive_max_pool2d(x, 2), F.adaptive_max_pool2d(x, [2, 3], True)[1] | x: 2 3 5 6
F.adaptive_max_pool3d(x, 2), F.adaptive_max_pool3d(x, 1, return_indices=True)[1] | x: 2 3 4 4 4
F.adaptive_avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, [1, 3]) | x: 2 3 5 6
F.adaptive_avg_pool2d(x, 2) | x: 5 6
F.adaptive_avg_pool3d(x, 2) | x: 2 3 4 4 4
F.fractional_max_pool2d(x, 2, (2, 3), _random_samples=s) | x: 2 3 6 7 | p s: 2 3 2
F.fractional_max_pool2d(x, 2, output_ratio=0.5, _random_samples=s) | x: 2 3 6 7 | p s: 2 3 2
F.fractional_max_pool2d(x, 2, output_ratio=(0.5, 0.6), return_indices=True)[0].size() | x: 3 6 7
F.fractional_max_pool2d(x, 2) | x: 2 3 6 7
F.fractional_max_pool3d(x, 2, 2, _random_samples=s) | x: 2 3 5 5 5 | p s: 2 3 3
F.fractional_max_pool3d(x, 2, output_ratio=0.5).size() | x: 3 6 6 7
F.fractional_max_pool3d(x, 2) | x: 2 3 6 7 5
F.lp_pool1d(x, 2.0, 3), F.lp_pool1d(x, 3, 2, 1, True) | x: 2 3 8
F.lp_pool1d(x, float("inf"), 3), F.lp_pool1d(x, -float("inf"), 3, 2) | x: 2 3 8
F.lp_pool2d(x, 2.0, 2), F.lp_pool2d(x, 3, (2, 3), 1) | x: 2 3 5 6
F.lp_pool2d(x, float("inf"), 2), F.lp_pool2d(x, -float("inf"), 2) | x: 2 3 5 6
F.lp_pool3d(x, 2.0, 2), F.lp_pool3d(x, float("inf"), 2), F.lp_pool3d(x, -float("inf"), 2) | x: 2 3 4 4 4
F.max_unpool1d(x, t, 2), F.max_unpool1d(x, t, 2, output_size=[9]) | x: 1 1 4 | t < 8: 1 1 4
F.max_unpool1d(x, t, 2, output_size=[1, 1, 9]) | x: 1 1 4 | t < 8: 1 1 4
F.max_unpool1d(x, t, 2, output_size=[10]) | x: 1 1 4 | t < 8: 1 1 4
F.max_unpool1d(x, t, 2, output_size=[1, 9]) | x: 1 1 4 | t < 8: 1 1 4
F.max_unpool2d(x, t, 2), F.max_unpool2d(x, t, 2, output_size=[5, 5]) | x: 1 1 2 2 | t < 16: 1 1 2 2
F.max_unpool2d(x, t, 2, 2, 2) | x: 1 1 1 1 | t < 1: 1 1 1 1
F.max_unpool3d(x, t, 2), F.max_unpool3d(x, t, (2, 2, 2), 2) | x: 1 1 2 2 2 | t < 64: 1 1 2 2 2
"""

NORMALIZATION = """
F.batch_norm(x, None, None, training=True), F.batch_norm(x, w, w, w, w) | x: 3 4 2 | p w: 4
F.batch_norm(x, w, w, training=True, eps=0.0) | x: 3 4 2 | p w: 4
F.batch_norm(x, w, w, eps=-1.0) | x: 3 4 2 | p w: 4
F.batch_norm(x, None, None, training=True) | x: 1 4
F.batch_norm(x, None, None, training=True) | x: 1 4 1 1
F.instance_norm(x), F.instance_norm(x, w, w, use_input_stats=False) | x: 3 4 2 | p w: 4
F.instance_norm(x) | x: 3 4 1
F.layer_norm(x, [4]), F.layer_norm(x, (3, 4), x[0], x[1]) | x: 2 3 4
F.rms_norm(x, [4]), F.rms_norm(x, (3, 4), x[0], 0.1) | x: 2 3 4
F.group_norm(x, 2), F.group_norm(x, 4, w, w) | x: 3 4 2 | w: 4
F.group_norm(x, 4) | x: 1 4
F.group_norm(x, 1) | x: 4
F.local_response_norm(x, 3), F.local_response_norm(x, 2, 0.1, 0.5, 2.0) | x: 2 5 4
F.local_response_norm(x, 3), F.local_response_norm(x, 4) | x: 2 5 4 3
F.local_response_norm(x, 3) | x: 2 5 2 3 2
F.local_response_norm(x, 3) | x: 2 5
F.local_response_norm(x, 3) | x: 0 5 2
F.normalize(x), F.normalize(x, 1.0, 0), F.normalize(x, out=torch.empty(0)) | x: 3 4
"""

RESIZING = """
F.interpolate(x, 5), F.interpolate(x, scale_factor=1.7), F.interpolate(x, [5]) | x: 2 3 4
F.interpolate(x, 7, mode="linear"), F.interpolate(x, 7, mode="linear", align_corners=True) | x: 2 3 4
F.interpolate(x, scale_factor=[1.5], mode="nearest-exact"), F.interpolate(x, 3, mode="area") | x: 2 3 4
F.interpolate(x, (5, 3)), F.interpolate(x, scale_factor=2.0, mode="nearest-exact") | x: 2 3 4 5
F.interpolate(x, scale_factor=(1.5, 2.0), mode="bilinear") | x: 2 3 4 5
F.interpolate(x, scale_factor=1.3, mode="bilinear", recompute_scale_factor=True) | x: 2 3 4 5
F.interpolate(x, scale_factor=0.6, mode="area"), F.interpolate(x, 3, mode="area") | x: 2 3 4 5
F.interpolate(x, 3, mode="bicubic"), F.interpolate(x, 8, mode="bicubic", align_corners=True) | x: 2 3 4 5
F.interpolate(x, 3, mode="bicubic", antialias=True) | x: 2 3 4 5
F.interpolate(x, 3, mode="bilinear", antialias=True) | x: 2 3 4 5
F.interpolate(x, 3), F.interpolate(x, 3, mode="nearest-exact") | x: 1 2 4 2 3
F.interpolate(x, [3, 2, 2], mode="trilinear"), F.interpolate(x, 2, mode="area") | x: 1 2 4 2 3
F.interpolate(x, 3, align_corners=True) | x: 2 3 4
F.interpolate(x) | x: 2 3 4
F.interpolate(x, 3, scale_factor=2.0) | x: 2 3 4
F.interpolate(x, [3, 4]) | x: 2 3 4
F.interpolate(x, scale_factor=[3.0, 4.0]) | x: 2 3 4
F.interpolate(x, 3, recompute_scale_factor=True) | x: 2 3 4
F.interpolate(x, 3, mode="linear", antialias=True) | x: 2 3 4
F.interpolate(x, 3, mode="bilinear") | x: 2 3 4
F.interpolate(x, 3, mode="trilinear") | x: 2 3 4
F.interpolate(x, 3, mode="trilinear") | x: 2 3 4 4
F.interpolate(x, 3, mode="linear") | x: 2 3 4 4
F.interpolate(x, 3, mode="linear") | x: 2 3 4 4 4
F.interpolate(x, 3, mode="bilinear") | x: 2 3 4 4 4
F.interpolate(x, 3, mode="bicubic") | x: 2 3 4
F.interpolate(x, 3, mode="cubic") | x: 2 3 4
F.interpolate(x, 3, mode="lanczos") | x: 2 3 4 4
F.interpolate(x, 3, mode="lanczos", align_corners=True) | x: 2 3 4 4
F.interpolate(x, 3) | x: 2 3
F.upsample(x, 5), F.upsample_nearest(x, 3), F.upsample_bilinear(x, [5, 7]) | x: 2 3 4 5
F.upsample_bilinear(x, scale_factor=2.0) | x: 2 3 4 5
F.grid_sample(x, g), F.grid_sample(x, g, "nearest", "border", True) | x: 2 3 4 5 | g: 2 3 3 2
F.grid_sample(x, g, "bicubic", "reflection", False) | x: 2 3 4 5 | g: 2 3 3 2
F.grid_sample(x, g, "cubic") | x: 2 3 4 5 | g: 2 3 3 2
F.grid_sample(x, g, padding_mode="wrap") | x: 2 3 4 5 | g: 2 3 3 2
F.affine_grid(x, [2, 3, 4, 5]), F.affine_grid(x, [2, 3, 4, 5], True) | x: 2 2 3
F.affine_grid(x, [2, 3, 4, 5, 6], False) | x: 2 3 4
F.affine_grid(x, [2, 3, 4, 5], False) | x: 2 3 4
F.affine_grid(x, [2, 3, 4, 5, 2], False) | x: 2 2 3
F.affine_grid(x, [2, 3, 4], False) | x: 2 2 3
F.affine_grid(x, [2, 3, 1, 5], True) | x: 2 2 3
F.affine_grid(x, [2, 3, 0, 5], False) | x: 2 2 3
F.affine_grid(x.long(), [2, 3, 4, 5], False) | x: 2 2 3
"""

HEADS = "4, 2, w, b, None, None, False, 0.0, v, None"
ATTENTION = """
F.multi_head_attention_forward(x, x, x, HEADS) | x: 3 2 4
F.multi_head_attention_forward(x, x, x, HEADS, average_attn_weights=False) | x: 3 2 4
F.multi_head_attention_forward(x, y, y, HEADS, need_weights=False)[0] | x: 3 2 4 | y: 5 2 4
F.multi_head_attention_forward(x, y, y * 2, HEADS) | x: 3 2 4 | y: 5 2 4
F.multi_head_attention_forward(x, x, x, HEADS) | x: 3 4
F.multi_head_attention_forward(x, x, x, HEADS, need_weights=False)[0] | x: 3 4
F.multi_head_attention_forward(x, x, x, HEADS, attn_mask=m) | x: 3 2 4 | m: 3 3
F.multi_head_attention_forward(x, x, x, HEADS, attn_mask=m > 1.5) | x: 3 2 4 | m: 4 3 3
F.multi_head_attention_forward(x, x, x, HEADS, key_padding_mask=p > 1.5) | x: 3 2 4 | p: 2 3
F.multi_head_attention_forward(x, x, x, HEADS, key_padding_mask=p, attn_mask=m > 2) | x: 3 2 4 | p: 2 3 | m: 3 3
F.multi_head_attention_forward(x, x, x, HEADS, key_padding_mask=p, attn_mask=m, need_weights=False)[0] | x: 3 2 4 | p: 2 3 | m: 4 3 3
F.multi_head_attention_forward(x, x, x, HEADS, attn_mask=m, is_causal=True, need_weights=False)[0] | x: 3 2 4 | m: 3 3
F.multi_head_attention_forward(x, x, x, HEADS, attn_mask=m, is_causal=True) | x: 3 2 4 | m: 3 3
F.multi_head_attention_forward(x, x, x, HEADS, is_causal=True) | x: 3 2 4
F.multi_head_attention_forward(x, x, x, HEADS, attn_mask=m) | x: 3 2 4 | m: 3 2
F.multi_head_attention_forward(x, x, x, HEADS, attn_mask=m) | x: 3 2 4 | m: 5 3 3
F.multi_head_attention_forward(x, x, x, HEADS, attn_mask=m) | x: 3 2 4 | m: 3
F.multi_head_attention_forward(x, x, x, HEADS, attn_mask=m) | x: 3 4 | m: 3 3 3
F.multi_head_attention_forward(x, x, x, HEADS, attn_mask=m) | x: 3 4 | m < 2: 3 3
F.multi_head_attention_forward(x, x, x, HEADS, key_padding_mask=p) | x: 3 2 4 | p: 3
F.multi_head_attention_forward(x, x, x, HEADS, key_padding_mask=p) | x: 3 4 | p: 2 3
F.multi_head_attention_forward(x, x, y, HEADS) | x: 3 2 4 | y: 3 4
F.multi_head_attention_forward(x, x, x, HEADS) | x: 3 2 4 1
F.multi_head_attention_forward(x, x, x, HEADS) | x: 3 2 6
F.multi_head_attention_forward(x, x, y, HEADS) | x: 3 2 4 | y: 5 2 4
F.multi_head_attention_forward(x, x, x, 4, 3, w, b, None, None, False, 0.0, v, None) | x: 3 2 4
F.multi_head_attention_forward(x, x, x, 4, 2, w, b, k, k, False, 0.0, v, b[:4], attn_mask=m, key_padding_mask=p) | x: 3 2 4 | k: 1 1 4 | m: 3 3 | p: 2 3
F.multi_head_attention_forward(x, x, x, 4, 2, w, b, k, None, False, 0.0, v, None) | x: 3 2 4 | k: 1 1 4
F.multi_head_attention_forward(x, x, x, 4, 2, w, b, None, k, False, 0.0, v, None) | x: 3 2 4 | k: 1 1 4
F.multi_head_attention_forward(x, x, x, 4, 2, w, None, None, None, True, 0.0, v, None, attn_mask=m, key_padding_mask=p) | x: 3 2 4 | m: 3 3 | p: 2 3
F.multi_head_attention_forward(x, x, x, HEADS, use_separate_proj_weight=True, q_proj_weight=v, k_proj_weight=v, v_proj_weight=v) | x: 3 2 4
F.multi_head_attention_forward(x, y, y, 4, 2, None, None, None, None, False, 0.0, v, None, use_separate_proj_weight=True, q_proj_weight=v, k_proj_weight=k, v_proj_weight=k) | x: 3 2 4 | y: 5 2 3 | k: 4 3
F.multi_head_attention_forward(x, x, x, HEADS, use_separate_proj_weight=True, q_proj_weight=v) | x: 3 2 4
F.multi_head_attention_forward(x, x, x, HEADS, use_separate_proj_weight=True, q_proj_weight=v, k_proj_weight=k, v_proj_weight=v) | x: 3 2 4 | k: 3 3
F.multi_head_attention_forward(x, x, x, 4, 2, None, b, None, None, False, 0.0, v, None) | x: 3 2 4
F.multi_head_attention_forward(x, x, x, HEADS, static_k=s, static_v=s) | x: 3 2 4 | s: 4 5 2
F.multi_head_attention_forward(x, x, x, HEADS, static_k=s) | x: 3 2 4 | s: 3 5 2
F.multi_head_attention_forward(x, x, x, HEADS, static_v=s) | x: 3 2 4 | s: 4 5 3
F.multi_head_attention_forward(x, x, x, 4, 2, w, b, k, k, False, 0.0, v, None, static_k=k) | x: 3 2 4 | k: 1 1 4
"""

OF_TORCH = """
torch.stft(x, 4, window=torch.ones(4), return_complex=True).abs() | x: 16
torch.stft(x, 4, 2, 4, torch.ones(4), False, return_complex=True).abs() | x: 2 16
torch.stft(x, 4, window=torch.ones(4), align_to_window=True, return_complex=True).abs() | x: 16
torch.cdist(x, y), torch.cdist(x, y, 1.0) | x: 3 4 | y: 2 4
torch.cdist(x, y, compute_mode="use_mm_for_euclid_dist") | x: 3 4 | y: 2 4
torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist") | x: 3 4 | y: 2 4
torch.cdist(x, y, compute_mode="by_hand") | x: 3 4 | y: 2 4
torch.unique(t), torch.unique(t, return_counts=True), torch.unique(t, dim=0) | t < 4: 3 4
torch.unique(t, return_inverse=True), torch.unique(t, True, True, True) | t < 4: 3 4
torch.unique_consecutive(t), torch.unique_consecutive(t, dim=1) | t < 4: 3 4
torch.unique_consecutive(t, return_counts=True) | t < 4: 3 4
torch.unique_consecutive(t, return_inverse=True) | t < 4: 3 4
torch.norm(x), torch.norm(x, 1), torch.norm(x, 2.0, 1), torch.norm(x, 3, [0, 1], True) | x: 3 4
torch.norm(x, "fro", [0, 1]), torch.norm(x, "nuc"), torch.norm(x, "nuc", [0, 1]) | x: 3 4
torch.norm(x, dim=1), torch.norm(x, p=2, dim=0, dtype=torch.float64) | x: 3 4
torch.norm(x, 2, 1, out=torch.empty(0)), torch.norm(x, None) | x: 3 4
torch.norm(x, out=torch.empty(0)) | x: 3 4
torch.norm(x, "max") | x: 3 4
torch.tensordot(x, y), torch.tensordot(x, y, 1) | x: 2 3 3 | y: 3 3 2
torch.tensordot(x, y, ([1], [0])), torch.tensordot(x, y, [[1, 2], [0, 1]]) | x: 2 3 3 | y: 3 3 2
torch.tensordot(x, y, torch.tensor(1)), torch.tensordot(x, y, 1, out=torch.empty(0)) | x: 2 3 3 | y: 3 3 2
torch.tensordot(x, y, torch.tensor([[1, 2], [0, 1]])) | x: 2 3 3 | y: 3 3 2
torch.tensordot(x, y, -1) | x: 2 3 3 | y: 3 3 2
torch.tensordot(x, y, 4) | x: 2 3 3 | y: 3 3 2
torch.tensordot(x, y, torch.tensor(-1)) | x: 2 3 3 | y: 3 3 2
torch.tensordot(x, y, torch.tensor([[1], [0], [1]])) | x: 2 3 3 | y: 3 3 2
torch.lu(x), torch.lu(x, get_infos=True) | x: 3 3
torch.lu(x, out=(torch.empty(0), torch.empty(0, dtype=torch.int32))) | x: 3 3
"""

FIXED = {"w": "12 4", "b": "12", "v": "4 4"}
"""Inputs of attention that are the same everywhere: the weights in HEADS."""


def rows() -> list[tuple[str, dict[str, str]]]:
    """The calls, and their inputs by name."""
    found = []
    groups = (ACTIVATIONS, DROPOUT, LOSSES, EMBEDDING, POOLING, NORMALIZATION, RESIZING, OF_TORCH)
    for text in groups:
        found += [_row(line, {}) for line in text.strip().splitlines()]
    lines = ATTENTION.replace("HEADS", HEADS).strip().splitlines()
    return found + [_row(line, FIXED) for line in lines]


def _row(line: str, fixed: dict[str, str]) -> tuple[str, dict[str, str]]:
    call, *inputs = (part.strip() for part in line.split(" | "))
    named = dict(text.split(":") for text in (part + " " for part in inputs))
    return call, {**{k.strip(): v.strip() for k, v in named.items()}, **fixed}
