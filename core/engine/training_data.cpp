#include "core/engine/training_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/data/manifest_store.h"
#include "core/data/own_text.h"
#include "core/data/remote_dataset.h"
#include "core/platform/sensor/cpu.h"

namespace neuroshard::engine {
namespace {

// The compute thread has work for other nodes meanwhile.
constexpr Duration longest_shard_wait = std::chrono::milliseconds(200);

PrepareProgress::Phase phase_of(data::ImportProgress::Phase phase) {
  switch (phase) {
    case data::ImportProgress::Phase::Scanning: return PrepareProgress::Phase::Scanning;
    case data::ImportProgress::Phase::LearningMerges: return PrepareProgress::Phase::LearningMerges;
    case data::ImportProgress::Phase::Encoding: return PrepareProgress::Phase::Encoding;
    case data::ImportProgress::Phase::Finishing: break;
  }
  return PrepareProgress::Phase::Finishing;
}

bool has_rounds(const config::DataDirectory& directory) {
  return directory.profile().consensus.inner_steps > 0;
}

Bytes network_bytes(const config::DataDirectory& directory) {
  return Bytes(directory.network_id().begin(), directory.network_id().end());
}

Expected<std::unique_ptr<data::Dataset>> open_published(const config::DataDirectory& directory,
                                                        const TrainingServices& services,
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

// Links count for what they point to. The folder lies in itself.
bool lies_in(const std::string& path, const std::string& folder) {
  const auto real = [](const std::string& name) {
    std::error_code failed;
    return std::filesystem::weakly_canonical(std::filesystem::absolute(name, failed), failed);
  };
  const std::filesystem::path below = real(path).lexically_relative(real(folder));
  return !below.empty() && *below.begin() != "..";
}

class TextPreparation {
 public:
  TextPreparation(const config::DataDirectory& directory, const TrainingServices& services,
                  const PrepareOptions& options)
      : directory_(directory), services_(services), options_(options) {}

  Expected<TrainingText> run() {
    TrainingText text;
    if (has_publisher(directory_)) {
      NS_ASSIGN_OR_RETURN(text.dataset, open_published(directory_, services_, options_.cancel));
    }
    NS_RETURN_IF_ERROR(take_over_tokenizer(text.dataset.get()));
    if (options_.mode == SessionMode::Train && !options_.text.empty()) {
      NS_ASSIGN_OR_RETURN(text.imported, import());
    }
    auto own = open_own_text(directory_, services_.files);
    if (!own.ok() && own.error().code != ErrorCode::NotFound) return own.error();
    if (own.ok() && text.dataset) {
      NS_ASSIGN_OR_RETURN(text.dataset, data::join_datasets(std::move(text.dataset), std::move(*own)));
    } else if (own.ok()) {
      text.dataset = std::move(*own);
      if (has_rounds(directory_)) offer_tokenizer(*text.dataset);
    }
    if (text.dataset) return text;
    return make_error(ErrorCode::NotFound,
                      "There is no text to train on yet. Choose a file or folder of text on the Training "
                      "page of the app, or name one with --text PATH.");
  }

 private:
  // published: null without a publisher.
  Expected<void> take_over_tokenizer(const data::Dataset* published) {
    std::string path = directory_.data_path() + "/published/" + data::tokenizer_file_name;
    if (published == nullptr) {
      if (!options_.tokenizer) return {};
      path = directory_.data_path() + "/" + data::tokenizer_file_name + ".fetched";
      const auto fetched = fetch_tokenizer(*options_.tokenizer, path);
      if (!fetched.ok() && fetched.error().code == ErrorCode::Cancelled) return fetched.error();
      if (!fetched.ok()) {
        services_.logger.warning("data", "the network's tokenizer was not received; the node asks again: " +
                                             fetched.error().describe());
        return {};
      }
    } else if (!services_.files.exists(directory_.data_path() + "/" + data::manifest_file_name) &&
               options_.text.empty()) {
      return {};  // no text of its own
    }
    NS_ASSIGN_OR_RETURN(const Bytes file,
                        storage::read_file(services_.files, path, data::max_tokenizer_file_bytes));
    const data::OwnTextPlace place{directory_.data_path(), network_bytes(directory_),
                                   directory_.settings().number(config::Setting::ShardTokens)};
    NS_ASSIGN_OR_RETURN(const bool changed,
                        data::use_tokenizer(
                            services_.files, services_.clock, directory_.node_key(), place, file,
                            [this](std::uint64_t done, std::uint64_t total) {
                              report({PrepareProgress::Phase::Encoding, done, total});
                            },
                            options_.cancel));
    if (changed) services_.logger.info("data", "this node's text has the network's tokenizer now");
    if (published == nullptr) static_cast<void>(services_.files.remove_file(path).ok());
    return {};
  }

  // Errors: Unavailable, Corrupt, Cancelled, InvalidArgument (the model has no room for it), those of the disk.
  Expected<void> fetch_tokenizer(const Hash256& hash, const std::string& path) {
    if (services_.peers == nullptr) return make_error(ErrorCode::Unavailable, "this node is in no network");
    report({PrepareProgress::Phase::FetchingTokenizer, 0, 0});
    NS_RETURN_IF_ERROR(services_.files.create_directories(directory_.data_path()));
    data::PeerFile file;
    file.sha256 = hash;
    file.max_bytes = data::max_tokenizer_file_bytes;
    file.path = path;
    NS_RETURN_IF_ERROR(services_.peers->fetch(file, options_.cancel));
    NS_ASSIGN_OR_RETURN(const Bytes bytes,
                        storage::read_file(services_.files, path, data::max_tokenizer_file_bytes));
    NS_ASSIGN_OR_RETURN(const data::Tokenizer tokenizer, data::parse_tokenizer(bytes));
    const std::uint64_t most = directory_.profile().consensus.vocab;
    if (tokenizer.vocab_size() <= most) return {};
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("it has {} tokens, and the model of this network takes {}",
                                  tokenizer.vocab_size(), most));
  }

  Expected<data::ImportResult> import() {
    if (lies_in(options_.text, directory_.path()))
      return make_error(ErrorCode::InvalidArgument,
                        fmt::format("{} lies in the data directory of this node, beside its private files; "
                                    "choose text from elsewhere",
                                    options_.text));
    const config::ConsensusPart& consensus = directory_.profile().consensus;
    data::ImportOptions request;
    request.path = options_.text;
    request.data_directory = directory_.data_path();
    request.sequence = static_cast<std::uint32_t>(consensus.sequence);
    request.vocabulary = static_cast<std::uint32_t>(consensus.vocab);
    if (has_rounds(directory_)) request.least_frequency = data::shared_tokenizer_frequency;
    request.shard_tokens = directory_.settings().number(config::Setting::ShardTokens);
    request.threads = thread_limit(directory_);
    request.network_id = network_bytes(directory_);
    request.cancel = options_.cancel;
    request.on_progress = [this](const data::ImportProgress& progress) {
      report({phase_of(progress.phase), progress.done, progress.total});
    };
    return data::import_text(services_.files, services_.clock, directory_.node_key(), request);
  }

  void offer_tokenizer(const data::Dataset& own) {
    if (services_.peers == nullptr) return;
    data::PeerFile file;
    file.sha256 = own.manifest().tokenizer_hash;
    file.path = directory_.data_path() + "/" + data::tokenizer_file_name;
    const auto opened = services_.files.open_read(file.path);
    if (!opened.ok()) return;
    file.size = file.max_bytes = (*opened)->size();
    services_.peers->offer(file);
  }

  void report(const PrepareProgress& progress) const {
    if (options_.on_progress) options_.on_progress(progress);
  }

  const config::DataDirectory& directory_;
  const TrainingServices& services_;
  const PrepareOptions& options_;
};

}  // namespace

bool has_publisher(const config::DataDirectory& directory) {
  const config::NetworkProfile& profile = directory.profile();
  return !profile.directory.manifest_url.empty() && profile.consensus.publisher_key != "none";
}

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

Expected<TrainingText> prepare_training_text(const config::DataDirectory& directory,
                                             const TrainingServices& services,
                                             const PrepareOptions& options) {
  return TextPreparation(directory, services, options).run();
}

Expected<std::unique_ptr<data::Dataset>> open_own_text(const config::DataDirectory& directory,
                                                       storage::FileEnv& files) {
  data::ManifestTrust trust;
  trust.publisher = directory.node_key().public_key();
  trust.network_id = network_bytes(directory);
  if (has_publisher(directory) || has_rounds(directory))
    return data::open_own_text(files, directory.data_path(), trust);
  return data::open_local_dataset(files, directory.data_path(), trust);
}

data::LoaderOptions loader_options(const config::DataDirectory& directory) {
  const config::ConsensusPart& consensus = directory.profile().consensus;
  data::LoaderOptions options;
  options.node_id = crypto::node_id(directory.node_key().public_key());
  options.sequence = static_cast<std::uint32_t>(consensus.sequence);
  options.batch_tokens = static_cast<std::uint32_t>(consensus.batch_tokens);
  options.own_batches = consensus.inner_steps > 0;
  if (consensus.inner_steps > 0) options.longest_wait = longest_shard_wait;
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
