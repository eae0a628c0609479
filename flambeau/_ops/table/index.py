"""Which module holds which name. Written by `python -m flambeau._ops.table.write_index`."""

NAMES = {
    "__init__": "",
    "activations.functional": """
celu_ nn.functional.celu nn.functional.celu_ nn.functional.elu nn.functional.elu_
nn.functional.gelu nn.functional.glu nn.functional.hardshrink nn.functional.hardsigmoid
nn.functional.hardswish nn.functional.hardtanh nn.functional.hardtanh_ nn.functional.leaky_relu
nn.functional.leaky_relu_ nn.functional.mish nn.functional.prelu nn.functional.relu
nn.functional.relu6 nn.functional.relu_ nn.functional.rrelu nn.functional.rrelu_
nn.functional.selu nn.functional.selu_ nn.functional.sigmoid nn.functional.silu
nn.functional.softshrink nn.functional.tanh nn.functional.threshold nn.functional.threshold_ relu6
relu6_ rrelu_ selu_ threshold_
""",
    "activations.pointwise": """
_celu _prelu_kernel _relu_grad _rrelu_even _threshold_grad celu elu glu hardshrink hardsigmoid
hardswish hardtanh leaky_relu prelu relu rrelu rrelu_with_noise selu softshrink threshold
threshold_backward
""",
    "activations.smooth": """
_gelu _gelu_grad _gelu_tanh _gelu_tanh_slope _log_sigmoid_slope _mish_slope _silu_slope
_softplus_slope mish nn.functional.logsigmoid nn.functional.softplus nn.functional.softsign
nn.functional.tanhshrink silu
""",
    "activations.softmax": """
_log_softmax_backward_data _safe_softmax _softmax_backward_data log_softmax logsumexp
nn.functional.gumbel_softmax nn.functional.log_softmax nn.functional.softmax nn.functional.softmin
softmax special.log_softmax special.logsumexp special.softmax
""",
    "arranging.grids": """
_block_diag atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors
cartesian_prod combinations meshgrid
""",
    "arranging.joining": """
_unsafe_view cat column_stack concat concatenate dstack hstack reshape row_stack stack vstack
""",
    "arranging.padding": """
_pad_circular constant_pad_nd nn.functional.pad pad reflection_pad1d reflection_pad1d_backward
reflection_pad2d reflection_pad2d_backward reflection_pad3d reflection_pad3d_backward
replication_pad1d replication_pad1d_backward replication_pad2d replication_pad2d_backward
replication_pad3d replication_pad3d_backward
""",
    "arranging.rearrange": """
_diagonal_copied _repeat_interleave channel_shuffle diag diag_embed diagflat flip fliplr flipud
native_channel_shuffle nn.functional.native_channel_shuffle nn.functional.one_hot pixel_shuffle
pixel_unshuffle repeat repeat_interleave roll rot90 tile tril triu
""",
    "attention.dot_product": """
_attention _attention_backward _attention_open_weights _attention_slope _attention_weights
nn.functional.scaled_dot_product_attention
""",
    "attention.fast": "_native_multi_head_attention _transformer_encoder_layer_fwd",
    "attention.heads": "nn.functional.multi_head_attention_forward",
    "conv.convolution": """
_conv_bias_grad _conv_input_grad _conv_weight_grad conv1d conv2d conv3d conv_tbc conv_transpose1d
conv_transpose2d conv_transpose3d convolution convolution_backward nn.functional.conv1d
nn.functional.conv2d nn.functional.conv3d nn.functional.conv_tbc nn.functional.conv_transpose1d
nn.functional.conv_transpose2d nn.functional.conv_transpose3d
""",
    "copying.copies": "_copied _to_copy clone copy fill zero",
    "copying.queries": """
_is_all_true _local_scalar_dense _pin_memory allclose can_cast detach detach_ equal get_device
is_complex is_conj is_distributed is_floating_point is_inference is_neg is_nonzero is_same_size
is_signed is_storage is_tensor isclose numel result_type typename
""",
    "copying.tensor_methods": "type_as",
    "cuda.dispatch": "",
    "cuda.generators": "",
    "cuda.gradients": "",
    "cuda.quick": "",
    "cuda.softmaxes": "",
    "cuda.table": "",
    "cuda.transfer": "",
    "elementwise.arithmetic": """
_div_floor _div_trunc _minus_number _over_number _plus_number _rsub _times_number add div divide
floor_divide fmod mul multiply neg negative positive reciprocal remainder rsub square sub subtract
true_divide
""",
    "elementwise.bounds": """
_beside _clamp_both _clamp_both_tensors _clamp_high _clamp_high_tensor _clamp_low
_clamp_low_tensor _heaviside _stepped clamp clamp_max clamp_min clip fmax fmin heaviside maximum
minimum
""",
    "elementwise.comparison": """
bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor eq gcd ge
greater greater_equal gt lcm le less less_equal logical_and logical_not logical_or logical_xor lt
ne not_equal
""",
    "elementwise.complex": """
_complex _conj _conj_physical _imag _neg_view _polar _real _view_as_real angle complex conj
conj_physical imag polar real resolve_conj resolve_neg view_as_complex view_as_real
""",
    "elementwise.mixtures": "addcdiv addcmul lerp",
    "elementwise.rounding": """
abs absolute ceil copysign fix floor frac frexp isfinite isinf isnan isneginf isposinf isreal
nan_to_num nextafter round sgn sign signbit special.round trunc
""",
    "elementwise.transcendental": """
_logit _logit_eps _sigmoid_slope exp exp2 expm1 float_power ldexp log log10 log1p log2 logaddexp
logaddexp2 logit pow rsqrt sigmoid special.xlog1py sqrt xlogy
""",
    "elementwise.trigonometry": """
_tanh_slope acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2
atanh cos cosh deg2rad hypot rad2deg sin sinc sinh tan tanh
""",
    "elementwise.where": "_where where",
    "factories.constructors": "as_tensor asarray frombuffer new_tensor scalar_tensor",
    "factories.filled": "empty full ones zeros",
    "factories.like": """
empty_like full_like new_empty new_full new_ones new_zeros ones_like zeros_like
""",
    "factories.mapped_files": "from_file",
    "factories.ranges": "arange eye linspace logspace range",
    "factories.strided": "empty_permuted empty_strided new_empty_strided",
    "factories.typed": "",
    "fft.spectrogram": "istft stft",
    "fft.transforms": """
_fft_c2c _fft_c2r _fft_r2c _resize_ends fft.fft fft.fft2 fft.fftfreq fft.fftn fft.fftshift
fft.hfft fft.hfft2 fft.hfftn fft.ifft fft.ifft2 fft.ifftn fft.ifftshift fft.ihfft fft.ihfft2
fft.ihfftn fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftfreq fft.rfftn
""",
    "fft.windows": """
bartlett_window blackman_window hamming_window hann_window kaiser_window
""",
    "foreach.rows": """
_foreach_abs _foreach_abs_ _foreach_acos _foreach_acos_ _foreach_add _foreach_add_
_foreach_addcdiv _foreach_addcdiv_ _foreach_addcmul _foreach_addcmul_ _foreach_asin _foreach_asin_
_foreach_atan _foreach_atan_ _foreach_ceil _foreach_ceil_ _foreach_clamp_max _foreach_clamp_max_
_foreach_clamp_min _foreach_clamp_min_ _foreach_clone _foreach_copy_ _foreach_cos _foreach_cos_
_foreach_cosh _foreach_cosh_ _foreach_div _foreach_div_ _foreach_erf _foreach_erf_ _foreach_erfc
_foreach_erfc_ _foreach_exp _foreach_exp_ _foreach_expm1 _foreach_expm1_ _foreach_floor
_foreach_floor_ _foreach_frac _foreach_frac_ _foreach_lerp _foreach_lerp_ _foreach_lgamma
_foreach_lgamma_ _foreach_log _foreach_log10 _foreach_log10_ _foreach_log1p _foreach_log1p_
_foreach_log2 _foreach_log2_ _foreach_log_ _foreach_max _foreach_maximum _foreach_maximum_
_foreach_minimum _foreach_minimum_ _foreach_mm _foreach_mul _foreach_mul_ _foreach_neg
_foreach_neg_ _foreach_norm _foreach_pow _foreach_pow_ _foreach_powsum _foreach_reciprocal
_foreach_reciprocal_ _foreach_round _foreach_round_ _foreach_rsqrt _foreach_rsqrt_
_foreach_sigmoid _foreach_sigmoid_ _foreach_sign _foreach_sign_ _foreach_sin _foreach_sin_
_foreach_sinh _foreach_sinh_ _foreach_sqrt _foreach_sqrt_ _foreach_sub _foreach_sub_ _foreach_tan
_foreach_tan_ _foreach_tanh _foreach_tanh_ _foreach_trunc _foreach_trunc_ _foreach_zero_
""",
    "images.grid": """
_affine_grid_backward affine_grid_generator grid_sampler grid_sampler_2d grid_sampler_2d_backward
grid_sampler_3d grid_sampler_3d_backward nn.functional.affine_grid nn.functional.grid_sample
""",
    "images.interpolate": """
__upsample_bicubic2d_aa_by_factors __upsample_bilinear2d_aa_by_factors
__upsample_lanczos2d_aa_by_factors __upsample_nearest_exact1d_by_factors
__upsample_nearest_exact2d_by_factors __upsample_nearest_exact3d_by_factors _upsample_bicubic2d_aa
_upsample_bicubic2d_aa_backward _upsample_bicubic2d_by_factors _upsample_bilinear2d_aa
_upsample_bilinear2d_aa_backward _upsample_bilinear2d_by_factors _upsample_lanczos2d_aa
_upsample_lanczos2d_aa_backward _upsample_linear1d_by_factors _upsample_nearest1d_by_factors
_upsample_nearest2d_by_factors _upsample_nearest3d_by_factors _upsample_nearest_exact1d
_upsample_nearest_exact1d_backward _upsample_nearest_exact2d _upsample_nearest_exact2d_backward
_upsample_nearest_exact3d _upsample_nearest_exact3d_backward _upsample_trilinear3d_by_factors
col2im im2col nn.functional.fold nn.functional.interpolate nn.functional.unfold
nn.functional.upsample nn.functional.upsample_bilinear nn.functional.upsample_nearest
upsample_bicubic2d upsample_bicubic2d_backward upsample_bilinear2d upsample_bilinear2d_backward
upsample_linear1d upsample_linear1d_backward upsample_nearest1d upsample_nearest1d_backward
upsample_nearest2d upsample_nearest2d_backward upsample_nearest3d upsample_nearest3d_backward
upsample_trilinear3d upsample_trilinear3d_backward
""",
    "indexing.advanced": "_index_backward index index_put",
    "indexing.brackets": "",
    "indexing.embedding": """
_embedding_bag embedding embedding_bag embedding_dense_backward embedding_renorm_
nn.functional.embedding nn.functional.embedding_bag
""",
    "indexing.gather": """
_nonzero argwhere gather index_select masked_select nonzero nonzero_static take take_along_dim
tril_indices triu_indices unravel_index
""",
    "indexing.scatter": "scatter scatter_add scatter_reduce",
    "indexing.writes": """
index_add index_copy index_fill index_reduce masked_fill masked_scatter put
""",
    "linalg.determinants": "det linalg.det linalg.slogdet logdet slogdet",
    "linalg.factors": """
_lu_solve _lu_with_info linalg.ldl_factor linalg.ldl_factor_ex linalg.ldl_solve linalg.lu
linalg.lu_factor linalg.lu_factor_ex linalg.lu_solve lu lu_solve lu_unpack
""",
    "linalg.lobpcg": "_lobpcg_pairs lobpcg",
    "linalg.orthogonal": "geqrf linalg.householder_product linalg.qr orgqr ormqr qr",
    "linalg.pseudoinverse": """
_linalg_lstsq _linalg_matrix_rank _linalg_pinv _pinv_factors linalg.cond linalg.lstsq
linalg.matrix_rank linalg.pinv pinverse
""",
    "linalg.removed": "eig lstsq matrix_rank solve symeig",
    "linalg.spectral": """
_linalg_eigvals _linalg_eigvalsh _linalg_svdvals linalg.eig linalg.eigh linalg.eigvals
linalg.eigvalsh linalg.svd linalg.svdvals linalg.vander pca_lowrank svd svd_lowrank vander
""",
    "linalg.systems": """
cholesky cholesky_inverse cholesky_solve inverse linalg.cholesky linalg.cholesky_ex linalg.inv
linalg.inv_ex linalg.solve linalg.solve_ex linalg.solve_triangular linalg.tensorinv
linalg.tensorsolve triangular_solve
""",
    "losses.binary": """
_binary_cross_entropy_slope _binary_cross_entropy_with_logits_backward binary_cross_entropy
binary_cross_entropy_backward binary_cross_entropy_with_logits nn.functional.binary_cross_entropy
nn.functional.binary_cross_entropy_with_logits nn.functional.soft_margin_loss soft_margin_loss
""",
    "losses.composed": """
hinge_embedding_loss kl_div nn.functional.gaussian_nll_loss nn.functional.hinge_embedding_loss
nn.functional.kl_div nn.functional.poisson_nll_loss poisson_nll_loss
""",
    "losses.cross_entropy": """
_cross_entropy _cross_entropy2d _cross_entropy_backward _cross_entropy_of_halves
cross_entropy_loss nn.functional.cross_entropy
""",
    "losses.ctc": "_ctc_loss _ctc_loss_backward ctc_loss nn.functional.ctc_loss",
    "losses.distance": """
_cdist_forward _pdist_forward cdist cosine_embedding_loss cosine_similarity margin_ranking_loss
nn.functional.cosine_embedding_loss nn.functional.margin_ranking_loss
nn.functional.triplet_margin_loss nn.functional.triplet_margin_with_distance_loss
pairwise_distance pdist triplet_margin_loss
""",
    "losses.elementwise": """
huber_loss huber_loss_backward l1_loss mse_loss mse_loss_backward nn.functional.huber_loss
nn.functional.l1_loss nn.functional.mse_loss nn.functional.smooth_l1_loss smooth_l1_loss
smooth_l1_loss_backward
""",
    "losses.likelihood": """
nll_loss nll_loss2d nll_loss2d_forward nll_loss_backward nll_loss_forward nll_loss_nd
nn.functional.nll_loss
""",
    "losses.margin": """
multi_margin_loss multilabel_margin_loss nn.functional.linear_cross_entropy
nn.functional.multi_margin_loss nn.functional.multilabel_margin_loss
nn.functional.multilabel_soft_margin_loss
""",
    "normalization.batch": """
_batch_norm_backward batch_norm instance_norm native_batch_norm native_batch_norm_backward
nn.functional.batch_norm nn.functional.instance_norm
""",
    "normalization.renorm": "renorm",
    "normalization.rms": "_rms_norm _rms_norm_backward rms_norm",
    "normalization.samples": """
group_norm layer_norm native_group_norm native_group_norm_backward native_layer_norm
native_layer_norm_backward nn.functional.group_norm nn.functional.local_response_norm
nn.functional.normalize
""",
    "normalization.weight": "_weight_norm norm_except_dim",
    "pooling.adaptive": """
_adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d
_adaptive_avg_pool3d_backward adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d fractional_max_pool2d
fractional_max_pool3d max_unpool2d max_unpool3d nn.functional.adaptive_avg_pool1d
nn.functional.adaptive_avg_pool2d nn.functional.adaptive_avg_pool3d
nn.functional.adaptive_max_pool1d nn.functional.adaptive_max_pool1d_with_indices
nn.functional.adaptive_max_pool2d nn.functional.adaptive_max_pool2d_with_indices
nn.functional.adaptive_max_pool3d nn.functional.adaptive_max_pool3d_with_indices
nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool2d_with_indices
nn.functional.fractional_max_pool3d nn.functional.fractional_max_pool3d_with_indices
nn.functional.max_unpool1d nn.functional.max_unpool2d nn.functional.max_unpool3d
""",
    "pooling.windows": """
_avg_pool2d_backward _avg_pool3d_backward _gather_planes _max_pool2d_backward _max_pool2d_pick
_max_pool3d_backward _max_pool3d_pick _scatter_planes avg_pool1d avg_pool2d avg_pool3d max_pool1d
max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices
nn.functional.avg_pool1d nn.functional.avg_pool2d nn.functional.avg_pool3d nn.functional.lp_pool1d
nn.functional.lp_pool2d nn.functional.lp_pool3d nn.functional.max_pool1d
nn.functional.max_pool1d_with_indices nn.functional.max_pool2d
nn.functional.max_pool2d_with_indices nn.functional.max_pool3d
nn.functional.max_pool3d_with_indices
""",
    "products.composed": """
_matmul_outer chain_matmul cross ger inner kron linalg.cross linalg.matrix_exp linalg.matrix_power
linalg.multi_dot linalg.vecdot matrix_exp matrix_power outer tensordot
""",
    "products.einsum": "einsum",
    "products.grouped": "_grouped_mm nn.functional.grouped_mm",
    "products.integers": "_int_mm",
    "products.linear": """
_linear _linear_nd _linear_nd_no_bias _linear_no_bias bilinear linear_backward
nn.functional.linear
""",
    "products.linear_halves": """
_linear_of_halves _linear_of_halves_backward _linear_of_halves_nd _linear_of_halves_nd_no_bias
_linear_of_halves_no_bias
""",
    "products.matmul": """
_adjoint_times _matmul _matmul_as_mv _matmul_dot _matmul_mv _times_adjoint _times_row
_transposed_mv _vector_times bmm dot linalg.matmul matmul mm mv vdot
""",
    "products.sums": "_addmm_activation addbmm addmm addmv addr baddbmm",
    "random.draws": """
bernoulli multinomial normal poisson rand rand_like randint randint_like randn randn_like randperm
""",
    "random.dropout": """
_kept_scaled alpha_dropout alpha_dropout_ dropout dropout_ feature_alpha_dropout
feature_alpha_dropout_ feature_dropout feature_dropout_ native_dropout native_dropout_backward
nn.functional.alpha_dropout nn.functional.dropout nn.functional.dropout1d nn.functional.dropout2d
nn.functional.dropout3d nn.functional.feature_alpha_dropout
""",
    "random.gamma": """
_dirichlet_grad _sample_dirichlet _standard_gamma _standard_gamma_grad binomial
""",
    "random.in_place": "",
    "recurrent.cells": "gru_cell lstm_cell rnn_relu_cell rnn_tanh_cell",
    "recurrent.layers": """
_gru_layer _gru_layer_backward _lstm_layer _lstm_layer_backward _lstm_steps _rnn_layer
_rnn_layer_backward
""",
    "recurrent.sequences": "gru lstm rnn_relu rnn_tanh",
    "reductions.counting": "bincount histc histogram histogramdd unique unique_consecutive",
    "reductions.extrema": "amax amin aminmax argmax argmin max min",
    "reductions.hashing": "hash_tensor",
    "reductions.masked": """
masked.amax masked.amin masked.argmax masked.argmin masked.cumprod masked.cumsum
masked.log_softmax masked.logaddexp masked.logsumexp masked.mean masked.median masked.norm
masked.normalize masked.prod masked.softmax masked.softmin masked.std masked.sum masked.var
""",
    "reductions.norms": """
_norm dist frobenius_norm linalg.matrix_norm linalg.norm linalg.vector_norm norm nuclear_norm
""",
    "reductions.segments": "_segment_reduce_backward segment_reduce",
    "reductions.statistics": "corrcoef cov kthvalue median mode nanmedian nanquantile quantile",
    "reductions.sums": "all any count_nonzero mean nanmean nansum prod sum sum_to_size trace",
    "reductions.variance": "_std _std_mean _var _var_mean std std_mean var var_mean",
    "scans.cumulative": """
cummax cummin cumprod cumsum cumulative_trapezoid diff gradient logcumsumexp trapezoid trapz
""",
    "sorting.sort": "argsort bucketize isin msort searchsorted sort topk",
    "sparse.compressed_constructors": """
sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_csc_tensor sparse_csr_tensor
""",
    "sparse.compressed_methods": "",
    "sparse.constructors": "_as_entries sparse_coo_tensor",
    "sparse.entries": "",
    "sparse.methods": "",
    "sparse.table": "",
    "special.functions": """
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
    "transforms.batch_rules": "",
    "transforms.batched_factories": "",
    "transforms.dispatched_factories": "",
    "transforms.dispatched_methods": "",
    "transforms.dispatching": "",
    "transforms.levels": "",
    "transforms.meta": "",
    "views.basic": """
_view_dtype _view_other alias broadcast_to diagonal expand permute select slice squeeze swapaxes
swapdims t transpose unfold unsqueeze view
""",
    "views.composed": """
adjoint alias_copy as_strided_copy diagonal_copy expand_as expand_copy flatten linalg.diagonal
moveaxis movedim narrow narrow_copy permute_copy ravel reshape_as select_copy slice_copy
split_copy split_with_sizes_copy squeeze_copy t_copy transpose_copy unbind_copy unflatten
unfold_copy unsqueeze_copy view_as view_as_complex_copy view_as_real_copy view_copy
""",
    "views.scatter": """
_as_strided_scatter as_strided_scatter diagonal_backward diagonal_scatter select_backward
select_scatter slice_backward slice_scatter unfold_backward
""",
    "views.splitting": """
_split_size _unsafe_split _unsafe_split_with_sizes chunk dsplit hsplit split split_with_sizes
tensor_split unbind unsafe_chunk unsafe_split unsafe_split_with_sizes vsplit
""",
    "views.strided": "_as_strided as_strided resize_as_",
}

ATTRIBUTES = {
    "__init__": """
__add__ __and__ __div__ __eq__ __ge__ __gt__ __iadd__ __iand__ __idiv__ __ifloordiv__ __ilshift__
__imod__ __imul__ __ior__ __irshift__ __isub__ __itruediv__ __ixor__ __le__ __lshift__ __lt__
__mul__ __ne__ __or__ __radd__ __rand__ __rmul__ __ror__ __rshift__ __rsub__ __rxor__ __sub__
__truediv__ __xor__
""",
    "activations.pointwise": "hardshrink prelu relu relu_",
    "activations.softmax": "log_softmax logsumexp softmax",
    "arranging.joining": "reshape",
    "arranging.rearrange": """
diag diag_embed diagflat flip fliplr flipud repeat repeat_interleave roll rot90 tile tril tril_
triu triu_
""",
    "copying.copies": """
bfloat16 bool byte cdouble cfloat chalf char clone contiguous copy_ cpu cuda detach detach_ double
fill fill_ float half int is_contiguous long short to zero zero_
""",
    "copying.queries": "allclose equal is_nonzero isclose",
    "copying.tensor_methods": """
apply_ as_subclass ccol_indices coalesce col_indices const_data_ptr crow_indices dense_dim
dim_order indices ipu is_coalesced is_distributed map2_ map_ module_load mtia pin_memory
record_stream row_indices sparse_dim to_dense type_as values volatile xpu
""",
    "elementwise.arithmetic": """
_div_floor _div_floor_ _div_trunc _div_trunc_ add add_ div div_ divide divide_ floor_divide
floor_divide_ fmod fmod_ mul mul_ multiply multiply_ neg neg_ negative negative_ positive
reciprocal reciprocal_ remainder remainder_ square square_ sub sub_ subtract subtract_ true_divide
true_divide_
""",
    "elementwise.bounds": """
clamp clamp_ clamp_max clamp_max_ clamp_min clamp_min_ clip clip_ fmax fmin heaviside heaviside_
maximum minimum
""",
    "elementwise.comparison": """
bitwise_and bitwise_and_ bitwise_left_shift bitwise_left_shift_ bitwise_not bitwise_not_
bitwise_or bitwise_or_ bitwise_right_shift bitwise_right_shift_ bitwise_xor bitwise_xor_ eq eq_
gcd gcd_ ge ge_ greater greater_ greater_equal greater_equal_ gt gt_ lcm lcm_ le le_ less less_
less_equal less_equal_ logical_and logical_and_ logical_not logical_not_ logical_or logical_or_
logical_xor logical_xor_ lt lt_ ne ne_ not_equal not_equal_
""",
    "elementwise.complex": """
_conj_physical _conj_physical_ _neg_view angle conj conj_physical conj_physical_ imag real
resolve_conj resolve_neg
""",
    "elementwise.mixtures": "addcdiv addcdiv_ addcmul addcmul_ lerp lerp_",
    "elementwise.rounding": """
abs abs_ absolute absolute_ ceil ceil_ copysign copysign_ fix fix_ floor floor_ frac frac_ frexp
isfinite isinf isnan isneginf isposinf isreal nan_to_num nan_to_num_ nextafter nextafter_ round
round_ sgn sgn_ sign sign_ signbit trunc trunc_
""",
    "elementwise.transcendental": """
exp exp2 exp2_ exp_ expm1 expm1_ float_power float_power_ ldexp ldexp_ log log10 log10_ log1p
log1p_ log2 log2_ log_ logaddexp logaddexp2 logit logit_ pow pow_ rsqrt rsqrt_ sigmoid sigmoid_
sqrt sqrt_ xlogy xlogy_
""",
    "elementwise.trigonometry": """
acos acos_ acosh acosh_ arccos arccos_ arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan
arctan2 arctan2_ arctan_ arctanh arctanh_ asin asin_ asinh asinh_ atan atan2 atan2_ atan_ atanh
atanh_ cos cos_ cosh cosh_ deg2rad deg2rad_ hypot hypot_ rad2deg rad2deg_ sin sin_ sinc sinc_ sinh
sinh_ tan tan_ tanh tanh_
""",
    "elementwise.where": "where",
    "factories.constructors": "new_tensor",
    "factories.like": "new_empty new_full new_ones new_zeros",
    "factories.strided": "new_empty_strided",
    "factories.typed": "new",
    "fft.spectrogram": "istft stft",
    "fft.transforms": "_resize_ends",
    "indexing.advanced": "index_put index_put_",
    "indexing.brackets": "__getitem__ __setitem__",
    "indexing.gather": """
argwhere gather index_select masked_select nonzero nonzero_static take take_along_dim
""",
    "indexing.scatter": """
scatter scatter_ scatter_add scatter_add_ scatter_reduce scatter_reduce_
""",
    "indexing.writes": """
index_add index_add_ index_copy index_copy_ index_fill index_fill_ index_reduce index_reduce_
masked_fill masked_fill_ masked_scatter masked_scatter_ put put_
""",
    "linalg.determinants": "det logdet slogdet",
    "linalg.factors": "lu lu_solve",
    "linalg.orthogonal": "geqrf orgqr ormqr qr",
    "linalg.pseudoinverse": "pinverse",
    "linalg.removed": "eig lstsq solve symeig",
    "linalg.spectral": "svd",
    "linalg.systems": "cholesky cholesky_inverse cholesky_solve inverse triangular_solve",
    "normalization.renorm": "renorm renorm_",
    "pooling.windows": "_gather_planes _max_pool2d_pick _max_pool3d_pick _scatter_planes",
    "products.composed": "cross ger inner kron matrix_exp matrix_power outer",
    "products.matmul": "bmm dot matmul mm mv vdot",
    "products.sums": """
_addmm_activation addbmm addbmm_ addmm addmm_ addmv addmv_ addr addr_ baddbmm baddbmm_
""",
    "random.draws": "bernoulli multinomial",
    "random.in_place": """
bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_ random_ uniform_
""",
    "reductions.counting": "bincount histc histogram unique unique_consecutive",
    "reductions.extrema": "amax amin aminmax argmax argmin max min",
    "reductions.hashing": "hash_tensor",
    "reductions.norms": "dist norm",
    "reductions.statistics": "corrcoef cov kthvalue median mode nanmedian nanquantile quantile",
    "reductions.sums": "all any count_nonzero mean nanmean nansum prod sum sum_to_size trace",
    "reductions.variance": "std var",
    "scans.cumulative": "cummax cummin cumprod cumprod_ cumsum cumsum_ diff logcumsumexp",
    "sorting.sort": "argsort msort sort topk",
    "sparse.compressed_constructors": "to_sparse_bsc to_sparse_bsr to_sparse_csc to_sparse_csr",
    "sparse.constructors": """
_dimI _dimV _indices _nnz _values sparse_mask sparse_resize_ to_sparse to_sparse_coo
""",
    "special.functions": """
digamma digamma_ erf erf_ erfc erfc_ erfinv erfinv_ i0 i0_ igamma igamma_ igammac igammac_ lgamma
lgamma_ mvlgamma mvlgamma_ polygamma polygamma_
""",
    "views.basic": """
broadcast_to diagonal expand permute select squeeze swapaxes swapdims t transpose unfold unsqueeze
view
""",
    "views.composed": """
H T adjoint expand_as flatten mH mT moveaxis movedim narrow narrow_copy ravel reshape_as unflatten
view_as
""",
    "views.scatter": "as_strided_scatter diagonal_scatter select_scatter slice_scatter",
    "views.splitting": """
chunk dsplit hsplit split split_with_sizes tensor_split unbind unsafe_chunk unsafe_split
unsafe_split_with_sizes vsplit
""",
    "views.strided": """
as_strided as_strided_ fill_diagonal_ resize resize_ resize_as resize_as_ set_ squeeze_ swapaxes_
swapdims_ t_ transpose_ unsqueeze_
""",
}

PROVIDES = {
    "copying.copies": "set_data",
    "copying.tensor_methods": "of_class",
    "cuda.dispatch": "by_the_host expect_cuda",
    "cuda.generators": "check_stream cuda_stream cuda_streams",
    "cuda.gradients": "gradients_on_gpu",
    "cuda.quick": "quick_on_gpu",
    "cuda.transfer": "assign_across to_device",
    "factories.typed": "Tensor",
    "sparse.entries": "own_sparse sparse_grad",
    "transforms.dispatching": "expect_dispatch ones_of_class",
    "transforms.levels": "carry_tangents expect_batches expect_meta",
}

ALIASES = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "clip": "clamp",
    "concat": "cat",
    "concatenate": "cat",
    "divide": "div",
    "fix": "trunc",
    "ger": "outer",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "linalg.matmul": "matmul",
    "linalg.matrix_power": "matrix_power",
    "multiply": "mul",
    "native_channel_shuffle": "channel_shuffle",
    "negative": "neg",
    "nn.functional.adaptive_avg_pool1d": "adaptive_avg_pool1d",
    "nn.functional.avg_pool1d": "avg_pool1d",
    "nn.functional.avg_pool2d": "avg_pool2d",
    "nn.functional.avg_pool3d": "avg_pool3d",
    "nn.functional.conv1d": "conv1d",
    "nn.functional.conv2d": "conv2d",
    "nn.functional.conv3d": "conv3d",
    "nn.functional.conv_tbc": "conv_tbc",
    "nn.functional.conv_transpose1d": "conv_transpose1d",
    "nn.functional.conv_transpose2d": "conv_transpose2d",
    "nn.functional.conv_transpose3d": "conv_transpose3d",
    "nn.functional.native_channel_shuffle": "channel_shuffle",
    "nn.functional.prelu": "prelu",
    "not_equal": "ne",
    "row_stack": "vstack",
    "special.digamma": "digamma",
    "special.erf": "erf",
    "special.erfc": "erfc",
    "special.erfinv": "erfinv",
    "special.exp2": "exp2",
    "special.expit": "sigmoid",
    "special.expm1": "expm1",
    "special.gammainc": "igamma",
    "special.gammaincc": "igammac",
    "special.gammaln": "lgamma",
    "special.i0": "i0",
    "special.log1p": "log1p",
    "special.logit": "logit",
    "special.logsumexp": "logsumexp",
    "special.multigammaln": "mvlgamma",
    "special.polygamma": "polygamma",
    "special.psi": "digamma",
    "special.round": "round",
    "special.sinc": "sinc",
    "special.xlogy": "xlogy",
    "subtract": "sub",
    "swapaxes": "transpose",
    "swapdims": "transpose",
    "true_divide": "div",
}

FACTS = {
    "any_entries": "_conj_physical neg",
    "builtin": """
adaptive_avg_pool1d avg_pool1d avg_pool2d avg_pool3d bilinear channel_shuffle conv1d conv2d conv3d
conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity gelu hardshrink
linear log_sigmoid one_hot pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu
scaled_dot_product_attention softplus softshrink
""",
    "distinct_entries": """
abs asin asinh atan atanh ceil deg2rad erf erfinv expm1 floor frac isinf isnan isneginf isposinf
log1p nan_to_num rad2deg relu round sgn sign signbit sin sinh sqrt square tan tanh trunc
""",
    "elementwise": """
_attention_open_weights _attention_slope _attention_weights _celu _clamp_both _clamp_both_tensors
_clamp_high _clamp_high_tensor _clamp_low _clamp_low_tensor _complex _conj_physical _div_floor
_div_trunc _gelu _gelu_grad _gelu_tanh _gelu_tanh_slope _kept_scaled _log_sigmoid_slope _logit
_logit_eps _mish_slope _polar _polygamma _prelu_kernel _relu_grad _rrelu_even _sigmoid_slope
_silu_slope _softplus_slope _tanh_slope _threshold_grad abs acos acosh add addcdiv addcmul angle
asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or
bitwise_right_shift bitwise_xor ceil celu clamp clamp_max clamp_min clone copysign cos cosh
deg2rad digamma div elu eq erf erfc erfinv exp exp2 expm1 floor floor_divide fmax fmin fmod frac
full_like gcd ge gelu gt hardshrink hardsigmoid hardswish hardtanh heaviside hypot i0 igamma
igammac isfinite isinf isnan isneginf isposinf isreal lcm le leaky_relu lerp lgamma log log10
log1p log2 log_sigmoid logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logit
lt maximum minimum mish mul nan_to_num ne neg nextafter ones_like pow rad2deg reciprocal relu
relu6 remainder round rsqrt rsub selu sgn sigmoid sign signbit silu sin sinc sinh softplus
softshrink special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1
special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v
special_chebyshev_polynomial_w special_entr special_erfcx special_hermite_polynomial_h
special_hermite_polynomial_he special_i0e special_i1 special_i1e special_laguerre_polynomial_l
special_legendre_polynomial_p special_log_ndtr special_modified_bessel_i0
special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1 special_ndtr
special_ndtri special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1
special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u
special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w
special_spherical_bessel_j0 special_xlog1py special_zeta sqrt square sub tan tanh threshold trunc
where xlogy zeros_like
""",
    "fused": """
abs add addcdiv addcmul ceil celu clamp clamp_max clamp_min cos div elu eq erf exp expm1 floor ge
gelu gt hardsigmoid hardswish hardtanh layer_norm le leaky_relu lerp log log10 log1p log2
log_sigmoid log_softmax logical_and logical_not logical_or lt masked_fill maximum mean minimum
mish mul native_layer_norm ne neg pow reciprocal relu relu6 rms_norm rsqrt rsub selu sigmoid sign
silu sin softmax softplus sqrt square sub sum tanh where
""",
    "may_give_input": """
alpha_dropout atleast_1d atleast_2d atleast_3d broadcast_tensors cartesian_prod conj_physical
dropout einsum feature_alpha_dropout feature_dropout histogramdd meshgrid sum_to_size type_as
unsafe_chunk unsafe_split unsafe_split_with_sizes
""",
    "program": "cdist lu norm stft tensordot unique unique_consecutive",
    "regular": """
_as_strided _conj _imag _neg_view _real _view_as_real abs add addcmul addmm alias baddbmm
bitwise_and bitwise_not bitwise_or bmm cat chunk clamp clamp_max clamp_min clone conv1d conv2d
conv3d cos detach diagonal einsum elu embedding eq exp expand expand_as flatten full full_like
gather ge gelu gt hardsigmoid hardswish hardtanh index_select isfinite isinf isnan isneginf
isposinf isreal layer_norm le leaky_relu lerp linear log_softmax logical_and logical_not
logical_or logical_xor lt masked_fill matmul maximum mean minimum mm mul mv narrow ne neg new_ones
new_zeros ones ones_like permute relu reshape rsub select sigmoid signbit silu sin slice softmax
softplus split split_with_sizes square squeeze stack sub sum t tanh transpose tril triu type_as
unbind unfold unsafe_split unsafe_split_with_sizes unsqueeze view view_as_complex where zeros
zeros_like
""",
    "undetermined": """
empty empty_like empty_strided gumbel_softmax new_empty new_empty_strided
""",
}

SETTABLE = "imag real"

MISSING = """
dequantize index int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points
q_scale q_zero_point qscheme reinforce resize_as_sparse_ slice_inverse smm
sparse_resize_and_clear_ sspaddmm to_mkldnn to_padded_tensor
"""
