#include "core/pipeline/text_stage.h"

#include <utility>

namespace neuroshard::pipeline {

TextStage::TextStage(const Surroundings& surroundings, SessionTable& table, Executor& compute,
                     std::shared_ptr<TextLane> lane, TextStageOptions options)
    : around_(surroundings),
      table_(table),
      compute_(compute),
      lane_(std::move(lane)),
      options_(std::move(options)) {
  table_.serve(SessionKind::Text, rules());
}

TextStage::~TextStage() {
  lifetime_.end();
  table_.withdraw(SessionKind::Text);
}

SessionRules TextStage::rules() {
  SessionRules rules;
  rules.limits = options_.sessions;
  rules.admit = options_.admit;
  rules.bytes_of = [shape = around_.shape, layers = lane_->range().layer_count](const Route& route) {
    const std::uint64_t cache = 2ull * layers * shape.kv_heads * shape.head_dim * sizeof(float);
    return route.positions * (cache + 2 * encoded_bytes(route.wire, 1, shape.hidden)) +
           route.window * shape.vocab * sizeof(float);
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
  (void)compute_.post([lane = lane_, number] { lane->close(number); });
}

void TextStage::pump() {
  while (!running_ && !turns_.empty()) {
    const SessionId id = turns_.front();
    turns_.pop_front();
    TextSession* const text = session(id);
    const TextSession::Piece* const piece = text == nullptr ? nullptr : text->next_piece();
    if (piece == nullptr) continue;  // it ended meanwhile
    running_ = true;
    const Route& route = text->route();
    (void)compute_.post([this, lane = lane_, &executor = around_.executor, life = lifetime_.token(), id,
                         piece = *piece, number = text->number(), wire = route.wire,
                         capacity = route.positions] {
      auto output = lane->extend(number, piece.work.sequences, wire, piece.work.result_wanted(),
                                 *piece.payload, capacity);
      (void)executor.post([this, life, id, number, output = std::move(output)] {
        if (life.alive()) computed(id, number, output);
      });
    });
  }
}

void TextStage::computed(const SessionId& id, std::uint64_t number, Expected<Bytes> output) {
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
