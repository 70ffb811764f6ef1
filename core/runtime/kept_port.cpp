#include "core/runtime/kept_port.h"

#include <fmt/format.h>

#include <charconv>

namespace neuroshard::runtime {
namespace {

constexpr std::uint64_t longest_file = 32;

struct Ports {
  std::uint16_t wanted = 0, chosen = 0;
};

std::optional<Ports> parse(std::string_view text) {
  Ports ports;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, ports.wanted);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != ' ') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, ports.chosen);
  if (second.ec != std::errc() || ports.chosen == 0) return std::nullopt;
  if (std::string_view(second.ptr, static_cast<std::size_t>(end - second.ptr)) != "\n") return std::nullopt;
  return ports;
}

}  // namespace

std::string kept_port_path(const std::string& data_directory) {
  return data_directory + "/peers.port";
}

std::optional<std::uint16_t> read_kept_port(storage::FileEnv& files, const std::string& data_directory,
                                            std::uint16_t wanted, Logger& logger) {
  const std::string path = kept_port_path(data_directory);
  if (!files.exists(path)) return std::nullopt;
  const auto bytes = storage::read_file(files, path, longest_file);
  const auto ports = bytes.ok() ? parse(as_text(*bytes)) : std::nullopt;
  if (!ports) {
    logger.warning("swarm", fmt::format("{} can't be read and is not used: {}", path,
                                        bytes.ok() ? "it is damaged" : bytes.error().describe()));
    return std::nullopt;
  }
  // Another port is wanted now than the one that was taken then.
  if (ports->wanted != wanted) return std::nullopt;
  return ports->chosen;
}

std::optional<std::uint16_t> last_port(storage::FileEnv& files, const std::string& data_directory) {
  const auto bytes = storage::read_file(files, kept_port_path(data_directory), longest_file);
  const auto ports = bytes.ok() ? parse(as_text(*bytes)) : std::nullopt;
  if (!ports) return std::nullopt;
  return ports->chosen;
}

Expected<void> keep_port(storage::FileEnv& files, const std::string& data_directory, std::uint16_t wanted,
                         std::uint16_t chosen) {
  return storage::write_file_atomic(files, kept_port_path(data_directory),
                                    as_bytes(fmt::format("{} {}\n", wanted, chosen)));
}

}  // namespace neuroshard::runtime
