#include "tests/support/memory_file_env.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace neuroshard::testing {
namespace {

using Node = MemoryFileEnv::Node;

Error missing(const std::string& path) {
  return make_error(ErrorCode::NotFound, path + " does not exist");
}

std::string leaf(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

std::uint64_t bytes_below(const Node& node) {
  std::uint64_t total = node.live.size();
  for (const auto& [name, child] : node.names) total += bytes_below(*child);
  return total;
}

class MemoryReadableFile final : public storage::ReadableFile {
 public:
  explicit MemoryReadableFile(std::shared_ptr<Node> node) : node_(std::move(node)) {}
  std::uint64_t size() const override { return node_->live.size(); }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) override {
    if (offset > node_->live.size() || target.size() > node_->live.size() - offset) {
      return make_error(ErrorCode::Corrupt, "the file ends early");
    }
    std::copy_n(node_->live.begin() + static_cast<std::ptrdiff_t>(offset), target.size(), target.begin());
    return {};
  }

 private:
  std::shared_ptr<Node> node_;
};

class MemoryWritableFile final : public storage::WritableFile {
 public:
  MemoryWritableFile(MemoryFileEnv& env, std::shared_ptr<Node> node) : env_(env), node_(std::move(node)) {}
  Expected<void> append(ByteSpan bytes) override {
    const std::uint64_t room = env_.free_bytes("/").value();
    const std::size_t fits = static_cast<std::size_t>(std::min<std::uint64_t>(room, bytes.size()));
    node_->live.insert(node_->live.end(), bytes.begin(), bytes.begin() + fits);
    if (fits < bytes.size()) return make_error(ErrorCode::Exhausted, "the disk is full; free some space");
    return {};
  }
  Expected<void> sync() override {
    node_->durable = node_->live;
    return {};
  }
  Expected<void> close() override { return {}; }

 private:
  MemoryFileEnv& env_;
  std::shared_ptr<Node> node_;
};

void cut(Node& node, PowerCut kind) {
  if (node.is_directory) {
    if (kind == PowerCut::OnlySynced) node.names = node.durable_names;
    node.durable_names = node.names;
    for (auto& [name, child] : node.names) cut(*child, kind);
    return;
  }
  if (kind == PowerCut::TornData && node.live.size() > node.durable.size()) {
    node.live.resize(node.durable.size() + (node.live.size() - node.durable.size()) / 2);
  } else {
    node.live = node.durable;
  }
  node.durable = node.live;
}

}  // namespace

MemoryFileEnv::MemoryFileEnv() : root_(std::make_shared<Node>()) {
  root_->is_directory = true;
}

void MemoryFileEnv::power_cut(PowerCut kind) {
  if (kind != PowerCut::Everything) cut(*root_, kind);
}

std::uint64_t MemoryFileEnv::used_bytes() const {
  return bytes_below(*root_);
}

void MemoryFileEnv::flip(const std::string& path, std::uint64_t at, std::uint8_t mask) {
  const auto node = find(path);
  NS_CHECK(node && at < node->live.size());
  node->live[static_cast<std::size_t>(at)] ^= mask;
}

void MemoryFileEnv::truncate(const std::string& path, std::uint64_t size) {
  const auto node = find(path);
  NS_CHECK(node && size <= node->live.size());
  node->live.resize(static_cast<std::size_t>(size));
}

std::shared_ptr<Node> MemoryFileEnv::find(const std::string& path) const {
  std::shared_ptr<Node> node = root_;
  std::size_t at = 0;
  while (at < path.size()) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (end > at) {
      if (!node->is_directory) return nullptr;
      const auto child = node->names.find(path.substr(at, end - at));
      if (child == node->names.end()) return nullptr;
      node = child->second;
    }
    at = end + 1;
  }
  return node;
}

std::shared_ptr<Node> MemoryFileEnv::parent(const std::string& path) const {
  const std::size_t slash = path.find_last_of('/');
  auto node = slash == std::string::npos ? root_ : find(path.substr(0, slash));
  return node && node->is_directory ? node : nullptr;
}

Expected<std::unique_ptr<storage::ReadableFile>> MemoryFileEnv::open_read(const std::string& path) {
  const auto node = find(path);
  if (!node) return missing(path);
  if (node->is_directory) return make_error(ErrorCode::InvalidArgument, path + " is a folder");
  return std::unique_ptr<storage::ReadableFile>(std::make_unique<MemoryReadableFile>(node));
}

Expected<std::unique_ptr<storage::WritableFile>> MemoryFileEnv::open_for_writing(const std::string& path,
                                                                                 bool truncate) {
  const auto folder = parent(path);
  if (!folder) return missing(path);
  auto& node = folder->names[leaf(path)];
  if (!node) node = std::make_shared<Node>();
  if (node->is_directory) return make_error(ErrorCode::InvalidArgument, path + " is a folder");
  if (truncate) node->live.clear();
  return std::unique_ptr<storage::WritableFile>(std::make_unique<MemoryWritableFile>(*this, node));
}

Expected<std::unique_ptr<storage::WritableFile>> MemoryFileEnv::open_write(const std::string& path, bool) {
  return open_for_writing(path, true);
}
Expected<std::unique_ptr<storage::WritableFile>> MemoryFileEnv::open_append(const std::string& path) {
  return open_for_writing(path, false);
}

Expected<void> MemoryFileEnv::rename(const std::string& from, const std::string& to) {
  const auto source = parent(from);
  const auto target = parent(to);
  if (!source || !target || source->names.count(leaf(from)) == 0) return missing(from);
  const auto present = target->names.find(leaf(to));
  if (present != target->names.end() && present->second->is_directory && !present->second->names.empty()) {
    return make_error(ErrorCode::AlreadyExists, to + " is already there");
  }
  target->names[leaf(to)] = source->names[leaf(from)];
  source->names.erase(leaf(from));
  return {};
}

Expected<void> MemoryFileEnv::remove_file(const std::string& path) {
  const auto folder = parent(path);
  if (!folder || folder->names.erase(leaf(path)) == 0) return missing(path);
  return {};
}

Expected<void> MemoryFileEnv::remove_tree(const std::string& path) {
  if (const auto folder = parent(path)) folder->names.erase(leaf(path));
  return {};
}

Expected<void> MemoryFileEnv::create_directories(const std::string& path) {
  std::shared_ptr<Node> node = root_;
  std::size_t at = 0;
  while (at < path.size()) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (end > at) {
      auto& child = node->names[path.substr(at, end - at)];
      if (!child) {
        child = std::make_shared<Node>();
        child->is_directory = true;
      }
      if (!child->is_directory) return make_error(ErrorCode::AlreadyExists, path + ": a file is in the way");
      node = child;
    }
    at = end + 1;
  }
  return {};
}

Expected<void> MemoryFileEnv::sync_directory(const std::string& path) {
  const auto node = find(path);
  if (!node || !node->is_directory) return missing(path);
  node->durable_names = node->names;
  return {};
}

Expected<std::vector<storage::DirectoryEntry>> MemoryFileEnv::list(const std::string& path) {
  const auto node = find(path);
  if (!node || !node->is_directory) return missing(path);
  std::vector<storage::DirectoryEntry> entries;
  for (const auto& [name, child] : node->names)
    entries.push_back({name, child->is_directory, child->live.size()});
  return entries;
}

bool MemoryFileEnv::exists(const std::string& path) {
  return find(path) != nullptr;
}

Expected<std::uint64_t> MemoryFileEnv::free_bytes(const std::string& path) {
  if (!find(path)) return missing(path);
  const std::uint64_t used = used_bytes();
  return used >= capacity_ ? 0 : capacity_ - used;
}

}  // namespace neuroshard::testing
