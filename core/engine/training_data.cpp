#include "core/engine/training_data.h"

#include <algorithm>

#include "core/data/remote_dataset.h"
#include "core/platform/sensor/cpu.h"

namespace neuroshard::engine {
namespace {

PrepareProgress::Phase phase_of(data::ImportProgress::Phase phase) {
  switch (phase) {
    case data::ImportProgress::Phase::Scanning: return PrepareProgress::Phase::Scanning;
    case data::ImportProgress::Phase::LearningMerges: return PrepareProgress::Phase::LearningMerges;
    case data::ImportProgress::Phase::Encoding: return PrepareProgress::Phase::Encoding;
    case data::ImportProgress::Phase::Finishing: break;
  }
  return PrepareProgress::Phase::Finishing;
}

Bytes network_bytes(const config::DataDirectory& directory) {
  return Bytes(directory.network_id().begin(), directory.network_id().end());
}

Expected<std::unique_ptr<data::Dataset>> open_published(const config::DataDirectory& directory,
                                                        TrainingServices services,
                                                        const CancelToken& cancel) {
  const config::NetworkProfile& profile = directory.profile();
  NS_ASSIGN_OR_RETURN(const Hash256 publisher, hash_from_hex(profile.consensus.publisher_key));
  data::RemoteDatasetOptions options;
  options.manifest_url = profile.directory.manifest_url;
  options.cache_directory = directory.data_path() + "/published";
  options.trust.publisher = publisher;
  options.trust.network_id = network_bytes(directory);
  options.peers = services.peers;
  options.cache_bytes = published_cache_bytes(directory);
  return data::open_remote_dataset(services.files, services.clock, services.logger, options, cancel);
}

}  // namespace

std::uint64_t published_cache_bytes(const config::DataDirectory& directory) {
  const std::uint64_t most = data::RemoteDatasetOptions{}.cache_bytes;
  const std::uint64_t disk = directory.settings().number(config::Setting::DiskLimit);
  return disk == 0 ? most : std::min(most, disk / 2);
}

std::uint32_t thread_limit(const config::DataDirectory& directory) {
  return usable_threads(directory.settings().number(config::Setting::CpuThreads));
}

std::uint32_t usable_threads(std::uint64_t wanted) {
  const auto usable = static_cast<std::uint64_t>(std::max(1, platform::cpu_info().usable_cpus));
  return static_cast<std::uint32_t>(wanted == 0 ? usable : std::min(wanted, usable));
}

Expected<data::ImportResult> import_training_text(const config::DataDirectory& directory,
                                                  TrainingServices services, const PrepareOptions& options) {
  const config::ConsensusPart& consensus = directory.profile().consensus;
  data::ImportOptions request;
  request.path = options.text;
  request.data_directory = directory.data_path();
  request.sequence = static_cast<std::uint32_t>(consensus.sequence);
  request.vocabulary = static_cast<std::uint32_t>(consensus.vocab);
  request.shard_tokens = directory.settings().number(config::Setting::ShardTokens);
  request.threads = thread_limit(directory);
  request.network_id = network_bytes(directory);
  request.cancel = options.cancel;
  if (options.on_progress) {
    request.on_progress = [&options](const data::ImportProgress& progress) {
      options.on_progress({phase_of(progress.phase), progress.done, progress.total});
    };
  }
  return data::import_text(services.files, services.clock, directory.node_key(), request);
}

Expected<std::unique_ptr<data::Dataset>> open_training_data(const config::DataDirectory& directory,
                                                            TrainingServices services,
                                                            const CancelToken& cancel) {
  data::ManifestTrust trust;
  trust.publisher = directory.node_key().public_key();
  trust.network_id = network_bytes(directory);
  auto local = data::open_local_dataset(services.files, directory.data_path(), trust);
  if (local.ok() || local.error().code != ErrorCode::NotFound) return local;
  const config::NetworkProfile& profile = directory.profile();
  if (!profile.directory.manifest_url.empty() && profile.consensus.publisher_key != "none") {
    return open_published(directory, services, cancel);
  }
  return make_error(
      ErrorCode::NotFound,
      "There is no text to train on yet. Provide a text file or a folder of text, e.g. --text book.txt.");
}

data::LoaderOptions loader_options(const config::DataDirectory& directory) {
  const config::ConsensusPart& consensus = directory.profile().consensus;
  data::LoaderOptions options;
  options.node_id = crypto::node_id(directory.node_key().public_key());
  options.sequence = static_cast<std::uint32_t>(consensus.sequence);
  options.batch_tokens = static_cast<std::uint32_t>(consensus.batch_tokens);
  options.own_batches = consensus.inner_steps > 0;
  options.steps_per_round = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, consensus.inner_steps));
  return options;
}

std::uint64_t training_data_bytes(const data::Dataset& dataset) {
  std::uint64_t largest = 0;
  for (const data::ShardEntry& shard : dataset.manifest().shards) largest = std::max(largest, shard.tokens);
  // Two shards of 4-byte tokens stay; a third is read from a file of 8-byte tokens.
  return largest * (2 * 4 + 4 + 8);
}

}  // namespace neuroshard::engine
