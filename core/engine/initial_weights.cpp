#include "core/engine/initial_weights.h"

#include "core/crypto/hash.h"
#include "core/engine/training_checkpoints.h"
#include "core/outer/values.h"

namespace neuroshard::engine {

Hash256 initial_seed(const Hash256& network, std::uint32_t architecture_version) {
  Bytes version;
  append_le(version, architecture_version);
  return crypto::Sha256().update("neuroshard/init/v1").update(network).update(version).finish();
}

Expected<rounds::Anchor> initial_state(const compute::ModelShape& shape, const compute::StageRange& range,
                                       const Hash256& network, Spool& spool) {
  const Hash256 seed = initial_seed(network, first_architecture_version);
  const std::uint64_t count = compute::values_of(shape, range).count, bytes = count * sizeof(float);
  NS_ASSIGN_OR_RETURN(const std::unique_ptr<SpoolItem> item, spool.create(bytes));
  const outer::WriteValues write = outer::write_to(*item, 0);
  std::vector<float> values;
  std::uint64_t at = 0;
  for (const compute::SlotId slot : compute::slots_of(shape, range)) {
    values.resize(static_cast<std::size_t>(compute::slot_parameter_count(shape, slot)));
    compute::initialise_slot(shape, slot, seed, values);
    NS_RETURN_IF_ERROR(write(at, values));
    at += values.size();
  }
  NS_ASSIGN_OR_RETURN(ByteSourcePtr weights, item->finish(bytes));
  return std::make_shared<const rounds::OuterState>(
      rounds::OuterState{rounds::state_counts(count, 0), joined({std::move(weights), zero_bytes(bytes)})});
}

}  // namespace neuroshard::engine
