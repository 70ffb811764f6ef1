#include "app/node/commands/audit_sources.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/crypto/hash.h"
#include "core/data/remote_dataset.h"
#include "core/data/shard_cache.h"
#include "core/data/shard_file.h"
#include "core/runtime/batch_lists.h"
#include "core/runtime/kept_port.h"

namespace neuroshard::app {
namespace {

constexpr std::size_t least_id_characters = 8;
constexpr const char* audit_folder = "/audit";  // of the data directory
constexpr Duration fetch_patience = std::chrono::seconds(15);

// The running node knows the others; without it, those that the profile names are asked.
runtime::GuestOptions audit_guest(const ChainPlace& place, const GuestFlags& flags, CommandContext& context) {
  const std::string profile = place.directory + "/profile.json";
  runtime::GuestOptions guest = guest_options(flags, profile, context);
  guest.profile = profile;
  if (!guest.at.empty()) return guest;
  const config::DirectoryPart& known = place.profile.directory;
  const std::uint64_t port =
      runtime::last_port(context.files, place.directory).value_or(static_cast<std::uint16_t>(known.p2p_port));
  if (port != 0) guest.at.push_back(fmt::format("127.0.0.1:{}", port));
  guest.at.insert(guest.at.end(), known.trackers.begin(), known.trackers.end());
  guest.at.insert(guest.at.end(), known.bootstrap.begin(), known.bootstrap.end());
  return guest;
}

bool is_named(const AuditedContribution& one, const std::string& node) {
  if (node == std::to_string(one.member)) return true;
  return node.size() >= least_id_characters && to_hex(one.id).starts_with(node);
}

}  // namespace

Expected<std::vector<const AuditedContribution*>> AuditChain::chosen(
    const std::string& node, const std::optional<std::uint64_t>& round,
    const std::optional<Hash256>& own) const {
  std::vector<const AuditedContribution*> found;
  for (const AuditedContribution& one : contributions) {
    if (round && one.claim.round != *round) continue;
    if (node.empty() ? one.id == own : !is_named(one, node)) continue;
    found.push_back(&one);
  }
  if (found.empty())
    return make_error(
        ErrorCode::NotFound,
        "the chain on this disk has no such contribution that names its batches; the members are in "
        "\"neuroshardd chain show\"");
  return found;
}

Expected<AuditChain> read_audit_chain(const ChainPlace& place, CommandContext& context) {
  AuditChain found;
  ChainReplay replay(place, ChainReplay::Checks::NoSignatures, context);
  const auto seen = [&](const chain::CertifiedBlock& certified) {
    const chain::Block& block = *certified.block;
    const chain::ChainTip& tip = replay.history()->tip();
    if (tip.opening == block.hash) found.beacons[tip.registry->round() + 1] = tip.registry->beacon();
    if (!block.body.close) return true;
    for (const chain::ContributionEntry& entry : block.body.close->contributions) {
      const auto& members = tip.registry->members();
      const auto member = std::find_if(members.begin(), members.end(),
                                       [&](const auto& record) { return record.number == entry.member; });
      if (entry.batches == Hash256{} || member == members.end()) continue;
      found.contributions.push_back(
          {entry.member, member->id,
           data::ListClaim{entry.batches, place.rules.network, member->key, block.opening,
                           block.body.close->round,
                           static_cast<std::uint32_t>(place.profile.consensus.sequence),
                           static_cast<std::uint32_t>(place.profile.consensus.batch_tokens)}});
    }
    return true;
  };
  if (auto ran = replay.run(seen); !ran.ok())
    return std::move(ran).error().with_context(fmt::format("block {}", replay.next_height()));
  return found;
}

AuditFiles::AuditFiles(const ChainPlace& place, const GuestFlags& guest, CommandContext& context)
    : place_(place),
      context_(context),
      guest_(audit_guest(place, guest, context)),
      observer_{guest_notes(context), {}, {}, {}},
      services_(context.services()),
      session_{guest_, services_, context.stop, observer_} {}

Expected<std::unique_ptr<AuditFiles>> AuditFiles::open(const ChainPlace& place, const GuestFlags& guest,
                                                       const std::vector<std::string>& lists,
                                                       CommandContext& context) {
  std::unique_ptr<AuditFiles> files(new AuditFiles(place, guest, context));
  for (const std::string& path : lists) NS_RETURN_IF_ERROR(files->read_given(path));
  for (const char* folder : {runtime::batch_lists_folder, audit_folder})
    files->read_kept(place.directory + folder);
  NS_RETURN_IF_ERROR(files->open_text());
  return files;
}

Expected<void> AuditFiles::read_given(const std::string& path) {
  std::vector<std::string> paths;
  if (const auto entries = context_.files.list(path); entries.ok()) {
    for (const storage::DirectoryEntry& entry : *entries)
      if (!entry.is_directory) paths.push_back(path + "/" + entry.name);
  } else {
    paths.push_back(path);
  }
  for (const std::string& file : paths) {
    NS_ASSIGN_OR_RETURN(Bytes bytes, storage::read_file(context_.files, file, data::max_batch_list_bytes));
    const auto list = data::decode_batch_list(bytes);
    if (!list.ok()) return Error(list.error()).with_context(file);
    given_[{list->round, list->node}] = std::move(bytes);
  }
  return {};
}

// The names end with the hashes. A damaged file is removed, and fetched again if it was another node's.
void AuditFiles::read_kept(const std::string& folder) {
  const auto entries = context_.files.list(folder);
  if (!entries.ok()) return;
  for (const storage::DirectoryEntry& entry : *entries) {
    const std::string path = folder + "/" + entry.name;
    const auto named = hash_from_hex(entry.name.substr(entry.name.rfind('-') + 1));
    if (entry.is_directory || !named.ok()) continue;
    auto bytes = storage::read_file(context_.files, path, data::max_batch_list_bytes);
    if (bytes.ok() && crypto::sha256(*bytes) == *named)
      kept_.emplace(*named, std::move(*bytes));
    else if (entry.name.size() == 2 * named->size())
      static_cast<void>(context_.files.remove_file(path));
  }
}

Expected<void> AuditFiles::open_text() {
  const std::string folder = place_.directory + "/data/published";
  const auto publisher = hash_from_hex(place_.profile.consensus.publisher_key);
  if (!publisher.ok() || !context_.files.exists(folder)) return {};
  data::ManifestTrust trust;
  trust.publisher = *publisher;
  trust.network_id = Bytes(place_.rules.network.begin(), place_.rules.network.end());
  NS_ASSIGN_OR_RETURN(text_, data::open_cached_dataset(context_.files, folder, trust));
  return {};
}

bool AuditFiles::may_get(const data::ListClaim& claim, std::uint64_t newest) const {
  return claim.round + runtime::kept_batch_lists > newest || kept_.count(claim.hash) > 0 ||
         given_.count({claim.round, claim.node}) > 0;
}

// By the lists that it keeps: they are signed with its key.
std::optional<Hash256> AuditFiles::own() const {
  const std::string folder = place_.directory + runtime::batch_lists_folder;
  const auto entries = context_.files.list(folder);
  if (!entries.ok()) return std::nullopt;
  for (const storage::DirectoryEntry& entry : *entries) {
    const auto bytes =
        storage::read_file(context_.files, folder + "/" + entry.name, data::max_batch_list_bytes);
    if (!bytes.ok()) continue;
    if (const auto list = data::decode_batch_list(*bytes); list.ok()) return crypto::node_id(list->node);
  }
  return std::nullopt;
}

Expected<runtime::GuestVisit*> AuditFiles::visit() {
  if (no_visit_) return *no_visit_;
  if (!visit_) {
    auto begun = runtime::GuestVisit::begin(session_);
    if (!begun.ok()) {
      no_visit_ = begun.error();  // each attempt takes seconds
      return begun.error();
    }
    visit_ = std::move(*begun);
  }
  return visit_.get();
}

Expected<void> AuditFiles::fetch(const exchange::FetchRequest& request, const std::string& table_path) {
  NS_RETURN_IF_ERROR(context_.files.create_directories(place_.directory + audit_folder));
  NS_ASSIGN_OR_RETURN(runtime::GuestVisit* const guest, visit());
  guest->set_path(table_path);
  exchange::FetchOptions options;
  options.patience = fetch_patience;
  options.wait_for_holders = !table_path.empty();  // the table names further holders later
  return guest->fetch(request, request.path, options);
}

Expected<data::BatchList> AuditFiles::list(const data::ListClaim& claim) {
  const auto given = given_.find({claim.round, claim.node});
  if (given != given_.end()) return data::open_batch_list(given->second, claim);
  const auto held = kept_.find(claim.hash);
  if (held != kept_.end()) return data::open_batch_list(held->second, claim);
  exchange::FetchRequest request;
  request.hash = claim.hash;
  request.max_bytes = data::max_batch_list_bytes;
  request.path = place_.directory + audit_folder + "/" + to_hex(claim.hash);
  NS_RETURN_IF_ERROR(fetch(request, {}));
  NS_ASSIGN_OR_RETURN(Bytes bytes,
                      storage::read_file(context_.files, request.path, data::max_batch_list_bytes));
  return data::open_batch_list(kept_.emplace(claim.hash, std::move(bytes)).first->second, claim);
}

data::AuditSources AuditFiles::sources(const AuditChain& chain) {
  return {[&chain](std::uint64_t round) -> std::optional<Hash256> {
            const auto at = chain.beacons.find(round);
            if (at == chain.beacons.end()) return std::nullopt;
            return at->second;
          },
          [this](data::ShardId shard) { return load(shard); }, text_ ? text_->manifest() : no_text_};
}

Expected<std::shared_ptr<const data::ShardTokens>> AuditFiles::load(data::ShardId shard) {
  if (!text_) return make_error(ErrorCode::NotFound, "this node has no published text");
  auto cached = text_->load(shard, context_.stop);
  if (cached.ok() || cached.error().code != ErrorCode::NotFound) return cached;
  const data::ShardEntry* entry = text_->manifest().find(shard);
  if (entry == nullptr) return cached;
  if (const auto missing = missing_.find(shard); missing != missing_.end()) return missing->second;
  exchange::FetchRequest request;
  request.hash = entry->sha256;
  request.size = request.max_bytes = entry->size;
  request.path = data::cached_shard_path(place_.directory + audit_folder, entry->sha256);
  if (auto fetched = fetch(request, fmt::format("/shards/{}", shard)); !fetched.ok()) {
    if (fetched.error().code == ErrorCode::Cancelled) return fetched.error();
    return missing_[shard] = make_error(ErrorCode::NotFound,
                                        fmt::format("shard {}: {}", shard, fetched.error().describe()));
  }
  auto tokens = std::make_shared<data::ShardTokens>();
  tokens->entry = *entry;
  NS_ASSIGN_OR_RETURN(tokens->tokens, data::read_shard(context_.files, request.path, *entry,
                                                       text_->tokenizer().vocab_size()));
  return std::shared_ptr<const data::ShardTokens>(std::move(tokens));
}

}  // namespace neuroshard::app
