// The training text of a data directory, as the node interface (core/node) shows it.
#pragma once

#include <memory>

#include "core/base/expected.h"
#include "core/config/data_directory.h"
#include "core/data/dataset.h"
#include "core/node/queries.h"
#include "core/storage/file_env.h"

namespace neuroshard::engine::detail {

// The content of the dataset's manifest and of its files. Reads the disk.  Threads: any.
node::DataView describe_data(const config::DataDirectory& directory, storage::FileEnv& files,
                             const data::Dataset& dataset);
// The text that was imported into this data directory.  NotFound: there is none yet.  Threads: any.
Expected<std::unique_ptr<data::Dataset>> open_own_text(const config::DataDirectory& directory,
                                                       storage::FileEnv& files);

}  // namespace neuroshard::engine::detail
