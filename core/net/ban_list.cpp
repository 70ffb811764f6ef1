#include "core/net/ban_list.h"

#include <algorithm>

namespace neuroshard::net {
namespace {

//   "NSBN" · version u32, 1 · count u32 · then each: id 32 · until u64, milliseconds since 1970 UTC · times
//   u32 · length u8 · reason
constexpr std::string_view magic = "NSBN";
constexpr std::uint32_t file_version = 1;
constexpr std::size_t head_bytes = 12, fixed_bytes = 32 + 8 + 4 + 1;

std::string cut(std::string reason) {
  // It may hold text of other nodes, and is shown in tables.
  if (reason.size() > BanList::max_reason_bytes) reason.resize(BanList::max_reason_bytes);
  return reason;
}

std::chrono::milliseconds whole(Duration length) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(length);
}

}  // namespace

void BanList::put_locked(Ban ban) {
  const WallTime now = clock_.wall_now();
  if (bans_.size() >= max_bans && bans_.count(ban.id) == 0) {
    std::erase_if(bans_, [now](const auto& entry) { return entry.second.until + remembered <= now; });
    if (bans_.size() >= max_bans) {
      bans_.erase(std::min_element(bans_.begin(), bans_.end(), [](const auto& a, const auto& b) {
        return a.second.until < b.second.until;
      }));
    }
  }
  bans_[ban.id] = std::move(ban);
  ++changes_;
}

void BanList::ban(const NodeId& id, Duration length, std::string reason) {
  const std::lock_guard lock(mutex_);
  put_locked({id, clock_.wall_now() + whole(length), cut(std::move(reason)), 1});
}

void BanList::ban_again(const NodeId& id, Duration first, Duration longest, std::string reason) {
  const WallTime now = clock_.wall_now();
  const std::lock_guard lock(mutex_);
  const auto former = bans_.find(id);
  const bool known = former != bans_.end() && former->second.until + remembered > now;
  const std::uint32_t times = known ? std::min<std::uint32_t>(former->second.times + 1, 32) : 1;
  Duration length = first;
  for (std::uint32_t i = 1; i < times && length < longest; ++i) length *= 2;
  put_locked({id, now + whole(std::min(length, longest)), cut(std::move(reason)), times});
}

void BanList::lift(const NodeId& id) {
  const std::lock_guard lock(mutex_);
  changes_ += bans_.erase(id);
}

std::optional<std::string> BanList::reason(const NodeId& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = bans_.find(id);
  if (found == bans_.end() || found->second.until <= clock_.wall_now()) return std::nullopt;
  return found->second.reason;
}

std::vector<Ban> BanList::all() const {
  const WallTime now = clock_.wall_now();
  std::vector<Ban> bans;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, ban] : bans_)
    if (ban.until > now) bans.push_back(ban);
  return bans;
}

std::uint64_t BanList::changes() const {
  const std::lock_guard lock(mutex_);
  return changes_;
}

Bytes BanList::encode() const {
  const std::lock_guard lock(mutex_);
  Bytes bytes(magic.begin(), magic.end());
  append_le(bytes, file_version);
  append_le(bytes, static_cast<std::uint32_t>(bans_.size()));
  for (const auto& [id, ban] : bans_) {
    bytes.insert(bytes.end(), id.begin(), id.end());
    append_le(bytes, static_cast<std::uint64_t>(to_unix_ms(ban.until)));
    append_le(bytes, ban.times);
    bytes.push_back(static_cast<std::uint8_t>(ban.reason.size()));
    bytes.insert(bytes.end(), ban.reason.begin(), ban.reason.end());
  }
  return bytes;
}

Expected<void> BanList::restore(ByteSpan bytes) {
  const auto corrupt = [] { return make_error(ErrorCode::Corrupt, "the list of bans can't be read"); };
  if (bytes.size() < head_bytes || !std::equal(magic.begin(), magic.end(), bytes.begin()) ||
      load_le<std::uint32_t>(bytes.data() + 4) != file_version)
    return corrupt();
  const std::size_t count = load_le<std::uint32_t>(bytes.data() + 8);
  if (count > max_bans) return corrupt();
  const WallTime latest = clock_.wall_now() + remembered;  // no ban is longer; a clock may have been wrong
  std::vector<Ban> bans;
  std::size_t at = head_bytes;
  for (std::size_t i = 0; i < count; ++i) {
    if (bytes.size() - at < fixed_bytes) return corrupt();
    Ban ban;
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), ban.id.size(), ban.id.begin());
    const auto until = load_le<std::uint64_t>(bytes.data() + at + 32);
    ban.until = std::min(latest, WallTime(std::chrono::milliseconds(static_cast<std::int64_t>(
                                     std::min<std::uint64_t>(until, std::uint64_t{1} << 43)))));
    ban.times = std::clamp<std::uint32_t>(load_le<std::uint32_t>(bytes.data() + at + 40), 1, 32);
    const std::size_t size = bytes[at + 44];
    at += fixed_bytes;
    if (size > max_reason_bytes || bytes.size() - at < size) return corrupt();
    ban.reason.assign(reinterpret_cast<const char*>(bytes.data() + at), size);
    at += size;
    bans.push_back(std::move(ban));
  }
  if (at != bytes.size()) return corrupt();
  const std::lock_guard lock(mutex_);
  for (Ban& ban : bans) put_locked(std::move(ban));
  return {};
}

}  // namespace neuroshard::net
