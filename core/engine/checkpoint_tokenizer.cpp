#include "core/engine/checkpoint_tokenizer.h"

#include "core/engine/trainer_state.h"
#include "core/export/vocabulary.h"

namespace neuroshard::engine {

Expected<data::Tokenizer> checkpoint_tokenizer(storage::FileEnv& files, const checkpoint::Entry& entry,
                                               const std::string& data_path) {
  if (!entry.complete()) return make_error(ErrorCode::Corrupt, entry.damage);
  TrainerState state;
  NS_RETURN_IF_ERROR(decode_trainer_state(entry.manifest.trainer_state, &state));
  return exporting::find_tokenizer(files, data_path, state.tokenizer_hash);
}

}  // namespace neuroshard::engine
