#include "core/exchange/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/crypto/hash.h"
#include "core/net/address_group.h"

namespace neuroshard::exchange {
namespace {

constexpr const char* category = "exchange";

Error not_here() {
  return make_error(ErrorCode::NotFound, "this node does not hold what is asked for");
}

Error busy() {
  return make_error(ErrorCode::Exhausted, "the disk is busy; ask again later");
}

// Other errors pass, such as that of too many open files.
bool is_gone(const Error& error) {
  return error.code == ErrorCode::NotFound || error.code == ErrorCode::Corrupt;
}

}  // namespace

ContentServer::ContentServer(ServerServices services, ServerLimits limits, Gone gone)
    : services_(services),
      limits_(limits),
      gone_(std::move(gone)),
      places_(limits.requests),
      results_(std::make_shared<net::Mailbox>(services.executor)) {}

ContentServer::~ContentServer() {
  results_->close();
  for (auto& [number, one] : waiting_) one.reply(make_error(ErrorCode::Cancelled, "this node stops"));
}

bool ContentServer::offer(const ContentRef& content, std::string path, std::uint64_t offset) {
  if (!valid_size(content.size)) return false;
  const auto found = files_.find(content.hash);
  if (found == files_.end() && files_.size() >= limits_.files) {
    if (!std::exchange(told_full_, true))
      services_.logger.warning(
          category, fmt::format("only {} files are offered to others; further ones are not", limits_.files));
    return false;
  }
  File& file = files_[content.hash];
  ContentPlace place{std::move(path), offset};
  if (file.size == content.size && file.place == place) return true;
  file.size = content.size;
  file.place = std::move(place);
  file.list = nullptr;
  return true;
}

void ContentServer::withdraw(const Hash256& hash) {
  files_.erase(hash);
}

std::optional<MonotonicTime> ContentServer::asked(const Hash256& hash) const {
  const auto found = files_.find(hash);
  return found == files_.end() ? std::nullopt : found->second.asked;
}

void ContentServer::set_name(const std::string& name, NamedContent named) {
  if (names_.size() < limits_.names || names_.count(name) != 0) names_[name] = std::move(named);
}

void ContentServer::refuse(net::Fault fault, Error error, const net::Reply& reply) {
  ++counts_.refused;
  reply({std::move(error), fault});
}

void ContentServer::on_call(const net::Caller& from, net::Method method, ByteSpan bytes,
                            const net::Reply& reply) {
  if (method == net::Method::ContentNamed) {
    const auto name = decode_name(bytes);
    if (!name.ok()) return refuse(net::Fault::Malformed, name.error(), reply);
    const auto named = names_.find(*name);
    return reply(named == names_.end() ? Expected<Bytes>(not_here()) : encode_named(named->second));
  }
  const auto request = decode_piece_request(bytes);
  if (!request.ok()) return refuse(net::Fault::Malformed, request.error(), reply);
  const auto file = files_.find(request->hash);
  if (file == files_.end()) return reply(not_here());
  if (request->piece >= piece_count(file->second.size)) {
    return refuse(net::Fault::Malformed,
                  make_error(ErrorCode::InvalidArgument, "the content has fewer pieces"), reply);
  }
  file->second.asked = services_.clock.monotonic_now();
  const net::PeerRank rank =
      services_.ranks != nullptr ? services_.ranks->of(from.id) : net::PeerRank::Stranger;
  const net::SlotUser user{from.id, net::limit_group(from.endpoint.ip), rank, false};
  if (!places_.take(user)) {
    ++counts_.refused;
    return reply(make_error(ErrorCode::Exhausted, "too many requests for pieces are open; ask again later"));
  }
  const std::uint64_t number = next_++;
  waiting_[number] = {user, method, *request, reply, true};
  take(number);
}

void ContentServer::take(std::uint64_t number) {
  const Waiting& one = waiting_.at(number);
  const auto found = files_.find(one.request.hash);
  if (found == files_.end()) return finish(number, not_here());
  File& file = found->second;
  file.used = ++uses_;
  if (file.list) return serve(number, file);
  // A piece is checked against the list, too. The caller of a piece does not wait until a large file is read: it asks
  // again.
  const bool leaves = one.method == net::Method::ContentPiece &&
                      file.size > std::uint64_t{limits_.hashed_at_once} * piece_bytes;
  const Hash256 hash = one.request.hash;
  if (!file.reading) read_list(hash);
  if (leaves) finish(number, busy());
}

void ContentServer::serve(std::uint64_t number, File& file) {
  waiting_.at(number).needs_list = false;
  if (waiting_.at(number).method == net::Method::ContentPiece) return read_piece_of(number, file);
  give_list(number, file);
}

void ContentServer::give_list(std::uint64_t number, File& file) {
  const std::uint32_t first = waiting_.at(number).request.piece;
  if (first >= file.list->hashes.size()) return finish(number, not_here());
  const std::size_t count = std::min<std::size_t>(file.list->hashes.size() - first, max_listed_pieces);
  finish(number,
         encode_piece_list(file.list->size, Span<const Hash256>(file.list->hashes.data() + first, count)));
}

void ContentServer::read_list(const Hash256& hash) {
  File& file = files_.at(hash);
  file.reading = true;
  read_on(std::make_shared<Reading>(services_.files, hash, file));
}

// Other tasks of the disk pass before the next part is read.
void ContentServer::read_on(const std::shared_ptr<Reading>& reading) {
  const bool posted =
      services_.disk.post([this, reading, pieces = limits_.hashed_at_once, results = results_] {
        const Expected<bool> all = reading->hasher.read(pieces);
        results->put([this, reading, all] { has_read(reading, all); });
      });
  if (!posted) got_list(*reading, busy());
}

void ContentServer::has_read(const std::shared_ptr<Reading>& reading, const Expected<bool>& all) {
  if (!all.ok()) return got_list(*reading, all.error());
  if (!*all) return read_on(reading);
  HashedFile hashed = reading->hasher.finish();
  if (hashed.hash != reading->hash)
    return got_list(*reading, make_error(ErrorCode::Corrupt, reading->place.path + " has changed"));
  got_list(*reading, std::make_shared<const PieceList>(std::move(hashed.pieces)));
}

std::vector<std::uint64_t> ContentServer::waiting_for_list(const Hash256& hash) const {
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, one] : waiting_)
    if (one.request.hash == hash && one.needs_list) numbers.push_back(number);
  return numbers;
}

void ContentServer::got_list(const Reading& reading, Expected<std::shared_ptr<const PieceList>> list) {
  const Hash256& hash = reading.hash;
  const auto found = files_.find(hash);
  const std::vector<std::uint64_t> asked = waiting_for_list(hash);
  if (found != files_.end()) found->second.reading = false;
  if (found != files_.end() && (found->second.size != reading.size || found->second.place != reading.place)) {
    if (!asked.empty()) read_list(hash);  // it was offered with other bytes meanwhile
    return;
  }
  if (list.ok()) {
    if (found != files_.end()) found->second.list = *list;
  } else if (is_gone(list.error())) {
    lost(hash, list.error());
  }
  for (const std::uint64_t number : asked) {
    if (list.ok() && found != files_.end())
      serve(number, found->second);
    else
      finish(number, list.ok() || is_gone(list.error()) ? not_here() : busy());
  }
  forget_lists();
}

void ContentServer::forget_lists() {
  const auto kept = [this] {
    std::uint64_t sum = 0;
    for (const auto& [hash, file] : files_) sum += file.list ? file.list->hashes.size() : 0;
    return sum;
  };
  while (kept() > limits_.listed_pieces) {
    auto oldest = files_.end();
    for (auto file = files_.begin(); file != files_.end(); ++file)
      if (file->second.list && (oldest == files_.end() || file->second.used < oldest->second.used))
        oldest = file;
    oldest->second.list = nullptr;
  }
}

void ContentServer::read_piece_of(std::uint64_t number, const File& file) {
  const PieceRequest request = waiting_.at(number).request;
  if (request.piece >= file.list->hashes.size()) return finish(number, not_here());
  const bool posted = services_.disk.post([this, number, request, size = file.size, place = file.place,
                                           list = file.list, &env = services_.files, results = results_] {
    auto bytes = read_piece(env, place, size, request.piece);
    if (bytes.ok() && crypto::sha256(*bytes) != list->hashes[request.piece])
      bytes = make_error(ErrorCode::Corrupt, place.path + " has changed");
    results->put([this, number, hash = request.hash, bytes = std::move(bytes)]() mutable {
      got_piece(number, hash, std::move(bytes));
    });
  });
  if (!posted) finish(number, busy());
}

void ContentServer::got_piece(std::uint64_t number, const Hash256& hash, Expected<Bytes> bytes) {
  if (!bytes.ok()) {
    const bool gone = is_gone(bytes.error());
    if (gone) lost(hash, bytes.error());
    return finish(number, gone ? not_here() : busy());
  }
  ++counts_.pieces;
  counts_.bytes += bytes->size();
  finish(number, std::move(bytes));
}

void ContentServer::finish(std::uint64_t number, Expected<Bytes> answer) {
  const auto found = waiting_.find(number);
  if (found == waiting_.end()) return;
  places_.give_back(found->second.from);
  const net::Reply reply = std::move(found->second.reply);
  waiting_.erase(found);
  reply(std::move(answer));
}

// The usual reason is a cache that made room.
void ContentServer::lost(const Hash256& hash, const Error& why) {
  if (files_.erase(hash) == 0) return;
  services_.logger.info(category, fmt::format("{} is no longer offered to others: {}",
                                              to_hex(hash).substr(0, 16), why.describe()));
  if (gone_) gone_(hash);
}

}  // namespace neuroshard::exchange
