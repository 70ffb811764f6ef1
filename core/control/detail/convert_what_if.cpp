// Questions about what would change in the network, and their answers.
#include "core/control/detail/convert.h"
#include "core/control/detail/convert_parts.h"

namespace neuroshard::control::detail {
namespace {

void encode_outlook(const node::MemoryOutlook& from, wire::MemoryOutlook* to) {
  encode_memory(from.memory, to->mutable_memory());
  to->set_asks(static_cast<wire::SizeChange>(from.asks));
  to->set_lacking_bytes(from.lacking_bytes);
  to->set_lacking_members(from.lacking_members);
}

node::MemoryOutlook decode_outlook(const wire::MemoryOutlook& from) {
  node::MemoryOutlook to;
  to.memory = decode_memory(from.memory());
  if (wire::SizeChange_IsValid(from.asks())) to.asks = static_cast<node::SizeChange>(from.asks());
  to.lacking_bytes = from.lacking_bytes();
  to.lacking_members = from.lacking_members();
  return to;
}

}  // namespace

void encode(const node::WhatIfQuery& from, wire::WhatIfQuery* to) {
  if (from.memory_bytes) {
    to->set_memory(*from.memory_bytes);
  } else {
    to->set_leave(true);
  }
}

Expected<node::WhatIfQuery> decode(const wire::WhatIfQuery& from) {
  if (from.has_memory()) return node::WhatIfQuery{from.memory()};
  if (from.leave()) return node::WhatIfQuery{};
  return make_error(
      ErrorCode::InvalidArgument,
      "this core does not know that change: ask about the memory that it offers, or about leaving");
}

void encode(const node::WhatIf& from, wire::WhatIf* to) {
  to->set_counts(from.counts);
  encode_outlook(from.now, to->mutable_now());
  encode_outlook(from.then, to->mutable_then());
  if (from.part) {
    wire::PartWithout* const part = to->mutable_part();
    part->set_number(from.part->number);
    part->set_count(from.part->count);
    part->set_nodes(from.part->nodes);
    part->set_wallets(from.part->wallets);
    part->set_moves_from(from.part->moves_from);
    part->set_waits(from.part->waits);
  }
  if (from.votes) {
    wire::VotesWithout* const votes = to->mutable_votes();
    votes->set_all_units(from.votes->all_units);
    votes->set_other_units(from.votes->other_units);
    votes->set_nobody(from.votes->nobody);
    votes->set_lacking_at_once(from.votes->lacking_at_once);
    votes->set_lacking_after_wait(from.votes->lacking_after_wait);
  }
}

node::WhatIf decode(const wire::WhatIf& from) {
  node::WhatIf to;
  to.counts = from.counts();
  to.now = decode_outlook(from.now());
  to.then = decode_outlook(from.then());
  if (from.has_part()) {
    const wire::PartWithout& part = from.part();
    to.part = {part.number(), part.count(), part.nodes(), part.wallets(), part.moves_from(), part.waits()};
  }
  if (from.has_votes()) {
    const wire::VotesWithout& votes = from.votes();
    to.votes = {votes.all_units(), votes.other_units(), votes.nobody(), votes.lacking_at_once(),
                votes.lacking_after_wait()};
  }
  return to;
}

}  // namespace neuroshard::control::detail
