// A folder from elsewhere becomes a checkpoint of a data directory: the checkpoint of another node, or a model in the layout of
// Hugging Face.
#pragma once

#include <string>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/checkpoint/loader.h"
#include "core/checkpoint/writer.h"
#include "core/config/data_directory.h"
#include "core/storage/file_env.h"

namespace neuroshard::engine {

struct FolderImport {
  storage::FileEnv& files;
  const Clock& clock;
  const config::DataDirectory& directory;
  std::string path;
};

// Checks everything that is small first: network, or configuration, tokenizer and tensor names; then reads. A model must have
// the architecture of the directory's network, or a smaller one that grows to it (compute/growth.h), and its tokenizer. A
// directory without any tokenizer takes over that of the model, once the import succeeded. The checkpoint is pinned and not
// chosen.
// Errors: those of checkpoint::open_folder() and Writer::adopt(); InvalidArgument (another network, architecture or
// tokenizer), Unsupported (names what our model does not have), Busy (another tokenizer came meanwhile), Cancelled, those of
// the disk.  Threads: one at a time.
Expected<checkpoint::SaveResult> import_folder(const FolderImport& from, checkpoint::Writer& writer,
                                               const checkpoint::Progress& progress = {},
                                               const CancelToken& cancel = {});

}  // namespace neuroshard::engine
