#include "core/pipeline/text_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace neuroshard::pipeline {

TextDriver::TextDriver(const Surroundings& surroundings, const crypto::KeyPair& key, Bytes network,
                       Route route, LeadEvents events, Duration retry)
    : hop_(surroundings, {[this](const Result& done, const Bytes& logits) { result(done, logits); },
                          [this](const Lost& one) { lead_.lost(one); }}),
      lead_(surroundings, key, std::move(network), std::move(route), std::move(events), hop_, retry) {}

void TextDriver::start() {
  lead_.start();
}

Expected<void> TextDriver::extend(const std::vector<std::int32_t>& tokens, Logits done) {
  if (tokens.empty()) return make_error(ErrorCode::InvalidArgument, "there is no token to append");
  if (tokens.size() > route().positions - positions_)
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("the text has {} positions, and {} tokens more do not fit",
                                  route().positions, tokens.size()));
  positions_ += tokens.size();
  const std::size_t most = route().sequences;
  for (std::size_t at = 0; at < tokens.size(); at += most) {
    const std::size_t end = std::min(tokens.size(), at + most);
    const auto begin = tokens.begin();
    waiting_.push_back({{begin + static_cast<std::ptrdiff_t>(at), begin + static_cast<std::ptrdiff_t>(end)},
                        end == tokens.size() ? std::move(done) : nullptr});
  }
  pump();
  return {};
}

void TextDriver::pump() {
  while (!waiting_.empty() && (waiting_.front().done == nullptr || under_way_.size() < route().window)) {
    Piece piece = std::move(waiting_.front());
    waiting_.pop_front();
    const std::uint64_t index = next_index_++;
    const bool wanted = piece.done != nullptr;
    if (wanted) under_way_[index] = std::move(piece.done);
    auto payload = std::make_shared<Bytes>();
    for (const std::int32_t token : piece.tokens) append_le(*payload, token);
    hop_.send({index, wanted ? index : index + 1, static_cast<std::uint32_t>(piece.tokens.size())},
              std::move(payload));
  }
}

void TextDriver::result(const Result& result, const Bytes& logits) {
  auto found = under_way_.extract(result.index);
  if (found.empty()) return;
  pump();
  std::vector<float> values(logits.size() / sizeof(float));
  std::memcpy(values.data(), logits.data(), logits.size());
  found.mapped()({values.data(), values.size()});
}

void TextDriver::close() {
  lead_.stop();
  hop_.close(next_index_);
}

}  // namespace neuroshard::pipeline
