// The kernels' code, compiled once per instruction set and precision: the including file defines
// NS_KERNEL_TABLE as the table's name and, for bf16 activations, NS_KERNEL_BFLOAT16. See core/model/kernels.h
// for what each does and why only C headers may be included.
#include "core/model/detail/attention_kernels.h"
#include "core/model/detail/common.h"
#include "core/model/detail/gemv_kernels.h"
#include "core/model/detail/loss_kernels.h"
#include "core/model/detail/mixture_kernels.h"
#include "core/model/detail/norm_kernels.h"
#include "core/model/detail/optimizer_kernels.h"
#include "core/model/detail/packing_kernels.h"

namespace neuroshard::model {

extern const Kernels NS_KERNEL_TABLE = {
    table_element,
    rms_norm_forward,
    rms_norm_apply,
    rms_norm_backward,
    add_blocks,
    rope,
    attention_forward,
    attention_backward,
    multiply_few,
    swiglu_forward,
    swiglu_backward,
    narrow,
    widen,
    gather_rows,
    gather_activations,
    gather_narrow,
    combine_rows,
    scatter_add_rows,
    scale_rows,
    dot_rows,
    cross_entropy_forward,
    cross_entropy_backward,
    sum_of_squares,
    adamw,
#ifdef NS_KERNEL_BFLOAT16
    pack_weight,
    adamw_packed,
    transpose_columns,
    pack_columns,
    attention_forward_pairs,
    attention_backward_pairs,
#else
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
#endif
};

}  // namespace neuroshard::model
