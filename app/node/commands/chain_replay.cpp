#include "app/node/commands/chain_replay.h"

#include <fmt/format.h>

#include "app/node/commands/open_directory.h"
#include "core/base/byte_reader.h"
#include "core/engine/block_reader.h"
#include "core/runtime/chain_settings.h"

namespace neuroshard::app {
namespace {

constexpr std::size_t longest_snapshot = 1u << 30;

}  // namespace

Expected<ChainPlace> chain_place(CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const std::string directory, data_directory_path(context));
  const std::string profile_path = directory + "/profile.json";
  ChainPlace place{directory, directory + "/chain", {}, {}};
  for (const std::string& path : {profile_path, place.log()}) {
    const auto file = context.files.open_read(path);
    if (file.ok()) continue;
    if (file.error().code != ErrorCode::NotFound) return file.error();
    return make_error(ErrorCode::NotFound,
                      fmt::format("{} has no chain: a node has one once it has joined a network", directory));
  }
  NS_ASSIGN_OR_RETURN(place.profile, config::load_network_profile(context.files, profile_path));
  place.rules = runtime::chain_rules(place.profile.consensus, config::network_id(place.profile.consensus));
  return place;
}

Expected<void> ChainReplay::run(const std::function<bool(const chain::CertifiedBlock&)>& seen) {
  NS_ASSIGN_OR_RETURN(auto reader, engine::BlockReader::open(context_.files, place_.log()));
  next_height_ = reader.next_height();
  while (true) {
    NS_ASSIGN_OR_RETURN(const auto bytes, reader.next());
    if (!bytes) break;
    NS_ASSIGN_OR_RETURN(const auto block, chain::decode_certified(*bytes, place_.rules.network));
    NS_RETURN_IF_ERROR(take(block));
    ++next_height_;
    if (!seen(block)) return {};
    if (context_.stop.cancelled()) return make_error(ErrorCode::Cancelled, "stopped before the end");
  }
  tail_bytes_ = reader.tail_bytes();
  return {};
}

Expected<void> ChainReplay::take(const chain::CertifiedBlock& block) {
  using Origin = chain::History::Origin;
  if (history_) return history_->append(block, all_ ? Origin::Peer : Origin::OwnDisk);
  if (next_height_ == 0) {
    NS_ASSIGN_OR_RETURN(auto begun, chain::History::begin(services(), block));
    history_.emplace(std::move(begun));
    return {};
  }
  NS_ASSIGN_OR_RETURN(const Bytes snapshot,
                      storage::read_file(context_.files, place_.chain + "/snapshot", longest_snapshot));
  ByteReader reader(snapshot);
  const auto genesis = reader.array<Hash256>();
  NS_ASSIGN_OR_RETURN(auto begun, chain::History::begin_at(services(), genesis, block, reader.rest()));
  history_.emplace(std::move(begun));
  return {};
}

}  // namespace neuroshard::app
