"""The names torch gives to what a solution may ask of it, and to what is compute.

Listed rather than looked up in a running torch: the rules read files and need no torch. COMPUTE holds base names, an
in-place variant (`add_`) belongs to its base (`is_compute`). Gathered from the functions and tensor methods of torch
2.11 and grouped by hand.
"""

from __future__ import annotations

# Allocate or fill memory: no arithmetic on anything that exists.
_CREATE = """
    arange as_tensor asarray empty empty_like empty_permuted empty_strided eye fill fill_ from_file from_numpy
    frombuffer full full_like linspace new new_empty new_empty_strided new_full new_ones new_tensor new_zeros ones
    ones_like range scalar_tensor tensor zero_ zeros zeros_like
"""
CREATE = frozenset(_CREATE.split())

# Another look at the same memory; `reshape` and `flatten` copy only when they cannot.
_VIEW = """
    H T adjoint align_as align_tensors align_to as_strided as_strided_ atleast_1d atleast_2d atleast_3d
    broadcast_tensors broadcast_to chunk data detach detach_ diagonal dsplit expand expand_as flatten hsplit imag mH
    mT moveaxis movedim narrow permute ravel real refine_names rename rename_ reshape reshape_as select split
    split_with_sizes squeeze squeeze_ swapaxes swapaxes_ swapdims swapdims_ t t_ tensor_split transpose transpose_
    unbind unflatten unfold unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze unsqueeze_ view view_as
    view_as_complex view_as_real vsplit
"""
VIEW = frozenset(_VIEW.split())

# Facts about a tensor, and bookkeeping of autograd.
_META = """
    as_subclass backward can_cast ccol_indices col_indices crow_indices cudnn_is_acceptable data_ptr dense_dim
    device dim dim_order dtype element_size get_device grad grad_dtype grad_fn has_names hash_tensor indices
    is_coalesced is_complex is_conj is_contiguous is_cpu is_cuda is_distributed is_floating_point is_inference
    is_ipu is_leaf is_maia is_meta is_mkldnn is_mps is_mtia is_neg is_nested is_pinned is_quantized is_same_size
    is_set_to is_shared is_signed is_sparse is_sparse_csr is_vulkan is_vulkan_available is_xla is_xpu item itemsize
    layout module_load name names nbytes ndim ndimension nelement numel output_nr pin_memory promote_types qscheme
    record_stream register_hook register_post_accumulate_grad_hook requires_grad requires_grad_ resize resize_
    resize_as resize_as_ resolve_conj resolve_neg result_type retain_grad retains_grad row_indices set_ shape
    share_memory_ size sparse_dim storage storage_offset storage_type stride sym_constrain_range
    sym_constrain_range_for_size untyped_storage values volatile
"""
META = frozenset(_META.split())

# Allowed or not by their arguments and by what they are called on; each rule decides.
_MOVE = """
    contiguous cpu cuda ipu mtia numpy to to_dense tolist type type_as xpu
"""
MOVE = frozenset(_MOVE.split())

# Everything that makes new values out of old ones, or draws them.
_COMPUTE = """
    abs absolute acos acosh adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    adaptive_max_pool2d adaptive_max_pool3d add add_out addbmm addcdiv addcmul addmm addmm_out addmv addr
    affine_grid_generator alias_copy all allclose alpha_dropout amax amin aminmax angle any apply arccos arccosh
    arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort argwhere as_strided_copy as_strided_scatter asin
    asinh atan atan2 atanh avg_pool1d avg_pool2d avg_pool3d baddbmm bartlett_window batch_norm
    batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats
    batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_update_stats bernoulli bfloat16 bilinear
    binary_cross_entropy binary_cross_entropy_with_logits bincount binomial bitwise_and bitwise_left_shift
    bitwise_not bitwise_or bitwise_right_shift bitwise_xor blackman_window block_diag bmm bool bucketize byte
    cartesian_prod cat cauchy ccol_indices_copy cdist cdouble ceil celu cfloat chain_matmul chalf channel_shuffle
    char cholesky cholesky_inverse cholesky_solve choose_qparams_optimized clamp clamp_max clamp_min clip clone
    coalesce col2im col_indices_copy column_stack combinations compile complex concat concatenate cond conj
    conj_physical constant_pad_nd conv1d conv2d conv3d conv_depthwise3d conv_tbc conv_transpose1d conv_transpose2d
    conv_transpose3d convolution convolution_overrideable copy copysign corrcoef cos cosh cosine_embedding_loss
    cosine_similarity count_nonzero cov cross cross_entropy crow_indices_copy ctc_loss cudnn_affine_grid_generator
    cudnn_batch_norm cudnn_convolution cudnn_convolution_add_relu cudnn_convolution_relu cudnn_convolution_transpose
    cudnn_grid_sampler cummax cummin cumprod cumsum cumulative_trapezoid deg2rad dequantize det detach_copy diag
    diag_embed diagflat diagonal_copy diagonal_scatter diff digamma dist div divide dot double dropout dropout1d
    dropout2d dropout3d dsmm dstack eig einsum elu embedding embedding_bag embedding_renorm empty_quantized eq equal
    erf erfc erfinv exp exp2 expand_copy expm1 exponential fake_quantize_per_channel_affine
    fake_quantize_per_tensor_affine fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation
    fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight
    fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix feature_alpha_dropout feature_dropout fft_fft fft_ifft
    fft_irfft fft_rfft fill_diagonal fix flip fliplr flipud float float_power floor floor_divide fmax fmin fmod fold
    frac frexp frobenius_norm fused_moving_avg_obs_fake_quant gather gcd ge gelu geometric geqrf ger glu gradient
    greater greater_equal grid_sampler grid_sampler_2d grid_sampler_3d group_norm gru gru_cell gt half
    hamming_window hann_window hardshrink hardsigmoid hardswish hardtanh heaviside hinge_embedding_loss histc
    histogram histogramdd hsmm hspmm hstack huber_loss hypot i0 igamma igammac im2col index index_add index_copy
    index_fill index_put index_reduce index_select indices_copy inner instance_norm int int_repr interpolate inverse
    is_nonzero isclose isfinite isin isinf isnan isneginf isposinf isreal istft kaiser_window kl_div kron kthvalue
    l1_loss layer_norm lcm ldexp le leaky_relu lerp less less_equal lgamma linalg_inv linalg_matrix_norm linalg_norm
    linalg_qr linalg_solve linalg_svd linalg_vector_norm linear lobpcg local_response_norm log log10 log1p log2
    log_normal log_sigmoid log_softmax logaddexp logaddexp2 logcumsumexp logdet logical_and logical_not logical_or
    logical_xor logit logsigmoid logspace logsumexp long lp_pool1d lp_pool2d lstm lstm_cell lstsq lt lu lu_solve
    lu_unpack map map2 margin_ranking_loss masked_fill masked_scatter masked_select matmul matmul_out matrix_exp
    matrix_power matrix_rank max max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d
    max_pool3d_with_indices maximum mean median meshgrid min minimum miopen_batch_norm miopen_convolution
    miopen_convolution_add_relu miopen_convolution_relu miopen_convolution_transpose miopen_ctc_loss
    miopen_depthwise_convolution miopen_rnn mish mkldnn_adaptive_avg_pool2d mkldnn_convolution
    mkldnn_linear_backward_weights mkldnn_max_pool2d mkldnn_max_pool3d mkldnn_rnn_layer mm mm_out mode mse_loss
    msort mul mul_out multi_head_attention_forward multinomial multiply mv mvlgamma nan_to_num nanmean nanmedian
    nanquantile nansum narrow_copy native_batch_norm native_channel_shuffle native_dropout native_group_norm
    native_layer_norm native_norm ne neg negative nextafter nll_loss nonzero nonzero_static norm norm_except_dim
    normal normalize not_equal nuclear_norm one_hot orgqr ormqr outer pad pairwise_distance pca_lowrank pdist
    permute_copy pinverse pixel_shuffle pixel_unshuffle poisson poisson_nll_loss polar polygamma positive pow prelu
    prod put q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qr quantile
    quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic quantized_batch_norm quantized_gru
    quantized_gru_cell quantized_lstm quantized_lstm_cell quantized_max_pool1d quantized_max_pool2d
    quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell rad2deg rand rand_like randint randint_like
    randn randn_like random randperm reciprocal reflection_pad1d reflection_pad2d reinforce relu relu6 remainder
    renorm repeat repeat_interleave replication_pad1d replication_pad2d resize_as_sparse rms_norm rnn_relu
    rnn_relu_cell rnn_tanh rnn_tanh_cell roll rot90 round row_indices_copy row_stack rrelu rsqrt rsub saddmm
    scaled_dot_product_attention scatter scatter_add scatter_reduce searchsorted segment_reduce select_copy
    select_scatter selu sgn short sigmoid sign signbit silu sin sinc sinh slice_copy slice_inverse slice_scatter
    slogdet slow_conv3d slow_conv_transpose2d smm smooth_l1_loss softmax softmin softplus softshrink softsign solve
    sort sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor
    sparse_csr_tensor sparse_mask sparse_resize sparse_resize_and_clear special_erf special_expit split_copy
    split_with_sizes_copy spmm sqrt square squeeze_copy sspaddmm stack std std_mean stft sub subtract sum
    sum_to_size svd svd_lowrank symeig t_copy take take_along_dim tan tanh tanhshrink tensordot threshold tile
    to_mkldnn to_padded_tensor to_sparse to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr topk
    trace transpose_copy trapezoid trapz triangular_solve tril tril_indices triplet_margin_loss triu triu_indices
    true_divide trunc unbind_copy unfold_copy uniform unique unique_consecutive unique_dim unsqueeze_copy upsample
    upsample_bilinear2d upsample_nearest2d values_copy vander var var_mean vdot view_as_complex_copy
    view_as_real_copy view_copy vmap vstack where while_loop xlogy
"""
COMPUTE = frozenset(_COMPUTE.split())
