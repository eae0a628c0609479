"""Which module holds which name. Written by `python -m flambeau._ops.write_index`."""

NAMES = {
    "activations": """
_celu _gelu _gelu_slope _gelu_tanh _gelu_tanh_slope _log_sigmoid_slope _mish_slope _prelu_kernel
_relu_grad _rrelu_even _silu_slope _softplus_slope _threshold_grad celu elu hardshrink hardsigmoid
hardswish hardtanh leaky_relu mish nn.functional.glu nn.functional.logsigmoid
nn.functional.softplus nn.functional.softsign nn.functional.tanhshrink prelu relu rrelu
rrelu_with_noise selu silu softshrink threshold
""",
    "advanced": "_index_backward index index_put",
    "arithmetic": """
_div_floor _div_trunc _over_number _rsub _times_number add div divide floor_divide fmod mul
multiply neg negative positive reciprocal remainder rsub square sub subtract true_divide
""",
    "attention": """
_attention _attention_backward nn.functional.scaled_dot_product_attention
""",
    "attention_heads": "nn.functional.multi_head_attention_forward",
    "bounds": """
_beside _clamp_both _clamp_both_tensors _clamp_high _clamp_high_tensor _clamp_low
_clamp_low_tensor _heaviside _stepped _where addcdiv addcmul clamp clamp_max clamp_min clip fmax
fmin heaviside lerp maximum minimum where
""",
    "comparison": """
bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor eq gcd ge
greater greater_equal gt lcm le less less_equal logical_and logical_not logical_or logical_xor lt
ne not_equal
""",
    "compiled": "",
    "complex": """
_complex _conj _conj_physical _imag _polar _real angle complex conj conj_physical imag polar real
resolve_conj resolve_neg view_as_complex view_as_real
""",
    "constructors": "as_tensor asarray frombuffer new_tensor scalar_tensor",
    "conv": """
_conv_bias_grad _conv_input_grad _conv_weight_grad conv1d conv2d conv3d conv_tbc conv_transpose1d
conv_transpose2d conv_transpose3d convolution nn.functional.conv1d nn.functional.conv2d
nn.functional.conv3d nn.functional.conv_tbc nn.functional.conv_transpose1d
nn.functional.conv_transpose2d nn.functional.conv_transpose3d
""",
    "copying": "_copied _to_copy clone copy fill zero",
    "counting": "bincount histc histogram histogramdd unique unique_consecutive",
    "ctc": "_ctc_loss _ctc_loss_backward ctc_loss nn.functional.ctc_loss",
    "distance": """
_cdist_forward _pdist_forward cdist cosine_embedding_loss cosine_similarity margin_ranking_loss
nn.functional.cosine_embedding_loss nn.functional.margin_ranking_loss
nn.functional.triplet_margin_loss nn.functional.triplet_margin_with_distance_loss
pairwise_distance pdist triplet_margin_loss
""",
    "dropout": """
alpha_dropout alpha_dropout_ dropout dropout_ feature_alpha_dropout feature_alpha_dropout_
feature_dropout feature_dropout_ native_dropout native_dropout_backward
nn.functional.alpha_dropout nn.functional.dropout nn.functional.dropout1d nn.functional.dropout2d
nn.functional.dropout3d nn.functional.feature_alpha_dropout
""",
    "einsum": "einsum",
    "embedding": """
_embedding_bag embedding embedding_bag embedding_dense_backward embedding_renorm_
nn.functional.embedding nn.functional.embedding_bag
""",
    "extrema": "amax amin aminmax argmax argmin max min",
    "factories": """
empty empty_like empty_permuted empty_strided full full_like new_empty new_empty_strided new_full
new_ones new_zeros ones ones_like zeros zeros_like
""",
    "fast_attention": "_native_multi_head_attention",
    "fft": """
_fft_c2c _fft_c2r _fft_r2c _resize_ends fft.fft fft.fft2 fft.fftfreq fft.fftn fft.fftshift
fft.hfft fft.hfft2 fft.hfftn fft.ifft fft.ifft2 fft.ifftn fft.ifftshift fft.ihfft fft.ihfft2
fft.ihfftn fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftfreq fft.rfftn
""",
    "formulas": "",
    "functional_activations": """
celu_ nn.functional.celu nn.functional.celu_ nn.functional.elu nn.functional.elu_
nn.functional.gelu nn.functional.hardshrink nn.functional.hardsigmoid nn.functional.hardswish
nn.functional.hardtanh nn.functional.hardtanh_ nn.functional.leaky_relu nn.functional.leaky_relu_
nn.functional.mish nn.functional.prelu nn.functional.relu nn.functional.relu6 nn.functional.relu_
nn.functional.rrelu nn.functional.rrelu_ nn.functional.selu nn.functional.selu_
nn.functional.sigmoid nn.functional.silu nn.functional.softshrink nn.functional.tanh
nn.functional.threshold nn.functional.threshold_ rrelu_ selu_ threshold_
""",
    "gather": """
_nonzero argwhere gather index_select masked_select nonzero nonzero_static take take_along_dim
tril_indices triu_indices unravel_index
""",
    "grid": """
_affine_grid_backward affine_grid_generator grid_sampler grid_sampler_2d grid_sampler_2d_backward
grid_sampler_3d grid_sampler_3d_backward nn.functional.affine_grid nn.functional.grid_sample
""",
    "grid_curves": "",
    "grids": """
_block_diag atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors
cartesian_prod combinations meshgrid
""",
    "grouped": "nn.functional.grouped_mm",
    "hashing": "hash_tensor",
    "index_writes": """
index_add index_copy index_fill index_reduce masked_fill masked_scatter put
""",
    "indexing": "",
    "interpolate": """
_upsample_bicubic2d_aa _upsample_bicubic2d_aa_backward _upsample_bilinear2d_aa
_upsample_bilinear2d_aa_backward _upsample_nearest_exact1d _upsample_nearest_exact1d_backward
_upsample_nearest_exact2d _upsample_nearest_exact2d_backward _upsample_nearest_exact3d
_upsample_nearest_exact3d_backward col2im im2col nn.functional.fold nn.functional.interpolate
nn.functional.unfold nn.functional.upsample nn.functional.upsample_bilinear
nn.functional.upsample_nearest upsample_bicubic2d upsample_bicubic2d_backward upsample_bilinear2d
upsample_bilinear2d_backward upsample_linear1d upsample_linear1d_backward upsample_nearest1d
upsample_nearest1d_backward upsample_nearest2d upsample_nearest2d_backward upsample_nearest3d
upsample_nearest3d_backward upsample_trilinear3d upsample_trilinear3d_backward
""",
    "joining": """
_unsafe_view cat column_stack concat concatenate dstack hstack reshape row_stack stack vstack
""",
    "kernels": "",
    "linalg": """
cholesky cholesky_inverse cholesky_solve det inverse linalg.cholesky linalg.cholesky_ex linalg.det
linalg.inv linalg.inv_ex linalg.slogdet linalg.solve linalg.solve_ex linalg.solve_triangular
linalg.tensorinv linalg.tensorsolve logdet slogdet triangular_solve
""",
    "linalg_factor": """
_lu_with_info geqrf linalg.householder_product linalg.ldl_factor linalg.ldl_factor_ex
linalg.ldl_solve linalg.lu linalg.lu_factor linalg.lu_factor_ex linalg.lu_solve linalg.qr lu
lu_solve lu_unpack orgqr ormqr qr
""",
    "linalg_spectral": """
_linalg_lstsq _linalg_matrix_rank _linalg_pinv _pinv_factors linalg.cond linalg.eig linalg.eigh
linalg.eigvals linalg.eigvalsh linalg.lstsq linalg.matrix_rank linalg.pinv linalg.svd
linalg.svdvals linalg.vander pca_lowrank pinverse svd svd_lowrank vander
""",
    "linear": """
_linear _linear_nd _linear_nd_no_bias _linear_no_bias bilinear linear_backward
nn.functional.linear
""",
    "linear_nodes": "",
    "loss": """
huber_loss huber_loss_backward l1_loss mse_loss mse_loss_backward nn.functional.huber_loss
nn.functional.l1_loss nn.functional.mse_loss nn.functional.smooth_l1_loss smooth_l1_loss
smooth_l1_loss_backward
""",
    "loss_binary": """
_binary_cross_entropy_slope _binary_cross_entropy_with_logits_backward binary_cross_entropy
binary_cross_entropy_backward binary_cross_entropy_with_logits hinge_embedding_loss kl_div
nn.functional.binary_cross_entropy nn.functional.binary_cross_entropy_with_logits
nn.functional.gaussian_nll_loss nn.functional.hinge_embedding_loss nn.functional.kl_div
nn.functional.poisson_nll_loss nn.functional.soft_margin_loss poisson_nll_loss soft_margin_loss
""",
    "loss_classes": """
_cross_entropy _cross_entropy2d _cross_entropy_backward nll_loss nll_loss2d nll_loss_backward
nn.functional.cross_entropy nn.functional.nll_loss
""",
    "loss_margin": """
multi_margin_loss multilabel_margin_loss nn.functional.linear_cross_entropy
nn.functional.multi_margin_loss nn.functional.multilabel_margin_loss
nn.functional.multilabel_soft_margin_loss
""",
    "masked": """
masked.amax masked.amin masked.argmax masked.argmin masked.cumprod masked.cumsum
masked.log_softmax masked.logaddexp masked.logsumexp masked.mean masked.median masked.norm
masked.normalize masked.prod masked.softmax masked.softmin masked.std masked.sum masked.var
""",
    "matmul": """
_adjoint_times _matmul _matmul_as_mv _matmul_dot _matmul_mv _times_adjoint _times_row
_transposed_mv _vector_times bmm dot linalg.matmul matmul mm mv vdot
""",
    "matmul_sums": "_addmm_activation addbmm addmm addmv addr baddbmm",
    "norm": """
_batch_norm_backward batch_norm instance_norm native_batch_norm native_batch_norm_backward
nn.functional.batch_norm nn.functional.instance_norm
""",
    "norm_rms": "_rms_norm _rms_norm_backward rms_norm",
    "norm_rows": """
group_norm layer_norm native_group_norm native_group_norm_backward native_layer_norm
native_layer_norm_backward nn.functional.group_norm nn.functional.local_response_norm
nn.functional.normalize
""",
    "norms": """
_norm dist frobenius_norm linalg.matrix_norm linalg.norm linalg.vector_norm norm nuclear_norm
""",
    "overrides": "",
    "padding": """
_pad_circular constant_pad_nd nn.functional.pad reflection_pad1d reflection_pad1d_backward
reflection_pad2d reflection_pad2d_backward reflection_pad3d reflection_pad3d_backward
replication_pad1d replication_pad1d_backward replication_pad2d replication_pad2d_backward
replication_pad3d replication_pad3d_backward
""",
    "pool": """
_avg_pool2d_backward _avg_pool3d_backward _gather_planes _max_pool2d_backward _max_pool2d_pick
_max_pool3d_backward _max_pool3d_pick _scatter_planes avg_pool1d avg_pool2d avg_pool3d max_pool1d
max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices
nn.functional.avg_pool1d nn.functional.avg_pool2d nn.functional.avg_pool3d nn.functional.lp_pool1d
nn.functional.lp_pool2d nn.functional.lp_pool3d nn.functional.max_pool1d
nn.functional.max_pool1d_with_indices nn.functional.max_pool2d
nn.functional.max_pool2d_with_indices nn.functional.max_pool3d
nn.functional.max_pool3d_with_indices
""",
    "pool_adaptive": """
_adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d
_adaptive_avg_pool3d_backward adaptive_avg_pool1d adaptive_max_pool1d adaptive_max_pool2d
adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d max_unpool2d max_unpool3d
nn.functional.adaptive_avg_pool1d nn.functional.adaptive_avg_pool2d
nn.functional.adaptive_avg_pool3d nn.functional.adaptive_max_pool1d
nn.functional.adaptive_max_pool1d_with_indices nn.functional.adaptive_max_pool2d
nn.functional.adaptive_max_pool2d_with_indices nn.functional.adaptive_max_pool3d
nn.functional.adaptive_max_pool3d_with_indices nn.functional.fractional_max_pool2d
nn.functional.fractional_max_pool2d_with_indices nn.functional.fractional_max_pool3d
nn.functional.fractional_max_pool3d_with_indices nn.functional.max_unpool1d
nn.functional.max_unpool2d nn.functional.max_unpool3d
""",
    "positions": "",
    "products": """
_matmul_outer chain_matmul cross ger inner kron linalg.cross linalg.matrix_exp linalg.matrix_power
linalg.multi_dot linalg.vecdot matrix_exp matrix_power outer tensordot
""",
    "queries": """
allclose can_cast detach detach_ equal get_device is_complex is_conj is_distributed
is_floating_point is_inference is_neg is_nonzero is_same_size is_signed is_storage is_tensor
isclose numel result_type typename
""",
    "random": """
bernoulli multinomial normal poisson rand rand_like randint randint_like randn randn_like randperm
""",
    "ranges": "arange eye linspace logspace range",
    "rearrange": """
_diagonal_copied channel_shuffle diag diag_embed diagflat flip fliplr flipud nn.functional.one_hot
pixel_shuffle pixel_unshuffle repeat repeat_interleave roll rot90 tile tril triu
""",
    "recurrent": """
_gru_layer _gru_layer_backward _lstm_layer _lstm_layer_backward _lstm_steps _rnn_layer
_rnn_layer_backward
""",
    "recurrent_cells": "gru_cell lstm_cell rnn_relu_cell rnn_tanh_cell",
    "reduce_grads": "",
    "reductions": """
all any count_nonzero logsumexp mean nanmean nansum prod sum sum_to_size trace
""",
    "renorm": "renorm",
    "rounding": """
abs absolute ceil copysign fix floor frac frexp isfinite isinf isnan isneginf isposinf isreal
nan_to_num nextafter round sgn sign signbit special.round trunc
""",
    "scan": """
cummax cummin cumprod cumsum cumulative_trapezoid diff gradient logcumsumexp trapezoid trapz
""",
    "scatter": "scatter scatter_add scatter_reduce",
    "scatter_views": """
as_strided_scatter diagonal_backward diagonal_scatter select_backward select_scatter
slice_backward slice_scatter unfold_backward
""",
    "softmax": """
_log_softmax_backward_data _safe_softmax _softmax_backward_data log_softmax
nn.functional.gumbel_softmax nn.functional.log_softmax nn.functional.softmax nn.functional.softmin
softmax special.log_softmax special.softmax
""",
    "sort": "argsort bucketize isin msort searchsorted sort topk",
    "sparse": "_as_entries sparse_coo_tensor",
    "special": """
_polygamma digamma erf erfc erfinv i0 igamma igammac lgamma mvlgamma polygamma special.airy_ai
special.bessel_j0 special.bessel_j1 special.bessel_y0 special.bessel_y1
special.chebyshev_polynomial_t special.chebyshev_polynomial_u special.chebyshev_polynomial_v
special.chebyshev_polynomial_w special.digamma special.entr special.erf special.erfc special.erfcx
special.erfinv special.exp2 special.expit special.expm1 special.gammainc special.gammaincc
special.gammaln special.hermite_polynomial_h special.hermite_polynomial_he special.i0 special.i0e
special.i1 special.i1e special.laguerre_polynomial_l special.legendre_polynomial_p special.log1p
special.log_ndtr special.logit special.modified_bessel_i0 special.modified_bessel_i1
special.modified_bessel_k0 special.modified_bessel_k1 special.multigammaln special.ndtr
special.ndtri special.polygamma special.psi special.scaled_modified_bessel_k0
special.scaled_modified_bessel_k1 special.shifted_chebyshev_polynomial_t
special.shifted_chebyshev_polynomial_u special.shifted_chebyshev_polynomial_v
special.shifted_chebyshev_polynomial_w special.sinc special.spherical_bessel_j0 special.xlogy
special.zeta
""",
    "spectrogram": "istft stft",
    "splitting": """
_split_size _unsafe_split _unsafe_split_with_sizes chunk dsplit hsplit split split_with_sizes
tensor_split unbind unsafe_chunk unsafe_split unsafe_split_with_sizes vsplit
""",
    "statistics": "corrcoef cov kthvalue median mode nanmedian nanquantile quantile",
    "storage_views": "_as_strided as_strided resize_as_",
    "tensor_methods": "type_as",
    "transcendental": """
_logit _logit_eps _sigmoid_slope exp exp2 expm1 float_power ldexp log log10 log1p log2 logaddexp
logaddexp2 logit pow rsqrt sigmoid special.xlog1py sqrt xlogy
""",
    "trigonometry": """
_tanh_slope acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2
atanh cos cosh deg2rad hypot rad2deg sin sinc sinh tan tanh
""",
    "typed": "",
    "variance": "_std _std_mean _var _var_mean std std_mean var var_mean",
    "view_methods": """
adjoint alias_copy as_strided_copy diagonal_copy expand_as expand_copy flatten linalg.diagonal
moveaxis movedim narrow narrow_copy permute_copy ravel reshape_as select_copy slice_copy
split_copy split_with_sizes_copy squeeze_copy t_copy transpose_copy unbind_copy unflatten
unfold_copy unsqueeze_copy view_as view_as_complex_copy view_as_real_copy view_copy
""",
    "views": """
_view_dtype _view_other alias broadcast_to diagonal expand permute select slice squeeze swapaxes
swapdims t transpose unfold unsqueeze view
""",
    "weight_norm": "_weight_norm norm_except_dim",
    "windows": """
bartlett_window blackman_window hamming_window hann_window kaiser_window
""",
}

ATTRIBUTES = {
    "activations": "hardshrink prelu relu relu_",
    "advanced": "index_put index_put_",
    "arithmetic": """
_div_floor _div_floor_ _div_trunc _div_trunc_ add add_ div div_ divide divide_ floor_divide
floor_divide_ fmod fmod_ mul mul_ multiply multiply_ neg neg_ negative negative_ positive
reciprocal reciprocal_ remainder remainder_ square square_ sub sub_ subtract subtract_ true_divide
true_divide_
""",
    "bounds": """
addcdiv addcdiv_ addcmul addcmul_ clamp clamp_ clamp_max clamp_max_ clamp_min clamp_min_ clip
clip_ fmax fmin heaviside heaviside_ lerp lerp_ maximum minimum where
""",
    "comparison": """
bitwise_and bitwise_and_ bitwise_left_shift bitwise_left_shift_ bitwise_not bitwise_not_
bitwise_or bitwise_or_ bitwise_right_shift bitwise_right_shift_ bitwise_xor bitwise_xor_ eq eq_
gcd gcd_ ge ge_ greater greater_ greater_equal greater_equal_ gt gt_ lcm lcm_ le le_ less less_
less_equal less_equal_ logical_and logical_and_ logical_not logical_not_ logical_or logical_or_
logical_xor logical_xor_ lt lt_ ne ne_ not_equal not_equal_
""",
    "complex": """
_conj_physical _conj_physical_ angle conj conj_physical conj_physical_ imag real resolve_conj
resolve_neg
""",
    "constructors": "new_tensor",
    "copying": """
bfloat16 bool byte cdouble cfloat char clone contiguous copy copy_ cpu cuda detach detach_ double
fill fill_ float half int is_contiguous long short to zero zero_
""",
    "counting": "bincount histc histogram unique unique_consecutive",
    "extrema": "amax amin aminmax argmax argmin max min",
    "factories": "new_empty new_empty_strided new_full new_ones new_zeros",
    "fft": "_resize_ends",
    "gather": """
argwhere gather index_select masked_select nonzero nonzero_static take take_along_dim
""",
    "hashing": "hash_tensor",
    "index_writes": """
index_add index_add_ index_copy index_copy_ index_fill index_fill_ index_reduce index_reduce_
masked_fill masked_fill_ masked_scatter masked_scatter_ put put_
""",
    "indexing": "__getitem__ __setitem__",
    "joining": "reshape",
    "linalg": """
cholesky cholesky_inverse cholesky_solve det inverse logdet slogdet triangular_solve
""",
    "linalg_factor": "geqrf lu lu_solve orgqr ormqr qr",
    "linalg_spectral": "pinverse svd",
    "matmul": "bmm dot matmul mm mv vdot",
    "matmul_sums": """
_addmm_activation addbmm addbmm_ addmm addmm_ addmv addmv_ addr addr_ baddbmm baddbmm_
""",
    "norms": "dist norm",
    "pool": "_gather_planes _max_pool2d_pick _max_pool3d_pick _scatter_planes",
    "products": "cross ger inner kron matrix_exp matrix_power outer",
    "queries": "allclose equal is_nonzero isclose",
    "random": """
bernoulli bernoulli_ cauchy_ exponential_ geometric_ log_normal_ multinomial normal_ random_
uniform_
""",
    "rearrange": """
diag diag_embed diagflat flip fliplr flipud repeat repeat_interleave roll rot90 tile tril tril_
triu triu_
""",
    "reductions": """
all any count_nonzero logsumexp mean nanmean nansum prod sum sum_to_size trace
""",
    "renorm": "renorm renorm_",
    "rounding": """
abs abs_ absolute absolute_ ceil ceil_ copysign copysign_ fix fix_ floor floor_ frac frac_ frexp
isfinite isinf isnan isneginf isposinf isreal nan_to_num nan_to_num_ nextafter nextafter_ round
round_ sgn sgn_ sign sign_ signbit trunc trunc_
""",
    "scan": "cummax cummin cumprod cumprod_ cumsum cumsum_ diff logcumsumexp",
    "scatter": """
scatter scatter_ scatter_add scatter_add_ scatter_reduce scatter_reduce_
""",
    "scatter_views": "as_strided_scatter diagonal_scatter select_scatter slice_scatter",
    "softmax": "log_softmax softmax",
    "sort": "argsort msort sort topk",
    "sparse": """
_dimI _dimV _indices _nnz _values sparse_mask sparse_resize_ to_sparse to_sparse_coo
""",
    "special": """
digamma digamma_ erf erf_ erfc erfc_ erfinv erfinv_ i0 i0_ igamma igamma_ igammac igammac_ lgamma
lgamma_ mvlgamma mvlgamma_ polygamma polygamma_
""",
    "spectrogram": "istft stft",
    "splitting": """
chunk dsplit hsplit split split_with_sizes tensor_split unbind unsafe_chunk unsafe_split
unsafe_split_with_sizes vsplit
""",
    "statistics": "corrcoef cov kthvalue median mode nanmedian nanquantile quantile",
    "storage_views": """
as_strided as_strided_ fill_diagonal_ resize_ resize_as_ set_ squeeze_ swapaxes_ swapdims_ t_
transpose_ unsqueeze_
""",
    "tensor_methods": """
apply_ as_subclass ccol_indices coalesce col_indices const_data_ptr crow_indices dense_dim
dim_order indices ipu is_coalesced is_distributed map2_ map_ module_load pin_memory row_indices
sparse_dim to_dense type_as values volatile xpu
""",
    "transcendental": """
exp exp2 exp2_ exp_ expm1 expm1_ float_power float_power_ ldexp ldexp_ log log10 log10_ log1p
log1p_ log2 log2_ log_ logaddexp logaddexp2 logit logit_ pow pow_ rsqrt rsqrt_ sigmoid sigmoid_
sqrt sqrt_ xlogy xlogy_
""",
    "trigonometry": """
acos acos_ acosh acosh_ arccos arccos_ arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan
arctan2 arctan2_ arctan_ arctanh arctanh_ asin asin_ asinh asinh_ atan atan2 atan2_ atan_ atanh
atanh_ cos cos_ cosh cosh_ deg2rad deg2rad_ hypot hypot_ rad2deg rad2deg_ sin sin_ sinc sinc_ sinh
sinh_ tan tan_ tanh tanh_
""",
    "typed": "new",
    "variance": "std var",
    "view_methods": """
H T adjoint expand_as flatten mH mT moveaxis movedim narrow narrow_copy ravel reshape_as unflatten
view_as
""",
    "views": """
broadcast_to diagonal expand permute select squeeze swapaxes swapdims t transpose unfold unsqueeze
view
""",
}

PROVIDES = {
    "coo.entries": "own_sparse sparse_grad",
    "copying": "set_data",
    "typed": "Tensor",
}

SETTABLE = "imag real"

MISSING = """
chalf dequantize eig grad_dtype index int_repr lstsq mtia q_per_channel_axis q_per_channel_scales
q_per_channel_zero_points q_scale q_zero_point qscheme record_stream reinforce resize resize_as
resize_as_sparse_ share_memory_ slice_inverse smm solve sparse_resize_and_clear_ sspaddmm symeig
to_mkldnn to_padded_tensor to_sparse_bsc to_sparse_bsr to_sparse_csc to_sparse_csr
"""
