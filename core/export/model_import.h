// A Hugging Face folder as a checkpoint of this program: what hugging_face.h writes comes back bit for bit.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/cancel.h"
#include "core/base/expected.h"
#include "core/checkpoint/loader.h"
#include "core/checkpoint/manifest.h"
#include "core/checkpoint/writer.h"
#include "core/data/tokenizer.h"
#include "core/export/hugging_face_reader.h"
#include "core/storage/file_env.h"

namespace neuroshard::exporting {

// Has a config.json and no manifest of a checkpoint.
bool is_hugging_face_folder(storage::FileEnv& env, const std::string& folder);

struct ImportSource {
  HuggingFaceModel model;
  data::Tokenizer tokenizer;
};
// Configuration, tokenizer, then the header of the weights; nothing of the size of the model is allocated. Errors: NotFound,
// Corrupt, Unsupported (names what our model does not have).
Expected<ImportSource> open_hugging_face_folder(storage::FileEnv& env, const std::string& folder);

// Writes the weights as a pinned checkpoint, never the newest by itself, with moments and balancing biases of zero. The
// manifest's architecture is that of the source, or a larger one to which it grows (compute/growth.h); seed: of new weights.
// Memory: a few megabytes, and one slot before and after where the model grows. Errors: InvalidArgument (it can't grow so),
// Cancelled and those of checkpoint::Writer::take_in().  Threads: one.
Expected<checkpoint::SaveResult> import_model(checkpoint::Writer& writer, ImportSource& source,
                                              checkpoint::Manifest manifest, const Hash256& seed,
                                              const checkpoint::Progress& progress = {},
                                              const CancelToken& cancel = {});

}  // namespace neuroshard::exporting
