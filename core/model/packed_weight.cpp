#include "core/model/packed_weight.h"

#include "core/model/tensors.h"

namespace neuroshard::model {

PackedWeight make_packed_weight(std::int64_t rows, std::int64_t columns, bool trainable) {
  PackedWeight packed;
  packed.rows = rows;
  packed.columns = columns;
  packed.forward = make_bf16({packed_count(columns, rows)});
  packed.forward.zero_();
  if (trainable) {
    packed.backward = make_bf16({packed_count(rows, columns)});
    packed.backward.zero_();
  }
  return packed;
}

void pack(const Kernels& kernels, const float* weight, PackedWeight& packed) {
  kernels.pack_weight(weight, packed.rows, packed.columns, bf16s(packed.forward), bf16s(packed.backward));
}

}  // namespace neuroshard::model
