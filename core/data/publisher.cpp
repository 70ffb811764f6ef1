#include "core/data/publisher.h"

#include <fmt/format.h>

#include <set>

#include "core/crypto/hash.h"
#include "core/data/detail/build_journal.h"
#include "core/data/detail/corpus.h"
#include "core/data/detail/json_fields.h"
#include "core/data/detail/shard_encoder.h"
#include "core/data/manifest_store.h"
#include "core/data/merge_learning.h"
#include "core/data/shard_file.h"

namespace neuroshard::data {
namespace {

using detail::Corpus;
using detail::CorpusPosition;
using detail::Document;
using nlohmann::json;

// Field of the manifest: fingerprint of the settings, so that the same command again finds its own result.
constexpr const char* build_field = "build_settings";
constexpr std::size_t max_sources = 64;
constexpr std::size_t max_problems = 20;

class Build {
 public:
  Build(storage::FileEnv& env, const Clock& clock, const crypto::KeyPair& publisher,
        const PublishOptions& options)
      : env_(env),
        clock_(clock),
        key_(publisher),
        options_(options),
        out_(options.output_directory),
        journal_(env, options.output_directory) {}

  Expected<PublishResult> run() {
    NS_RETURN_IF_ERROR(check_settings());
    NS_RETURN_IF_ERROR(env_.create_directories(out_));
    NS_ASSIGN_OR_RETURN(const bool complete, find_complete());
    if (complete) return result_;
    NS_RETURN_IF_ERROR(scan());
    NS_RETURN_IF_ERROR(resume_or_start());
    NS_RETURN_IF_ERROR(prepare_tokenizer());
    NS_RETURN_IF_ERROR(encode());
    NS_RETURN_IF_ERROR(finish());
    return result_;
  }

 private:
  using Phase = PublishProgress::Phase;

  void report(Phase phase, std::uint64_t done, std::uint64_t total) {
    if (!options_.on_progress) return;
    options_.on_progress(
        {phase, done, total, manifest_.shards.size(), result_.train_tokens + result_.held_out_tokens});
  }

  Expected<void> check_settings() const {
    if (options_.inputs.empty() || options_.inputs.size() > max_sources) {
      return make_error(ErrorCode::InvalidArgument, fmt::format("give 1 to {} sources of text", max_sources));
    }
    if (options_.shard_tokens == 0 || options_.shard_tokens > max_shard_tokens) {
      return make_error(ErrorCode::InvalidArgument,
                        fmt::format("a shard has 1 to {} tokens", max_shard_tokens));
    }
    std::set<std::string> names;
    for (const TextInput& input : options_.inputs) {
      if (input.source.empty() || input.source.size() > max_source_name ||
          !names.insert(input.source).second) {
        return make_error(
            ErrorCode::InvalidArgument,
            fmt::format("every source requires a unique name of at most {} bytes", max_source_name));
      }
    }
    return {};
  }

  // Sources, vocabulary, shard size, network and key: what decides the result besides the text.
  std::string settings_fingerprint() const {
    json settings = {{"vocabulary", options_.vocabulary},         {"shard_tokens", options_.shard_tokens},
                     {"learning_bytes", options_.learning_bytes}, {"network_id", to_hex(options_.network_id)},
                     {"key", to_hex(key_.public_key())},          {"sources", json::array()}};
    for (const TextInput& input : options_.inputs)
      settings["sources"].push_back(to_hex(as_bytes(std::string_view(input.source))));
    return to_hex(crypto::sha256(as_bytes(std::string_view(settings.dump()))));
  }

  Expected<bool> find_complete() {
    NS_ASSIGN_OR_RETURN(const std::string plan, journal_.plan());
    const bool there = env_.exists(out_ + "/" + manifest_file_name);
    if (!there && (!plan.empty() || !env_.exists(out_ + "/" + tokenizer_file_name))) return false;
    auto manifest = load_manifest(env_, out_, {key_.public_key(), options_.network_id});
    const json extra = manifest.ok() ? json::parse(manifest->extra, nullptr, false) : json();
    if (!extra.is_object() || extra.value(build_field, "") != settings_fingerprint()) {
      if (there && manifest.ok() && !plan.empty()) return false;
      return make_error(
          ErrorCode::AlreadyExists,
          fmt::format("{} already holds a dataset of another build; choose an empty folder with --out",
                      out_));
    }
    NS_RETURN_IF_ERROR(journal_.remove());
    NS_ASSIGN_OR_RETURN(const auto tokenizer, load_tokenizer(env_, out_, *manifest));
    manifest_ = std::move(manifest).value();
    count_shards(tokenizer->vocab_size());
    result_.already_complete = true;
    return true;
  }

  void count_shards(std::uint32_t vocabulary) {
    result_.shards = manifest_.shards.size();
    result_.vocabulary = vocabulary;
    result_.train_tokens = result_.held_out_tokens = 0;
    for (const ShardEntry& shard : manifest_.shards) {
      (shard.split == Split::Train ? result_.train_tokens : result_.held_out_tokens) += shard.tokens;
    }
  }

  Expected<void> scan() {
    std::uint64_t seen_before = 0;
    detail::KnownTexts known;
    for (const TextInput& input : options_.inputs) {
      NS_ASSIGN_OR_RETURN(
          Corpus corpus,
          detail::scan_corpus(
              env_, input.path, [&](std::uint64_t files) { report(Phase::Scanning, seen_before + files, 0); },
              options_.cancel));
      const TextSummary& summary = corpus.summary;
      result_.files += summary.files;
      result_.files_skipped += summary.skipped_binary + summary.skipped_empty + summary.skipped_unreadable;
      seen_before += summary.files;
      for (const Document& document : corpus.documents) known.add(document);
      corpora_.push_back(std::move(corpus));
    }
    for (Corpus& corpus : corpora_) {
      NS_RETURN_IF_ERROR(detail::leave_out_known_beginnings(env_, known, &corpus, options_.cancel));
      result_.bytes += corpus.bytes(Split::Train) + corpus.bytes(Split::HeldOut);
    }
    return {};
  }

  // Settings, and a fingerprint of the text: a resumed build must be of the same text.
  std::string plan_of_now() const {
    crypto::Sha256 text;
    for (const Corpus& corpus : corpora_) {
      for (const Document& document : corpus.documents) {
        text.update(document.content);
        if (document.start > 0) text.update(fmt::format("+{}", document.start));
      }
      text.update(as_bytes(std::string_view("/")));
    }
    return json{{"settings", settings_fingerprint()}, {"text", to_hex(text.finish())}}.dump();
  }

  Expected<void> resume_or_start() {
    positions_.resize(2 * corpora_.size());
    const std::string plan = plan_of_now();
    NS_ASSIGN_OR_RETURN(const std::string stored, journal_.plan());
    if (stored.empty()) return journal_.start(plan);
    if (stored != plan) {
      return make_error(ErrorCode::InvalidArgument,
                        fmt::format("{0} holds an unfinished build of other text or settings; repeat that "
                                    "build, or remove {0}/{1} to start "
                                    "again",
                                    out_, detail::work_folder));
    }
    NS_ASSIGN_OR_RETURN(const std::vector<detail::FinishedShard> finished, journal_.finished());
    for (const detail::FinishedShard& shard : finished) {
      if (shard.stream >= positions_.size())
        return make_error(ErrorCode::Corrupt, "the build's journal is damaged");
      positions_[shard.stream] = shard.position;
      manifest_.shards.push_back(shard.entry);
      (shard.entry.split == Split::Train ? result_.train_tokens : result_.held_out_tokens) +=
          shard.entry.tokens;
    }
    result_.shards_kept = finished.size();
    return {};
  }

  Expected<void> prepare_tokenizer() {
    const std::string path = out_ + "/" + tokenizer_file_name;
    if (env_.exists(path)) {  // of the interrupted run
      NS_ASSIGN_OR_RETURN(const Bytes bytes, storage::read_file(env_, path, max_tokenizer_file_bytes));
      NS_ASSIGN_OR_RETURN(Tokenizer tokenizer, parse_tokenizer(bytes));
      manifest_.tokenizer_hash = crypto::sha256(bytes);
      tokenizer_ = std::make_shared<Tokenizer>(std::move(tokenizer));
      return {};
    }
    report(Phase::LearningMerges, 0, 0);
    std::vector<std::unique_ptr<detail::CorpusText>> texts;
    std::vector<TextSource*> sources;
    for (std::size_t i = 0; i < corpora_.size(); ++i) {
      texts.push_back(std::make_unique<detail::CorpusText>(env_, options_.inputs[i].source, corpora_[i],
                                                           options_.learning_bytes, options_.cancel));
      sources.push_back(texts.back().get());
    }
    NS_ASSIGN_OR_RETURN(const CountedText counted,
                        count_words(Span<TextSource* const>(sources), options_.threads, {}, options_.cancel));
    LearningOptions learning;
    learning.vocab_size = options_.vocabulary;
    NS_ASSIGN_OR_RETURN(Tokenizer learned, learn_merges(
                                               Tokenizer(), counted, learning,
                                               [this](std::uint32_t done, std::uint32_t wanted) {
                                                 report(Phase::LearningMerges, done, wanted);
                                               },
                                               options_.cancel));
    const Bytes file = learned.to_json();
    manifest_.tokenizer_hash = crypto::sha256(file);
    tokenizer_ = std::make_shared<Tokenizer>(std::move(learned));
    return storage::write_file_atomic(env_, path, file, /*world_readable=*/true);
  }

  Expected<void> encode() {
    detail::ShardEncoder encoder(env_, tokenizer_, options_.threads);
    std::uint64_t bytes_before = 0;  // of streams that are complete
    for (std::size_t stream = 0; stream < positions_.size(); ++stream) {
      const Corpus& corpus = corpora_[stream / 2];
      const Split split = stream % 2 == 0 ? Split::Train : Split::HeldOut;
      NS_RETURN_IF_ERROR(
          encode_stream(static_cast<std::uint32_t>(stream), corpus, split, bytes_before, &encoder));
      bytes_before += corpus.bytes(split);
    }
    return {};
  }

  static std::uint64_t bytes_until(const Corpus& corpus, Split split, const CorpusPosition& position) {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < position.document && i < corpus.documents.size(); ++i) {
      bytes += corpus.documents[i].end(split) - corpus.documents[i].begin(split);
    }
    if (position.document < corpus.documents.size() && position.offset > 0) {
      bytes += position.offset - corpus.documents[static_cast<std::size_t>(position.document)].begin(split);
    }
    return bytes;
  }

  Expected<void> encode_stream(std::uint32_t stream, const Corpus& corpus, Split split,
                               std::uint64_t bytes_before, detail::ShardEncoder* encoder) {
    CorpusPosition& position = positions_[stream];
    while (true) {
      const std::uint64_t begun = bytes_before + bytes_until(corpus, split, position);
      CorpusPosition next = position;
      NS_ASSIGN_OR_RETURN(
          const std::vector<std::int32_t> tokens,
          encoder->next(corpus, split, options_.shard_tokens, &next, options_.cancel,
                        [&](std::uint64_t bytes) { report(Phase::Encoding, begun + bytes, result_.bytes); }));
      if (tokens.empty()) return {};
      const auto id = static_cast<ShardId>(manifest_.shards.size());
      NS_ASSIGN_OR_RETURN(ShardEntry entry,
                          write_shard(env_, out_, id, tokens, options_.inputs[stream / 2].source, split));
      NS_RETURN_IF_ERROR(journal_.append({entry, stream, next}));
      position = next;
      manifest_.shards.push_back(std::move(entry));
      (split == Split::Train ? result_.train_tokens : result_.held_out_tokens) += tokens.size();
    }
  }

  Expected<void> finish() {
    report(Phase::Finishing, 0, 0);
    manifest_.network_id = options_.network_id;
    manifest_.created_ms = manifest_.updated_ms = to_unix_ms(clock_.wall_now());
    manifest_.extra = json{{build_field, settings_fingerprint()}}.dump();
    NS_RETURN_IF_ERROR(store_manifest(env_, out_, manifest_, key_));
    NS_RETURN_IF_ERROR(journal_.remove());
    count_shards(tokenizer_->vocab_size());
    return {};
  }

  storage::FileEnv& env_;
  const Clock& clock_;
  const crypto::KeyPair& key_;
  const PublishOptions& options_;
  const std::string out_;
  detail::BuildJournal journal_;
  PublishResult result_;
  Manifest manifest_;
  std::vector<Corpus> corpora_;            // one a source
  std::vector<CorpusPosition> positions_;  // one a stream
  std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace

std::string_view to_string(PublishProgress::Phase phase) {
  switch (phase) {
    case PublishProgress::Phase::Scanning: return "scanning";
    case PublishProgress::Phase::LearningMerges: return "learning merges";
    case PublishProgress::Phase::Encoding: return "encoding";
    case PublishProgress::Phase::Finishing: return "finishing";
  }
  return "finishing";
}

Expected<PublishResult> build_dataset(storage::FileEnv& env, const Clock& clock,
                                      const crypto::KeyPair& publisher, const PublishOptions& options) {
  return Build(env, clock, publisher, options).run();
}

Expected<VerifyReport> verify_shards(Dataset& dataset, const CancelToken& cancel,
                                     const std::function<void(std::uint64_t, std::uint64_t)>& on_progress) {
  VerifyReport report;
  const std::vector<ShardEntry>& all = dataset.manifest().shards;
  for (const ShardEntry& entry : all) {
    if (cancel.cancelled()) return make_error(ErrorCode::Cancelled, "the verification was stopped");
    const auto shard = dataset.load(entry.id, cancel);
    ++report.shards;
    if (shard.ok()) {
      report.tokens += entry.tokens;
      report.bytes += entry.size;
    } else if (shard.error().code == ErrorCode::Cancelled) {
      return shard.error();
    } else {
      ++report.bad_shards;
      if (report.problems.size() < max_problems) report.problems.push_back(shard.error().describe());
    }
    if (on_progress) on_progress(report.shards, all.size());
  }
  return report;
}

}  // namespace neuroshard::data
