// The tokenizer that a checkpoint's model was trained with: its training state names it by its hash.
#pragma once

#include <string>

#include "core/base/expected.h"
#include "core/checkpoint/catalogue.h"
#include "core/data/tokenizer.h"
#include "core/storage/file_env.h"

namespace neuroshard::engine {

// data_path: data/ of the data directory. Reads files; needs no lock. Errors: Corrupt (the checkpoint), NotFound (the data
// directory has another tokenizer now).
Expected<data::Tokenizer> checkpoint_tokenizer(storage::FileEnv& files, const checkpoint::Entry& entry,
                                               const std::string& data_path);

}  // namespace neuroshard::engine
