"""paddle.fluid.layers: what scripts of Paddle 1.x build a program with, under its names and signatures.
Source: document 000."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        **_lazy.names(
            "fluid._math",
            "accuracy argsort assign auc autoincreased_step_counter cast clip_by_norm concat cos_sim cumsum "
            "elementwise_add "
            "elementwise_div elementwise_floordiv elementwise_max elementwise_min elementwise_mod "
            "elementwise_mul elementwise_pow elementwise_sub equal expand expand_as eye fill_constant "
            "fill_constant_batch_size_like flatten gather gaussian_random gaussian_random_batch_size_like "
            "greater_equal greater_than has_inf has_nan increment is_empty isfinite l2_normalize less_equal "
            "less_than logical_and logical_not logical_or logical_xor matmul mean mul multiplex not_equal "
            "one_hot ones range reduce_all reduce_any reduce_max reduce_mean reduce_min reduce_prod "
            "reduce_sum reshape reverse scale scatter size split squeeze stack strided_slice sum sums topk "
            "transpose uniform_random uniform_random_batch_size_like unsqueeze where zeros",
        ),
        **_lazy.names(
            "fluid._losses",
            "bpr_loss brelu cross_entropy dice_loss dropout elu hard_shrink hard_sigmoid hard_swish "
            "huber_loss "
            "kldiv_loss label_smooth leaky_relu margin_rank_loss mse_loss npair_loss pow rank_loss relu "
            "relu6 sigmoid "
            "sigmoid_cross_entropy_with_logits smooth_l1 soft_relu softmax softplus softshrink stanh swish "
            "thresholded_relu",
        ),
        **_lazy.names(
            "fluid._layers",
            "adaptive_pool2d adaptive_pool3d create_parameter create_py_reader_by_data create_tensor data "
            "double_buffer embedding fc pool2d Print py_reader read_file",
        ),
        **_lazy.names(
            "tensor",
            "abs acos acosh asin asinh atan atanh ceil clip cos cosh erf exp floor "
            "linspace log ones_like rank reciprocal round rsqrt scatter_nd shape shard_index "
            "sin sinh slice sqrt square tanh unbind unstack zeros_like bmm t diag_embed "
            "index_sample arange",
        ),
        **_lazy.names(
            "nn.functional",
            "gelu log_loss maxout mish selu softmax_with_cross_entropy softsign square_error_cost",
        ),
        **_lazy.names(
            "fluid._renamed",
            "addcmul addmm allclose argmax argmin clamp cross diag dist dot flip full full_like gather_nd "
            "index_select kron log1p log_softmax "
            "logsumexp meshgrid nonzero randint randn randperm roll scatter_nd_add sign trace tril triu",
        ),
        "elementwise_equal": "fluid._math:equal",
        "interpolate": "fluid._images:image_resize",
        "crop": "tensor:crop",
        "crop_tensor": "tensor:crop",
        "logsigmoid": "nn.functional:log_sigmoid",
        "tanh_shrink": "nn.functional:tanhshrink",
        "pad": "fluid._padding:pad",
        "pad2d": "fluid._padding:pad2d",
        "pad_constant_like": "fluid._padding:pad_constant_like",
        "pool3d": "fluid._pool3d:pool3d",
        **_lazy.names("fluid._distributions", "Categorical Normal Uniform"),
        **_lazy.names(
            "static.nn",
            "batch_norm continuous_value_model conv2d layer_norm prelu",
        ),
        **_lazy.names(
            "static.sequence_lod",
            "lod_reset row_conv sequence_concat sequence_conv sequence_enumerate sequence_expand "
            "sequence_expand_as sequence_first_step sequence_last_step sequence_mask sequence_pad "
            "sequence_pool sequence_reshape sequence_reverse sequence_scatter sequence_slice "
            "sequence_softmax sequence_unpad",
        ),
        **_lazy.names("static.control_flow", "case cond Switch switch_case while_loop"),
        "While": "static.loops:While",
        "DynamicRNN": "fluid._dynamic_rnn:DynamicRNN",
        **_lazy.names("fluid._cells", "birnn GRUCell LSTMCell RNNCell rnn"),
        **_lazy.names(
            "fluid._helpers",
            "BasicDecoder DecodeHelper GreedyEmbeddingHelper SampleEmbeddingHelper TrainingHelper",
        ),
        **_lazy.names("fluid._decoding", "BeamSearchDecoder Decoder dynamic_decode gather_tree"),
        **_lazy.names("static.sampled", "hsigmoid nce sampled_softmax_with_cross_entropy"),
        **_lazy.names("static.convolutions", "conv2d_transpose conv3d conv3d_transpose"),
        **_lazy.names(
            "fluid._arrays", "array_length array_read array_write create_array tensor_array_to_tensor"
        ),
        **_lazy.names("fluid._beams", "beam_search beam_search_decode"),
        "dynamic_lstmp": "fluid._projected:dynamic_lstmp",
        "StaticRNN": "fluid._steps:StaticRNN",
        **_lazy.names(
            "fluid._boxes", "bipartite_match box_coder iou_similarity multiclass_nms prior_box target_assign"
        ),
        **_lazy.names("fluid._detection", "detection_output multi_box_head ssd_loss"),
        **_lazy.names("fluid._chains", "chunk_eval crf_decoding linear_chain_crf"),
        **_lazy.names("fluid._recurrent", "dynamic_gru dynamic_lstm gru_unit lstm_unit"),
        **_lazy.names("static.norms", "data_norm group_norm"),
        "spectral_norm": "nn._spectral:spectral_norm",
        **_lazy.names("static.inputs", "create_global_var"),
        **_lazy.names(
            "fluid.schedules",
            "cosine_decay exponential_decay inverse_time_decay linear_lr_warmup natural_exp_decay "
            "noam_decay piecewise_decay polynomial_decay",
        ),
        **_lazy.names(
            "fluid._images",
            "affine_channel affine_grid fsp_matrix grid_sampler im2sequence image_resize image_resize_short "
            "lrn pixel_shuffle resize_bilinear resize_linear resize_nearest resize_trilinear "
            "shuffle_channel space_to_depth temporal_shift unfold",
        ),
        **_lazy.names("fluid._labels", "ctc_greedy_decoder edit_distance warpctc"),
        **_lazy.names(
            "fluid._odd_layers",
            "add_position_encoding bilinear_tensor_product center_loss get_tensor_from_selected_rows "
            "instance_norm mean_iou merge_selected_rows sampling_id teacher_student_sigmoid_loss unique "
            "unique_with_counts",
        ),
        "collective": "fluid._collective",
        "IfElse": "fluid._if_else:IfElse",
        "py_func": "static.calls:py_func",
        "get_places": "_places:get_places",
        "utils": "utils.nest",
        # What the modules of 1.x import themselves, and scripts from them.
        **_lazy.names("framework", "default_main_program default_startup_program in_dygraph_mode Variable"),
        "core": "core",
        "LayerHelper": "fluid.layer_helper:LayerHelper",
        "unique_name": "utils.unique_name",
    },
)
