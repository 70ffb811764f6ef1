#include "core/runtime/part_texts.h"

#include <fmt/format.h>

#include <utility>

#include "core/engine/text_batch.h"

namespace neuroshard::runtime {
namespace {

constexpr std::uint32_t piece_positions = 256;
constexpr std::uint32_t text_window = 4;  // logits that a driver waits for; a text asks for one at a time
constexpr pipeline::WireFormat text_wire = pipeline::WireFormat::Fp32;

Error round_is_over() {
  return make_error(ErrorCode::Cancelled, "a new round has begun");
}

// The round whose anchors a text uses, in a route's base.
Hash256 base_of(std::uint64_t round) {
  Hash256 base{};
  store_le(base.data(), round);
  return base;
}

}  // namespace

std::string text_of(const pipeline::Lost& lost) {
  return fmt::format("{}… with part {} of the model does not answer: {}", to_hex(lost.node).substr(0, 12),
                     lost.position + 1, lost.what);
}

PartTexts::PartTexts(const Services& services, Bytes network, FindAnchor anchor)
    : services_(services), network_(std::move(network)), find_anchor_(std::move(anchor)) {
  const auto alive = [life = lifetime_.token()](auto call) {
    return [life, call](const auto&... arguments) {
      if (life.alive()) call(arguments...);
    };
  };
  engine::PipelineTexts::Listener listener;
  listener.executor = &services_.executor;
  listener.open = alive([this](std::uint64_t session, std::uint32_t positions, const Scores& scores) {
    open_text(session, positions, scores);
  });
  listener.extend =
      alive([this](std::uint64_t session, const Piece& piece, const engine::PipelineTexts::Answer& answer) {
        extend_text(session, piece, answer);
      });
  listener.evaluate = alive([this](const engine::PipelineTexts::Losses& losses) { evaluate(losses); });
  listener.close = alive([this](std::uint64_t session) { close_text(session); });
  services_.texts.listen(std::move(listener));
}

PartTexts::~PartTexts() {
  services_.texts.listen({});
  lifetime_.end();
  on_gone();
}

void PartTexts::on_ready(const engine::PipelinePart& part, const pipeline::Surroundings& around,
                         pipeline::SessionTable& sessions) {
  part_ = part;
  around_.emplace(around);
  pipeline::TextStageOptions options;
  options.sessions.of_one_driver = engine::max_batch_texts + 1;  // and one for losses
  options.sessions.bytes = part.text_bytes;
  options.admit = [this](const pipeline::Route& route) { return admit(route); };
  stage_ = std::make_unique<pipeline::TextStage>(around, sessions, part.jobs->texts(), part.text_lane,
                                                 std::move(options));
  follow_round();
}

void PartTexts::on_gone() {
  end_texts(make_error(ErrorCode::Unavailable, "training has ended"));
  losses_.reset();
  stage_.reset();
  around_.reset();
  part_.reset();
  round_.reset();
  used_.reset();
}

void PartTexts::tick() {
  if (!stage_) return;
  follow_round();
  end_what_is_late();
  release_weights();
}

// ---- this node's part

// The jobs of earlier sessions run before the weights change. Where the queue is full, a later call tries again.
void PartTexts::follow_round() {
  auto now = find_anchor_();
  if (!now || now->round == round_) return;
  end_texts(round_is_over());
  stage_->end_sessions(round_is_over());
  if (!stage_->caches_closed()) return;
  const bool posted = part_->jobs->texts().post(
      [stage = part_->anchor, anchor = std::move(now->anchor)] { stage->use(anchor); });
  if (!posted) return;
  round_ = now->round;
  services_.texts.set_round(*round_);
}

// Where the queue is full, a later call tries again.
void PartTexts::release_weights() {
  const MonotonicTime now = services_.clock.monotonic_now();
  if (stage_->sessions() > 0) used_ = now;
  if (!used_ || now - *used_ < weights_kept || !stage_->caches_closed()) return;
  if (part_->jobs->texts().post([stage = part_->anchor] { stage->release(); })) used_.reset();
}

Expected<void> PartTexts::admit(const pipeline::Route& route) const {
  if (route.tokens() > std::max(piece_positions, part_->shape.sequence) ||
      route.length > part_->shape.sequence || route.positions > part_->shape.sequence)
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("a text of this network has {} positions, in pieces of {} at most",
                                  part_->shape.sequence, piece_positions));
  const std::uint32_t most = route.asks_for_losses() ? PartLosses::window : text_window;
  if (route.window > most || route.wire != text_wire)
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("a text of this network has at most {} pieces under way, in {}", most,
                                  to_text(text_wire)));
  NS_RETURN_IF_ERROR(services_.holders.admit(crypto::node_id(route.driver)));
  if (!round_) return make_error(ErrorCode::Unavailable, "this node has no certified weights yet");
  if (route.base != base_of(*round_))
    return make_error(
        ErrorCode::Unavailable,
        fmt::format("the weights here are those of round {}, and the text asks for others", *round_));
  return {};
}

// ---- this node's texts

Expected<pipeline::Route> PartTexts::route() {
  const chain::RegistryPtr registry = services_.holders.registry();
  if (registry == nullptr || !round_)
    return make_error(ErrorCode::Unavailable,
                      "this node has no certified weights yet: try again in a moment");
  pipeline::Route route;
  NS_ASSIGN_OR_RETURN(route.hops, services_.holders.for_text(*registry));
  services_.entropy.fill({route.session.data(), route.session.size()});
  route.kind = pipeline::SessionKind::Text;
  route.wire = text_wire;
  route.base = base_of(*round_);
  return route;
}

Expected<pipeline::Route> PartTexts::route_of_text(std::uint32_t positions, const Scores& scores) {
  NS_ASSIGN_OR_RETURN(pipeline::Route route, this->route());
  route.sequences = piece_positions;
  route.length = 1;
  route.window = text_window;
  route.positions = positions;
  route.scores = scores;
  return route;
}

void PartTexts::evaluate(engine::PipelineTexts::Losses losses) {
  if (!stage_) return losses.done(make_error(ErrorCode::Unavailable, "training has ended"));
  follow_round();
  auto chosen = route();
  if (!chosen.ok()) return losses.done(chosen.error());
  chosen->sequences = losses.pieces.front().sequences;
  chosen->length = losses.length;
  chosen->window = PartLosses::window;
  losses_ = std::make_unique<PartLosses>(
      *around_, services_.key, network_, std::move(chosen).value(),
      [this](const pipeline::StageRange& range) { return services_.holders.of_range(range); },
      std::move(losses), [this] { losses_.reset(); });
}

void PartTexts::open_text(std::uint64_t session, std::uint32_t positions, const Scores& scores) {
  if (stage_) follow_round();
  Text& text = texts_[session];
  if (!stage_) {
    text.failed = make_error(ErrorCode::Unavailable, "training has ended");
    return;
  }
  auto chosen = route_of_text(positions, scores);
  if (!chosen.ok()) {
    text.failed = chosen.error();
    return;
  }
  pipeline::LeadEvents events;
  events.holders = [this](const pipeline::StageRange& range) { return services_.holders.of_range(range); };
  events.lost = [&text](const pipeline::Lost& lost) { text.lost = text_of(lost); };
  text.driver = std::make_unique<pipeline::TextDriver>(*around_, services_.key, network_,
                                                       std::move(chosen).value(), std::move(events));
  text.driver->start();
}

void PartTexts::extend_text(std::uint64_t session, const Piece& piece, engine::PipelineTexts::Answer answer) {
  const auto found = texts_.find(session);
  // It ended with its round, and this call was on its way.
  if (found == texts_.end()) return answer ? answer(round_is_over()) : void();
  Text& text = found->second;
  if (!text.driver) return answer ? answer(*text.failed) : void();
  pipeline::TextDriver::Answered done;
  if (answer)
    done = [&text](Expected<pipeline::TextDriver::Answer> result) {
      if (result.ok()) text.lost.clear();  // another node is there by now
      std::exchange(text.answer, nullptr)(std::move(result));
    };
  text.answer = answer;
  text.asked = services_.clock.monotonic_now();
  const auto extended = text.driver->extend(piece.tokens, piece.targets, std::move(done));
  if (!extended.ok() && text.answer) std::exchange(text.answer, nullptr)(extended.error());
}

void PartTexts::close_text(std::uint64_t session) {
  const auto found = texts_.extract(session);
  if (!found.empty() && found.mapped().driver) found.mapped().driver->close();
}

void PartTexts::end_texts(const Error& reason) {
  while (!texts_.empty()) {
    auto text = texts_.extract(texts_.begin());
    if (text.mapped().driver) text.mapped().driver->close();
    if (text.mapped().answer) text.mapped().answer(reason);
  }
  if (losses_) losses_->end(reason);
}

void PartTexts::end_what_is_late() {
  if (losses_) losses_->tick();
  const MonotonicTime now = services_.clock.monotonic_now();
  for (auto& [session, text] : texts_) {
    if (!text.answer || now - text.asked < patience) continue;
    const std::string what =
        text.lost.empty() ? std::string("the holders of the model's parts do not answer") : text.lost;
    // An answer that comes later finds nobody.
    std::exchange(text.driver, nullptr)->close();
    text.failed = make_error(ErrorCode::Unavailable, what);
    std::exchange(text.answer, nullptr)(*text.failed);
  }
}

}  // namespace neuroshard::runtime
