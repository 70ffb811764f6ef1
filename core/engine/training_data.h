// The text that this node trains on: imports a person's files, takes over the network's tokenizer, and opens
// the shards.
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

struct TrainingText {
  std::unique_ptr<data::Dataset> dataset;
  data::ImportResult imported;
};

// The text of this node with the network's tokenizer, and options.text added to it:
//
//   the network has a publisher   its shards and tokenizer, and the node's own shards beside them
//   the network has rounds        the node's own shards, with options.tokenizer, or else the tokenizer that they have
//   neither                       the node's own shards
//
// Text without any of these tokenizers gets one that is learned from it. The tokenizer of a network without a
// publisher is offered to the other nodes; own shards never are.
// Errors: NotFound (there is no text; names what to provide), those of data::import_text and
// data::open_remote_dataset.
Expected<TrainingText> prepare_training_text(const config::DataDirectory& directory,
                                             const TrainingServices& services, const PrepareOptions& options);

// The network's profile names a publisher of its text.
bool has_publisher(const config::DataDirectory& directory);

// The node's own shards. NotFound: it has none.
Expected<std::unique_ptr<data::Dataset>> open_own_text(const config::DataDirectory& directory,
                                                       storage::FileEnv& files);

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
