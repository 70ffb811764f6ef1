#include "core/runtime/invited_peers.h"

#include <fmt/format.h>

#include "core/config/invite_link.h"

namespace neuroshard::runtime {
namespace {

constexpr std::uint64_t longest_file = config::max_invited_peers * (65 + config::max_place_text + 1);

std::string path_of(const std::string& data_directory) {
  return data_directory + "/peers.invited";
}

}  // namespace

std::vector<std::string> read_invited_peers(storage::FileEnv& files, const std::string& data_directory,
                                            Logger& logger) {
  const std::string path = path_of(data_directory);
  std::vector<std::string> peers;
  if (!files.exists(path)) return peers;
  const auto bytes = storage::read_file(files, path, longest_file);
  if (!bytes.ok()) {
    logger.warning("swarm", fmt::format("{} can't be read: {}", path, bytes.error().describe()));
    return peers;
  }
  std::string_view rest = as_text(*bytes);
  while (!rest.empty() && peers.size() < config::max_invited_peers) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (const auto peer = config::parse_invited_peer(line); peer.ok())
      peers.push_back(config::to_text(*peer));
    else
      logger.warning("swarm", fmt::format("a line of {} is not used: {}", path, peer.error().message));
  }
  return peers;
}

Expected<void> keep_invited_peers(storage::FileEnv& files, const std::string& data_directory,
                                  const std::vector<std::string>& peers) {
  std::string text;
  for (const std::string& peer : peers) text += peer + '\n';
  return storage::write_file_atomic(files, path_of(data_directory), as_bytes(text));
}

}  // namespace neuroshard::runtime
