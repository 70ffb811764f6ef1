#include "core/serve/text_queue.h"

#include <algorithm>
#include <utility>

namespace neuroshard::serve {

TextQueue::TextQueue(node::Node& node, Post post, std::size_t most_running)
    : node_(node), post_(std::move(post)), most_running_(most_running) {
  subscription_ = node_.subscribe([this](const node::Event& event) {
    if (const auto* done = std::get_if<node::CommandDone>(&event))
      post_([this, outcome = *done] { on_done(outcome); });
  });
}

std::uint64_t TextQueue::add(const std::string& client, node::GenerateRequest request, Handler handler) {
  const std::uint64_t ticket = next_++;
  waiting_.push_back({ticket, client, std::move(request), std::move(handler), 0, false});
  post_([this] { start_next(); });
  return ticket;
}

void TextQueue::cancel(std::uint64_t ticket) {
  const auto waits = std::find_if(waiting_.begin(), waiting_.end(),
                                  [ticket](const Text& text) { return text.ticket == ticket; });
  if (waits != waiting_.end()) {
    waiting_.erase(waits);
    return;
  }
  const auto runs = running_.find(ticket);
  if (runs == running_.end() || runs->second.dropped) return;
  runs->second.dropped = true;  // its place is free when the node has ended it
  static_cast<void>(node_.cancel(runs->second.command).ok());
}

void TextQueue::start_next() {
  while (running_.size() < most_running_) {
    const auto next = next_waiting();
    if (next == waiting_.end()) break;
    Text text = std::move(*next);
    waiting_.erase(next);
    served_[text.client] = text.ticket;
    start(std::move(text));
  }
  forget_idle_clients();
}

std::size_t TextQueue::running_of(const std::string& client) const {
  return static_cast<std::size_t>(
      std::count_if(running_.begin(), running_.end(),
                    [&client](const auto& entry) { return entry.second.client == client; }));
}

std::deque<TextQueue::Text>::iterator TextQueue::next_waiting() {
  const bool last_place = running_.size() + 1 == most_running_;
  const auto order = [this](const Text& text) {
    const auto served = served_.find(text.client);
    return std::pair(running_of(text.client), served == served_.end() ? 0 : served->second);
  };
  auto best = waiting_.end();
  for (auto at = waiting_.begin(); at != waiting_.end(); ++at) {
    if (last_place && running_of(at->client) > 0) continue;
    if (best == waiting_.end() || order(*at) < order(*best)) best = at;
  }
  return best;
}

void TextQueue::forget_idle_clients() {
  std::erase_if(served_, [this](const auto& entry) {
    return running_of(entry.first) == 0 &&
           std::none_of(waiting_.begin(), waiting_.end(),
                        [&entry](const Text& text) { return text.client == entry.first; });
  });
}

void TextQueue::start(Text text) {
  const std::uint64_t ticket = text.ticket;
  const auto command = node_.generate(text.request, [this, post = post_, ticket](node::TextPiece piece) {
    post([this, ticket, piece = std::move(piece)]() mutable { on_piece(ticket, std::move(piece)); });
  });
  if (!command.ok()) return text.handler.on_done(command.error());
  text.command = *command;
  running_.emplace(ticket, std::move(text));
}

void TextQueue::on_piece(std::uint64_t ticket, node::TextPiece piece) {
  const auto at = running_.find(ticket);
  if (at != running_.end() && !at->second.dropped) at->second.handler.on_piece(std::move(piece));
}

void TextQueue::on_done(const node::CommandDone& done) {
  const auto at = std::find_if(running_.begin(), running_.end(),
                               [&done](const auto& entry) { return entry.second.command == done.id; });
  if (at == running_.end()) return;
  const Text text = std::move(at->second);
  running_.erase(at);
  if (!text.dropped) {
    const auto* result = std::get_if<node::GenerateResult>(&done.result);
    if (done.error)
      text.handler.on_done(*done.error);
    else if (result != nullptr)
      text.handler.on_done(*result);
    else
      text.handler.on_done(make_error(ErrorCode::Internal, "the node gave no result"));
  }
  start_next();
}

}  // namespace neuroshard::serve
