// The text that this node trains on: imports a person's files, opens the existing shards, and selects the
// held-out part.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/cancel.h"
#include "core/base/executor.h"
#include "core/base/expected.h"
#include "core/config/data_directory.h"
#include "core/data/dataset.h"
#include "core/data/held_out.h"
#include "core/data/loader.h"
#include "core/data/text_import.h"
#include "core/engine/training_session.h"

namespace neuroshard::engine {

// Adds a file or folder to the data directory's shards; learns the tokenizer if there is none yet.
Expected<data::ImportResult> import_training_text(const config::DataDirectory& directory,
                                                  TrainingServices services, const PrepareOptions& options);

// The shards of the data directory, else those that the network's publisher serves. NotFound, when there is
// neither, names what to provide.
Expected<std::unique_ptr<data::Dataset>> open_training_data(const config::DataDirectory& directory,
                                                            TrainingServices services,
                                                            const CancelToken& cancel);

// The disk space for cached shards of the network's publisher.
std::uint64_t published_cache_bytes(const config::DataDirectory& directory);

// The loader's options; the same in every run of a data directory, since they determine the batches.
data::LoaderOptions loader_options(const config::DataDirectory& directory);

// The most memory for the loaded shards and for reading the next one.
std::uint64_t training_data_bytes(const data::Dataset& dataset);

// The number of threads that this node may compute with: the setting, or all usable ones.
std::uint32_t thread_limit(const config::DataDirectory& directory);
// At most this many, and at most those that the process may use; 0 = all of them.
std::uint32_t usable_threads(std::uint64_t wanted);

}  // namespace neuroshard::engine
