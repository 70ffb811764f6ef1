// The training text of a data directory, as the node interface (core/node) shows it.
#pragma once

#include "core/config/data_directory.h"
#include "core/data/dataset.h"
#include "core/node/queries.h"
#include "core/storage/file_env.h"

namespace neuroshard::engine::detail {

// The content of the dataset's manifest and of its files. Reads the disk.  Threads: any.
node::DataView describe_data(const config::DataDirectory& directory, storage::FileEnv& files,
                             const data::Dataset& dataset);

}  // namespace neuroshard::engine::detail
