#include "core/data/own_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/crypto/hash.h"
#include "core/data/encoder.h"
#include "core/data/manifest_store.h"
#include "core/data/pretokenizer.h"
#include "core/data/shard_file.h"

namespace neuroshard::data {
namespace {

// Text is encoded in pieces that end between two words; without such a place, a piece grows up to this size.
constexpr std::size_t piece_bytes = 256u << 10;
constexpr std::size_t most_piece_bytes = 16u << 20;

// Encodes the shards of a manifest again, split by split, into new shards beside them.
class Reencoding {
 public:
  Reencoding(storage::FileEnv& env, const OwnTextPlace& place, const Manifest& manifest,
             const Tokenizer& before, std::shared_ptr<const Tokenizer> after,
             const std::function<void(std::uint64_t, std::uint64_t)>& on_progress, const CancelToken& cancel)
      : env_(env),
        place_(place),
        manifest_(manifest),
        before_(before),
        encoder_(std::move(after)),
        on_progress_(on_progress),
        cancel_(cancel),
        next_id_(manifest.shards.empty() ? 0 : manifest.shards.back().id + 1) {}

  Expected<std::vector<ShardEntry>> run() {
    for (const Split split : {Split::Train, Split::HeldOut}) {
      for (const ShardEntry& shard : manifest_.of(split)) NS_RETURN_IF_ERROR(read(shard));
      NS_RETURN_IF_ERROR(encode(text_.size()));
      while (!tokens_.empty()) NS_RETURN_IF_ERROR(write(split));
    }
    return std::move(written_);
  }

 private:
  Expected<void> read(const ShardEntry& shard) {
    if (cancel_.cancelled()) return make_error(ErrorCode::Cancelled, "encoding was stopped");
    NS_ASSIGN_OR_RETURN(const std::vector<std::int32_t> tokens,
                        read_shard(env_, place_.directory + "/" + shard.url, shard, before_.vocab_size()));
    for (const std::int32_t token : tokens) {
      const auto id = static_cast<TokenId>(token);
      if (id == eos_token) {  // the end of a text
        NS_RETURN_IF_ERROR(encode(text_.size()));
        tokens_.push_back(eos_token);
        continue;
      }
      const ByteSpan bytes = before_.token_bytes(id);
      text_.insert(text_.end(), bytes.begin(), bytes.end());
      if (text_.size() >= wanted_) NS_RETURN_IF_ERROR(encode_whole_words());
    }
    read_ += tokens.size();
    if (on_progress_) on_progress_(read_, manifest_.total_tokens());
    while (tokens_.size() >= place_.shard_tokens) NS_RETURN_IF_ERROR(write(shard.split));
    return {};
  }

  Expected<void> encode_whole_words() {
    const std::size_t cut = find_word_cut(text_, text_.size() - 1);
    if (cut == 0 && text_.size() < most_piece_bytes) {
      wanted_ = 2 * text_.size();
      return {};
    }
    return encode(cut == 0 ? text_.size() : cut);
  }

  Expected<void> encode(std::size_t bytes) {
    if (cancel_.cancelled()) return make_error(ErrorCode::Cancelled, "encoding was stopped");
    encoder_.encode(ByteSpan(text_).first(bytes), &tokens_);
    text_.erase(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(bytes));
    wanted_ = piece_bytes;
    return {};
  }

  Expected<void> write(Split split) {
    const auto count =
        static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(tokens_.size(), place_.shard_tokens));
    const std::vector<std::int32_t> part(tokens_.begin(), tokens_.begin() + count);
    tokens_.erase(tokens_.begin(), tokens_.begin() + count);
    NS_ASSIGN_OR_RETURN(ShardEntry entry, write_shard(env_, place_.directory, next_id_, part,
                                                      manifest_.shards.front().source, split));
    ++next_id_;
    written_.push_back(std::move(entry));
    return {};
  }

  storage::FileEnv& env_;
  const OwnTextPlace& place_;
  const Manifest& manifest_;
  const Tokenizer& before_;
  Encoder encoder_;
  const std::function<void(std::uint64_t, std::uint64_t)>& on_progress_;
  const CancelToken& cancel_;
  ShardId next_id_ = 0;
  Bytes text_;
  std::size_t wanted_ = piece_bytes;
  std::vector<TokenId> tokens_;
  std::uint64_t read_ = 0;
  std::vector<ShardEntry> written_;
};

class JoinedDataset final : public Dataset {
 public:
  JoinedDataset(std::unique_ptr<Dataset> published, std::unique_ptr<Dataset> own)
      : published_(std::move(published)), own_(std::move(own)), manifest_(published_->manifest()) {
    const std::vector<ShardEntry>& own_shards = own_->manifest().shards;
    manifest_.shards.insert(manifest_.shards.end(), own_shards.begin(), own_shards.end());
    train_ = manifest_.of(Split::Train);
    held_out_ = manifest_.of(Split::HeldOut);
  }

  const Manifest& manifest() const override { return manifest_; }
  const Tokenizer& tokenizer() const override { return published_->tokenizer(); }
  const std::vector<ShardEntry>& shards(Split split) const override {
    return split == Split::Train ? train_ : held_out_;
  }
  Expected<std::shared_ptr<const ShardTokens>> load(ShardId id, const CancelToken& cancel) override {
    return source_of(id).load(id, cancel);
  }
  Expected<void> prefetch(ShardId id, const CancelToken& cancel) override {
    return source_of(id).prefetch(id, cancel);
  }
  bool is_here(ShardId id) const override { return source_of(id).is_here(id); }
  Expected<void> limit_cache(std::uint64_t bytes) override { return published_->limit_cache(bytes); }
  std::string trouble() const override { return published_->trouble(); }

 private:
  Dataset& source_of(ShardId id) const { return is_own_shard(id) ? *own_ : *published_; }

  const std::unique_ptr<Dataset> published_, own_;
  Manifest manifest_;
  std::vector<ShardEntry> train_, held_out_;
};

std::string tokenizer_path(const OwnTextPlace& place) {
  return place.directory + "/" + tokenizer_file_name;
}

// A new manifest that names the new tokenizer may be followed by a kill: load_tokenizer() finds it there.
Expected<void> put_in_place(storage::FileEnv& env, const OwnTextPlace& place) {
  NS_RETURN_IF_ERROR(env.rename(pending_tokenizer_path(place.directory), tokenizer_path(place)));
  return env.sync_directory(place.directory);
}

// An earlier call may have been killed between the manifest and the tokenizer.
Expected<void> finish_earlier(storage::FileEnv& env, const OwnTextPlace& place, const Manifest& manifest) {
  const auto bytes = storage::read_file(env, tokenizer_path(place), max_tokenizer_file_bytes);
  if (bytes.ok() && crypto::sha256(*bytes) == manifest.tokenizer_hash) return {};
  return put_in_place(env, place);
}

// The work of use_tokenizer(), which also removes shards that no manifest lists.
Expected<bool> encode_again(storage::FileEnv& env, const Clock& clock, const crypto::KeyPair& node_key,
                            const OwnTextPlace& place, ByteSpan tokenizer_file,
                            const std::function<void(std::uint64_t, std::uint64_t)>& on_progress,
                            const CancelToken& cancel) {
  NS_ASSIGN_OR_RETURN(Tokenizer parsed, parse_tokenizer(tokenizer_file));
  const Hash256 hash = crypto::sha256(tokenizer_file);
  NS_RETURN_IF_ERROR(env.create_directories(place.directory));
  auto loaded = load_manifest(env, place.directory, {node_key.public_key(), place.network_id});
  if (!loaded.ok() && loaded.error().code != ErrorCode::NotFound)
    return std::move(loaded).error().with_context("opening the local data");
  if (!loaded.ok()) {  // no text yet
    if (env.exists(tokenizer_path(place))) {
      NS_ASSIGN_OR_RETURN(const Bytes here,
                          storage::read_file(env, tokenizer_path(place), max_tokenizer_file_bytes));
      if (crypto::sha256(here) == hash) return false;
    }
    NS_RETURN_IF_ERROR(storage::write_file_atomic(env, tokenizer_path(place), tokenizer_file, true));
    return true;
  }
  const Manifest before = std::move(*loaded);
  NS_ASSIGN_OR_RETURN(const auto tokenizer, load_tokenizer(env, place.directory, before));
  NS_RETURN_IF_ERROR(finish_earlier(env, place, before));
  if (before.tokenizer_hash == hash) return false;

  NS_RETURN_IF_ERROR(
      storage::write_file_atomic(env, pending_tokenizer_path(place.directory), tokenizer_file, true));
  Manifest after = before;
  NS_ASSIGN_OR_RETURN(
      after.shards, Reencoding(env, place, before, *tokenizer, std::make_shared<Tokenizer>(std::move(parsed)),
                               on_progress, cancel)
                        .run());
  after.tokenizer_hash = hash;
  after.updated_ms = to_unix_ms(clock.wall_now());
  NS_RETURN_IF_ERROR(store_manifest(env, place.directory, after, node_key));
  NS_RETURN_IF_ERROR(put_in_place(env, place));
  return true;
}

}  // namespace

Expected<bool> use_tokenizer(storage::FileEnv& env, const Clock& clock, const crypto::KeyPair& node_key,
                             const OwnTextPlace& place, ByteSpan tokenizer_file,
                             const std::function<void(std::uint64_t, std::uint64_t)>& on_progress,
                             const CancelToken& cancel) {
  const ManifestTrust trust{node_key.public_key(), place.network_id};
  remove_unlisted_shards(env, place.directory, trust);
  auto changed = encode_again(env, clock, node_key, place, tokenizer_file, on_progress, cancel);
  if (!changed.ok() || *changed) remove_unlisted_shards(env, place.directory, trust);
  return changed;
}

Expected<std::unique_ptr<Dataset>> join_datasets(std::unique_ptr<Dataset> published,
                                                 std::unique_ptr<Dataset> own) {
  if (published->manifest().tokenizer_hash != own->manifest().tokenizer_hash)
    return make_error(ErrorCode::InvalidArgument,
                      "the published text and the node's own have two tokenizers");
  const std::vector<ShardEntry>& shards = published->manifest().shards;
  if (!shards.empty() && is_own_shard(shards.back().id))
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("the publisher's manifest lists shard {}; its ids end before {}",
                                  shards.back().id, first_own_shard));
  return std::unique_ptr<Dataset>(std::make_unique<JoinedDataset>(std::move(published), std::move(own)));
}

}  // namespace neuroshard::data
