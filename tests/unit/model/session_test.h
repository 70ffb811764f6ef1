// Sessions that share the calls of a stage, against the same sessions alone.
#pragma once

#include <QString>
#include <cstring>
#include <vector>

#include "tests/unit/model/model_test.h"

namespace neuroshard::model_test {

struct Spoken {
  std::uint64_t session = 0;
  std::vector<std::int32_t> tokens;
  std::vector<std::vector<float>> logits;  // after each decode step
};

// Token `step` of text `number`: any function will do.
inline std::int32_t token_of(const ModelShape& shape, std::uint32_t number, std::uint32_t step) {
  return static_cast<std::int32_t>((7 * number + 13 * step * step + step + 3) % shape.vocab);
}

inline Status read_prompt(Stage& stage, const ModelShape& shape, std::uint32_t number, Spoken& text) {
  for (std::uint32_t i = 0; i < 1 + 5 * (number % 4); ++i) text.tokens.push_back(token_of(shape, number, i));
  text.logits.emplace_back(shape.vocab);
  if (const Status opened = stage.open_session(text.session, 64); !opened.ok()) return opened;
  return stage.extend_session(text.session, static_cast<std::uint32_t>(text.tokens.size()),
                              text.tokens.data(), nullptr, nullptr, text.logits.back().data());
}

// One more token for each text, in one call.
inline Status decode(Stage& stage, const ModelShape& shape,
                     const std::vector<std::pair<std::uint32_t, Spoken*>>& texts) {
  std::vector<compute::SessionPart> parts;
  for (const auto& [number, text] : texts) {
    text->tokens.push_back(token_of(shape, number, static_cast<std::uint32_t>(text->tokens.size())));
    text->logits.emplace_back(shape.vocab);
    compute::SessionPart part;
    part.session = text->session;
    part.n = 1;
    part.tokens = &text->tokens.back();
    part.logits = text->logits.back().data();
    parts.push_back(part);
  }
  return stage.extend_sessions(static_cast<std::uint32_t>(parts.size()), parts.data());
}

// Sixteen texts that join one after the other and leave again, against each alone: an empty text when all logits are
// the same bits.
inline QString difference_to_alone(Stage& stage, const ModelShape& shape) {
  constexpr std::uint32_t count = compute::alike_sessions;
  constexpr std::uint32_t steps = 6;  // of each text
  std::vector<Spoken> together(count), alone(count);
  for (std::uint32_t step = 0; step < count + steps; ++step) {
    if (step < count) {
      together[step].session = 1 + step;
      if (const Status read = read_prompt(stage, shape, step, together[step]); !read.ok())
        return read.message;
    }
    std::vector<std::pair<std::uint32_t, Spoken*>> present;
    // Half of them stay, so that all numbers of rows up to sixteen occur.
    for (std::uint32_t i = 0; i < count && i <= step; ++i)
      if (i % 2 == 0 || step < i + steps) present.emplace_back(i, &together[i]);
    if (const Status grown = decode(stage, shape, present); !grown.ok()) return grown.message;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    alone[i].session = 100 + i;
    if (const Status read = read_prompt(stage, shape, i, alone[i]); !read.ok()) return read.message;
    while (alone[i].tokens.size() < together[i].tokens.size())
      if (const Status grown = decode(stage, shape, {{i, &alone[i]}}); !grown.ok()) return grown.message;
    for (std::size_t at = 0; at < alone[i].logits.size(); ++at) {
      if (std::memcmp(alone[i].logits[at].data(), together[i].logits[at].data(),
                      shape.vocab * sizeof(float)) != 0)
        return QString("text %1, step %2").arg(i).arg(at);
    }
  }
  return {};
}

}  // namespace neuroshard::model_test
