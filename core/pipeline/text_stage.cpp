#include "core/pipeline/text_stage.h"

#include <utility>

namespace neuroshard::pipeline {
namespace {

constexpr Duration piece_asked_again = std::chrono::milliseconds(100);  // of a full queue

}  // namespace

TextStage::TextStage(const Surroundings& surroundings, SessionTable& table, Executor& compute,
                     std::shared_ptr<TextLane> lane, TextStageOptions options)
    : around_(surroundings),
      table_(table),
      compute_(compute),
      results_(std::make_shared<net::Mailbox>(surroundings.executor)),
      lane_(std::move(lane)),
      options_(std::move(options)) {
  table_.serve(SessionKind::Text, rules());
}

TextStage::~TextStage() {
  lifetime_.end();
  table_.withdraw(SessionKind::Text);
  results_->close();
}

SessionRules TextStage::rules() {
  SessionRules rules;
  rules.limits = options_.sessions;
  rules.admit = options_.admit;
  rules.bytes_of = [shape = around_.shape, layers = lane_->range().layer_count](const Route& route) {
    // Rows that arrived and that were passed on, and tokens and targets.
    if (route.asks_for_losses())
      return route.window * (2 * encoded_bytes(route.wire, route.tokens(), shape.hidden) +
                             2 * route.tokens() * sizeof(std::int32_t));
    const std::uint64_t cache = 2ull * layers * shape.kv_heads * shape.head_dim * sizeof(float);
    return route.positions * (cache + 2 * encoded_bytes(route.wire, 1, shape.hidden)) +
           route.window * (shape.vocab * sizeof(float) +
                           (route.scores ? scores_bytes(route.sequences, *route.scores) : 0));
  };
  rules.make = [this](const Route& route, std::size_t position) {
    TextHost& host = *this;
    return std::make_unique<TextSession>(around_, host, route, position, next_number_++);
  };
  return rules;
}

void TextStage::piece_arrived(const SessionId& id) {
  turns_.push_back(id);
  pump();
}

void TextStage::text_ended(std::uint64_t number) {
  ended_.push_back(number);
  close_ended();
}

// Where the queue has no place, they wait for the next piece or the next caches_closed().
void TextStage::close_ended() {
  if (ended_.empty()) return;
  const bool posted = compute_.post([lane = lane_, ended = ended_] {
    for (const std::uint64_t number : ended) lane->close(number);
  });
  if (posted) ended_.clear();
}

void TextStage::pump() {
  close_ended();
  while (!running_ && !turns_.empty()) {
    const SessionId id = turns_.front();
    turns_.pop_front();
    TextSession* const text = session(id);
    const TextSession::Piece* const piece = text == nullptr ? nullptr : text->next_piece();
    if (piece == nullptr) continue;  // it ended meanwhile
    const Route& route = text->route();
    running_ =
        compute_.post([this, lane = lane_, results = results_, life = lifetime_.token(), id,
                       number = text->number(), payload = piece->payload,
                       job = TextLane::Piece{piece->work.sequences, route.length, piece->work.result_wanted(),
                                             route.wire, route.positions, route.scores}] {
          auto output = lane->extend(number, job, *payload);
          results->put([this, life, id, number, output = std::move(output)] {
            if (life.alive()) computed(id, number, output);
          });
        });
    if (running_) continue;
    // The queue is full.
    turns_.push_front(id);
    again_ = around_.executor.post_after(piece_asked_again, [this] { pump(); });
    return;
  }
}

void TextStage::computed(const SessionId& id, std::uint64_t number, Expected<TextLane::Output> output) {
  running_ = false;
  TextSession* const text = session(id);
  if (text != nullptr && text->number() == number && text->next_piece() != nullptr) {
    if (output.ok())
      text->computed(std::move(output).value());
    else
      table_.refuse(id, output.error());
  }
  pump();
}

}  // namespace neuroshard::pipeline
