// Commands, their progress and their results, as messages.
#include "core/base/utf8.h"
#include "core/control/detail/convert.h"
#include "core/control/detail/convert_parts.h"

namespace neuroshard::control::detail {
namespace {

struct ResultEncoder {
  wire::CommandReply* to;

  void operator()(const std::monostate&) const {}
  void operator()(const node::CheckpointComparison& from) const {
    wire::CheckpointComparison* sent = to->mutable_comparison();
    encode(from.first, sent->mutable_first());
    encode(from.second, sent->mutable_second());
    for (const node::SlotDistance& slot : from.slots) {
      wire::SlotDistance* distance = sent->add_slot();
      distance->set_slot(slot.slot);
      distance->set_distance(slot.distance);
      distance->set_relative(slot.relative);
      distance->set_cosine(slot.cosine);
    }
    sent->set_distance(from.distance);
    sent->set_relative(from.relative);
  }
  void operator()(const node::VerifyResult& from) const {
    wire::VerifyResult* sent = to->mutable_verified();
    sent->set_name(valid_utf8(from.name));
    sent->set_intact(from.intact);
    sent->set_problem(valid_utf8(from.problem));  // names files
    sent->set_bytes(from.bytes);
  }
  void operator()(const node::ImportResult& from) const { to->mutable_imported()->set_name(from.name); }
  void operator()(const node::GenerateResult& from) const {
    wire::GenerateResult* sent = to->mutable_generated();
    sent->set_prompt_tokens(from.prompt_tokens);
    sent->set_tokens(from.tokens);
    sent->set_prompt_seconds(from.prompt_seconds);
    sent->set_seconds(from.seconds);
    sent->set_stopped_by(from.stopped_by);
    sent->set_step(from.step);
    sent->mutable_embedding()->Add(from.embedding.begin(), from.embedding.end());
  }
};

}  // namespace

void encode(const node::CommandResult& from, wire::CommandReply* to) {
  std::visit(ResultEncoder{to}, from);
}

node::CommandResult decode_result(const wire::CommandReply& from) {
  switch (from.result_case()) {
    case wire::CommandReply::kComparison: {
      const wire::CheckpointComparison& sent = from.comparison();
      node::CheckpointComparison to{
          decode(sent.first()), decode(sent.second()), {}, sent.distance(), sent.relative()};
      for (const wire::SlotDistance& slot : sent.slot())
        to.slots.push_back({slot.slot(), slot.distance(), slot.relative(), slot.cosine()});
      return to;
    }
    case wire::CommandReply::kVerified: {
      const wire::VerifyResult& sent = from.verified();
      return node::VerifyResult{sent.name(), sent.intact(), sent.problem(), sent.bytes()};
    }
    case wire::CommandReply::kImported: return node::ImportResult{from.imported().name()};
    case wire::CommandReply::kGenerated: {
      const wire::GenerateResult& sent = from.generated();
      return node::GenerateResult{sent.prompt_tokens(),
                                  sent.tokens(),
                                  sent.prompt_seconds(),
                                  sent.seconds(),
                                  sent.stopped_by(),
                                  sent.step(),
                                  {sent.embedding().begin(), sent.embedding().end()}};
    }
    case wire::CommandReply::RESULT_NOT_SET: break;
  }
  return {};
}

void encode(const node::CommandProgress& from, wire::CommandProgress* to) {
  to->set_activity(from.activity);
  to->set_done(from.done);
  to->set_total(from.total);
}

node::CommandProgress decode(const wire::CommandProgress& from) {
  return {0, from.activity(), from.done(), from.total()};
}

void encode(const node::PrunePolicy& from, wire::PrunePolicy* to) {
  to->set_keep_newest(from.keep_newest);
  to->set_keep_every_steps(from.keep_every_steps);
  to->set_keep_best(from.keep_best);
}

node::PrunePolicy decode(const wire::PrunePolicy& from) {
  return {from.keep_newest(), from.keep_every_steps(), from.keep_best()};
}

void encode(const node::GenerateRequest& from, wire::Generate* to) {
  to->set_prompt(from.prompt);
  to->set_max_tokens(from.max_tokens);
  to->set_temperature(from.temperature);
  to->set_top_k(from.top_k);
  to->set_top_p(from.top_p);
  to->set_seed(from.seed);
  to->set_min_p(from.min_p);
  to->set_repetition_penalty(from.repetition_penalty);
  for (const node::TokenBias& entry : from.logit_bias) {
    wire::TokenBias* sent = to->add_logit_bias();
    sent->set_token(entry.token);
    sent->set_bias(entry.bias);
  }
  for (const std::string& stop : from.stop) to->add_stop(stop);
  if (from.logprobs) to->set_logprobs(*from.logprobs);
  to->mutable_prompt_token()->Add(from.prompt_tokens.begin(), from.prompt_tokens.end());
  to->set_echo(from.echo);
  to->set_whole_prompt(from.whole_prompt);
  to->set_checkpoint(from.checkpoint);
  to->set_embedding(from.embedding);
}

node::GenerateRequest decode(const wire::Generate& from) {
  node::GenerateRequest to;
  to.prompt = from.prompt();
  to.max_tokens = from.max_tokens();
  to.temperature = from.temperature();
  to.top_k = from.top_k();
  to.top_p = from.top_p();
  to.seed = from.seed();
  to.min_p = from.min_p();
  if (from.has_repetition_penalty()) to.repetition_penalty = from.repetition_penalty();
  for (const wire::TokenBias& entry : from.logit_bias())
    to.logit_bias.push_back({entry.token(), entry.bias()});
  to.stop.assign(from.stop().begin(), from.stop().end());
  if (from.has_logprobs()) to.logprobs = from.logprobs();
  to.prompt_tokens.assign(from.prompt_token().begin(), from.prompt_token().end());
  to.echo = from.echo();
  to.whole_prompt = from.whole_prompt();
  to.checkpoint = from.checkpoint();
  to.embedding = from.embedding();
  return to;
}

void encode(const node::TextPiece& from, wire::TextPiece* to) {
  to->set_text(from.text);
  to->set_of_prompt(from.of_prompt);
  for (const node::GeneratedToken& token : from.tokens) {
    wire::GeneratedToken* sent = to->add_token();
    sent->set_token(token.token);
    sent->set_text(token.text);
    if (token.logprob) sent->set_logprob(*token.logprob);
    for (const node::LikelyToken& likely : token.top) {
      wire::LikelyToken* top = sent->add_top();
      top->set_token(likely.token);
      top->set_text(likely.text);
      top->set_logprob(likely.logprob);
    }
  }
}

node::TextPiece decode(const wire::TextPiece& from) {
  node::TextPiece to;
  to.text = from.text();
  to.of_prompt = from.of_prompt();
  for (const wire::GeneratedToken& token : from.token()) {
    node::GeneratedToken got{token.token(), token.text(), std::nullopt, {}};
    if (token.has_logprob()) got.logprob = token.logprob();
    for (const wire::LikelyToken& likely : token.top())
      got.top.push_back({likely.token(), likely.text(), likely.logprob()});
    to.tokens.push_back(std::move(got));
  }
  return to;
}

void encode(const node::SessionSensors& from, wire::SessionReport* to) {
  if (from.input_idle) {
    const auto seconds = from.input_idle->count();
    to->set_input_idle(seconds < 0 ? 0 : static_cast<std::uint64_t>(seconds));
  }
  if (from.full_screen) to->set_full_screen(*from.full_screen);
  to->set_full_screen_program(valid_utf8(from.full_screen_program, node::max_text));
  if (from.metered) to->set_metered(*from.metered);
}

node::SessionSensors decode(const wire::SessionReport& from) {
  constexpr std::uint64_t longest = 365 * 86'400;
  node::SessionSensors to;
  if (from.has_input_idle()) to.input_idle = std::chrono::seconds(std::min(from.input_idle(), longest));
  if (from.has_full_screen()) to.full_screen = from.full_screen();
  to.full_screen_program = valid_utf8(from.full_screen_program(), node::max_text);
  if (from.has_metered()) to.metered = from.metered();
  return to;
}

}  // namespace neuroshard::control::detail
