#include "core/data/text_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/crypto/hash.h"
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

// Field of the local manifest: content hashes of the texts whose shards it lists. In the manifest, so that
// text and shards are recorded in one instant.
constexpr const char* imported_field = "imported_texts";
// Their lengths by the hash of their first bytes: finds the text that a grown file continues.
constexpr const char* lengths_field = "imported_lengths";
// More text than this teaches a vocabulary nothing new and costs time.
constexpr std::uint64_t max_learning_bytes = 256u << 20;

detail::KnownTexts imported_texts(const Manifest& manifest) {
  detail::KnownTexts result;
  const json extra = json::parse(manifest.extra, nullptr, false);
  if (!extra.is_object()) return result;
  for (const json& item : extra.value(imported_field, json::array())) {
    if (item.is_string()) result.contents.insert(item.get<std::string>());
  }
  const json lengths = extra.value(lengths_field, json::object());
  if (!lengths.is_object()) return result;
  for (const auto& [head, list] : lengths.items()) {
    for (const json& length : list) {
      if (length.is_number_unsigned()) result.lengths[head].insert(length.get<std::uint64_t>());
    }
  }
  return result;
}

void set_imported_texts(Manifest* manifest, const detail::KnownTexts& known) {
  json extra = json::parse(manifest->extra, nullptr, false);
  if (!extra.is_object()) extra = json::object();
  extra[imported_field] = known.contents;
  extra[lengths_field] = known.lengths;
  manifest->extra = extra.dump();
}

class Import {
 public:
  Import(storage::FileEnv& env, const Clock& clock, const crypto::KeyPair& node_key,
         const ImportOptions& options)
      : env_(env), clock_(clock), key_(node_key), options_(options) {}

  Expected<ImportResult> run() {
    report(ImportProgress::Phase::Scanning, 0, 0);
    NS_ASSIGN_OR_RETURN(
        Corpus corpus, detail::scan_corpus(
                           env_, options_.path,
                           [this](std::uint64_t files) { report(ImportProgress::Phase::Scanning, files, 0); },
                           options_.cancel));
    NS_RETURN_IF_ERROR(env_.create_directories(options_.data_directory));
    NS_RETURN_IF_ERROR(open_manifest());
    NS_RETURN_IF_ERROR(drop_known(&corpus));
    NS_RETURN_IF_ERROR(check_list(corpus));
    NS_RETURN_IF_ERROR(prepare_tokenizer(corpus));
    if (!corpus.documents.empty()) NS_RETURN_IF_ERROR(write_shards(&corpus));
    result_.summary = std::move(corpus.summary);
    return result_;
  }

 private:
  void report(ImportProgress::Phase phase, std::uint64_t done, std::uint64_t total) const {
    if (options_.on_progress) options_.on_progress({phase, done, total});
  }

  Expected<void> open_manifest() {
    auto loaded = load_manifest(env_, options_.data_directory, {key_.public_key(), options_.network_id});
    if (loaded.ok()) {
      manifest_ = std::move(loaded).value();
      exists_ = true;
    } else if (loaded.error().code != ErrorCode::NotFound) {
      return std::move(loaded).error().with_context("opening the local data");
    } else {
      manifest_.network_id = options_.network_id;
      manifest_.created_ms = to_unix_ms(clock_.wall_now());
    }
    known_ = imported_texts(manifest_);
    return {};
  }

  Expected<void> drop_known(Corpus* corpus) {
    auto& documents = corpus->documents;
    const auto known = [this](const Document& d) { return known_.contents.count(to_hex(d.content)) != 0; };
    const auto end = std::remove_if(documents.begin(), documents.end(), known);
    result_.files_known = static_cast<std::uint64_t>(documents.end() - end);
    documents.erase(end, documents.end());
    detail::KnownTexts beginnings = known_;
    for (const Document& document : documents) beginnings.add(document);
    return detail::leave_out_known_beginnings(env_, beginnings, corpus, options_.cancel);
  }

  // The list of texts with these ones: encoding many files takes hours, which would be in vain.
  Expected<void> check_list(const Corpus& corpus) const {
    if (corpus.documents.empty()) return {};
    detail::KnownTexts known = known_;
    for (const Document& document : corpus.documents) known.add(document);
    Manifest after = manifest_;
    set_imported_texts(&after, known);
    return check_manifest_size(encode_manifest(after).size(), options_.manifest_bytes);
  }

  // The directory's tokenizer (the network's, or an earlier import's), else one learned from this text.
  Expected<void> prepare_tokenizer(const Corpus& corpus) {
    const std::string path = options_.data_directory + "/" + tokenizer_file_name;
    if (exists_) {
      NS_ASSIGN_OR_RETURN(tokenizer_, load_tokenizer(env_, options_.data_directory, manifest_));
    } else if (env_.exists(path)) {
      NS_ASSIGN_OR_RETURN(const Bytes bytes, storage::read_file(env_, path, max_tokenizer_file_bytes));
      auto parsed = parse_tokenizer(bytes);
      if (!parsed.ok()) return std::move(parsed).error().with_context(path);
      tokenizer_ = std::make_shared<Tokenizer>(std::move(parsed).value());
      manifest_.tokenizer_hash = crypto::sha256(bytes);
    } else {
      NS_RETURN_IF_ERROR(learn_tokenizer(corpus));
    }
    result_.vocabulary = tokenizer_->vocab_size();
    return {};
  }

  Expected<void> learn_tokenizer(const Corpus& corpus) {
    report(ImportProgress::Phase::LearningMerges, 0, 0);
    detail::CorpusText text(env_, own_source, corpus, max_learning_bytes, options_.cancel);
    TextSource* const sources[] = {&text};
    NS_ASSIGN_OR_RETURN(const CountedText counted,
                        count_words(Span<TextSource* const>(sources), options_.threads, {}, options_.cancel));
    LearningOptions learning;
    learning.vocab_size = options_.vocabulary;
    learning.min_frequency = options_.least_frequency;
    NS_ASSIGN_OR_RETURN(Tokenizer learned, learn_merges(
                                               Tokenizer(), counted, learning,
                                               [this](std::uint32_t done, std::uint32_t wanted) {
                                                 report(ImportProgress::Phase::LearningMerges, done, wanted);
                                               },
                                               options_.cancel));
    learned_file_ = learned.to_json();
    tokenizer_ = std::make_shared<Tokenizer>(std::move(learned));
    manifest_.tokenizer_hash = crypto::sha256(learned_file_);
    result_.tokenizer_learned = true;
    return {};
  }

  Expected<void> write_shards(Corpus* corpus) {
    const std::uint64_t total = corpus->bytes(Split::Train) + corpus->bytes(Split::HeldOut);
    next_id_ = manifest_.shards.empty() ? 0 : manifest_.shards.back().id + 1;
    std::set<std::uint64_t> lost;
    detail::ShardEncoder encoder(env_, tokenizer_, options_.threads, &lost);
    NS_ASSIGN_OR_RETURN(result_.train_tokens_added, encode_split(*corpus, Split::Train, 0, total, &encoder));
    corpus->leave_out(std::exchange(lost, {}));
    if (result_.train_tokens_added <= options_.sequence) {
      const std::uint64_t tokens = result_.train_tokens_added;
      result_.train_tokens_added = 0;
      return too_small(*corpus, tokens);
    }
    NS_ASSIGN_OR_RETURN(result_.held_out_tokens_added,
                        encode_split(*corpus, Split::HeldOut, corpus->bytes(Split::Train), total, &encoder));
    corpus->leave_out(lost);
    return finish(*corpus);
  }

  // Small additions to data that is there already wait until more comes: they are not recorded, so the next
  // import takes them along.
  Expected<void> too_small(const Corpus& corpus, std::uint64_t tokens) {
    if (!manifest_.shards.empty()) return {};
    const std::uint64_t bytes = corpus.bytes(Split::Train) + corpus.bytes(Split::HeldOut);
    const std::uint64_t needed = std::uint64_t{options_.sequence} + 1;
    // Byte for byte is the least that any tokenizer can do with new text; a tenth is held out.
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format(
            "the text is too small: its {} bytes give {} tokens to train on, and one sequence requires "
            "{}; about {} bytes are enough",
            bytes, tokens, needed, std::max(bytes + 1, needed * 6)));
  }

  // Returns the tokens written.
  Expected<std::uint64_t> encode_split(const Corpus& corpus, Split split, std::uint64_t done,
                                       std::uint64_t total, detail::ShardEncoder* encoder) {
    CorpusPosition position;
    std::uint64_t tokens_written = 0;
    std::uint64_t bytes_before = done;
    while (true) {
      std::uint64_t bytes_here = 0;
      NS_ASSIGN_OR_RETURN(const std::vector<std::int32_t> tokens,
                          encoder->next(corpus, split, options_.shard_tokens, &position, options_.cancel,
                                        [&](std::uint64_t bytes) {
                                          bytes_here = bytes;
                                          report(ImportProgress::Phase::Encoding, bytes_before + bytes,
                                                 total);
                                        }));
      if (tokens.empty()) return tokens_written;
      bytes_before += bytes_here;
      NS_ASSIGN_OR_RETURN(ShardEntry entry,
                          write_shard(env_, options_.data_directory, next_id_, tokens, own_source, split));
      ++next_id_;
      tokens_written += tokens.size();
      added_.push_back(std::move(entry));
    }
  }

  Expected<void> finish(const Corpus& corpus) {
    report(ImportProgress::Phase::Finishing, 0, 0);
    if (!learned_file_.empty()) {
      NS_RETURN_IF_ERROR(storage::write_file_atomic(env_, options_.data_directory + "/" + tokenizer_file_name,
                                                    learned_file_, true));
    }
    for (const Document& document : corpus.documents) known_.add(document);
    manifest_.shards.insert(manifest_.shards.end(), added_.begin(), added_.end());
    manifest_.updated_ms = to_unix_ms(clock_.wall_now());
    set_imported_texts(&manifest_, known_);
    NS_RETURN_IF_ERROR(store_manifest(env_, options_.data_directory, manifest_, key_));
    result_.files_added = corpus.documents.size();
    result_.bytes_added = corpus.bytes(Split::Train) + corpus.bytes(Split::HeldOut);
    result_.shards_added = added_.size();
    return {};
  }

  storage::FileEnv& env_;
  const Clock& clock_;
  const crypto::KeyPair& key_;
  const ImportOptions& options_;
  ImportResult result_;
  Manifest manifest_;
  bool exists_ = false;
  detail::KnownTexts known_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  Bytes learned_file_;  // empty: the tokenizer's file is there already
  ShardId next_id_ = 0;
  std::vector<ShardEntry> added_;
};

}  // namespace

std::string_view to_string(ImportProgress::Phase phase) {
  switch (phase) {
    case ImportProgress::Phase::Scanning: return "scanning";
    case ImportProgress::Phase::LearningMerges: return "learning merges";
    case ImportProgress::Phase::Encoding: return "encoding";
    case ImportProgress::Phase::Finishing: return "finishing";
  }
  return "finishing";
}

Expected<ImportResult> import_text(storage::FileEnv& env, const Clock& clock, const crypto::KeyPair& node_key,
                                   const ImportOptions& options) {
  if (options.sequence == 0 || options.shard_tokens == 0 || options.shard_tokens > max_shard_tokens) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("a shard has 1 to {} tokens and a sequence at least 1", max_shard_tokens));
  }
  const ManifestTrust trust{node_key.public_key(), options.network_id};
  remove_unlisted_shards(env, options.data_directory, trust);
  auto result = Import(env, clock, node_key, options).run();
  if (!result.ok() || !result->changed()) remove_unlisted_shards(env, options.data_directory, trust);
  return result;
}

}  // namespace neuroshard::data
