#include "core/engine/anchor_stage.h"

#include <utility>
#include <vector>

namespace neuroshard::engine {

Expected<compute::Stage*> AnchorStage::stage() {
  if (wanted_ == nullptr) return make_error(ErrorCode::NotFound, "this node has no certified weights yet");
  if (stage_ == nullptr) {
    NS_ASSIGN_OR_RETURN(stage_, make_());
  }
  if (loaded_ != wanted_) {
    if (auto loaded = load(); !loaded.ok()) {
      release();
      return std::move(loaded).error();
    }
  }
  return stage_.get();
}

// One slot at a time is in memory.
Expected<void> AnchorStage::load() {
  const outer::ValueSource weights = wanted_->weights();
  std::uint64_t first = 0;
  std::vector<float> values;
  for (std::uint32_t i = 0; i < stage_->slot_count(); ++i) {
    values.resize(static_cast<std::size_t>(stage_->slot(i).count));
    if (first + values.size() > weights.count)
      return make_error(ErrorCode::Corrupt, "the anchor has fewer weights than this part of the model");
    NS_RETURN_IF_ERROR(weights.read(first, values));
    const compute::Status status = stage_->copy_in(i, compute::SlotBuffer::Parameters, values.data());
    if (!status.ok()) return compute::to_error(status);
    first += values.size();
  }
  stage_->parameters_changed();
  loaded_ = wanted_;
  return {};
}

void AnchorStage::release() {
  stage_.reset();
  loaded_.reset();
}

}  // namespace neuroshard::engine
