// Messages of hierarchical rounds, a round's content and what a node keeps of them: what is read writes
// itself back. The first byte chooses the reader.
#include "core/rounds/agreement.h"
#include "core/rounds/fragments.h"
#include "core/rounds/grouped_messages.h"
#include "core/rounds/participant.h"
#include "tests/fuzz/chosen_reader.h"

using namespace neuroshard;          // NOLINT
using namespace neuroshard::rounds;  // NOLINT

namespace {

// Two sub-groups; the keys need not be anybody's, because signatures are not what is read here.
const Deal& deal() {
  static const std::shared_ptr<const Deal> dealt = [] {
    std::vector<RoundMember> members;
    for (std::uint8_t i = 0; i < least_grouped_members; ++i) {
      crypto::PublicKey key{};
      key.fill(i + 1);
      members.push_back(make_member(key));
    }
    return make_deal(Hash256{}, 5, {}, make_roster(std::move(members)));
  }();
  return *dealt;
}

void read_body(ByteSpan input) {
  const auto body = decode_grouped_body(input, deal());
  if (!body.ok()) return;
  NS_CHECK(fuzz::same(encode_grouped_body(*body), input));
  NS_CHECK(!body->groups.empty() && body->groups.size() <= deal().groups.size());
  NS_CHECK(!next_roster(deal(), *body)->members.empty());
  static_cast<void>(check_groups(*body, deal(), Hash256{}));
}

void read_link(ByteSpan input) {
  const auto link = decode_link(input);
  if (!link.ok()) return;
  NS_CHECK(fuzz::same(encode_link(*link), input));
  RoundChain chain(Hash256{}, genesis_body({}, {}, {crypto::PublicKey{}}));
  GroupedCommons commons(Hash256{});
  NS_CHECK(!chain.add(*link, commons).ok());  // nobody has signed it
}

void read_message(std::uint8_t choice, ByteSpan input) {
  switch (choice % 8) {
    case 0:
      if (const auto post = decode_grouped_post(input); post.ok())
        NS_CHECK(fuzz::same(encode_grouped_post(*post), input));
      static_cast<void>(round_of_post(input));
      break;
    case 1: read_body(input); break;
    case 2:
      if (const auto result = decode_group_result(input); result.ok()) {
        NS_CHECK(fuzz::same(encode_group_result(*result), input));
        static_cast<void>(check_group_result(*result, deal(), Hash256{}));
      }
      break;
    case 3: read_link(input); break;
    case 4:
      if (const auto roster = decode_roster(input); roster.ok())
        NS_CHECK(fuzz::same(encode_roster(**roster), input));
      break;
    case 5:
      if (const auto quorum = decode_quorum(input, true); quorum.ok()) {
        NS_CHECK(fuzz::same(encode_quorum(*quorum), input) && quorum->body.members.empty());
        static_cast<void>(check_signatures(*quorum, deal().roster->members, VoteStep::Commit, Hash256{}));
      }
      break;
    case 6:
      if (const auto memory = decode_agreement_memory(input, true); memory.ok())
        NS_CHECK(fuzz::same(encode_agreement_memory(*memory), input));
      if (const auto votes = decode_votes(input); votes.ok())
        NS_CHECK(fuzz::same(encode_votes(*votes), input));
      break;
    default:
      for (const auto method : {net::Method::RoundPost, net::Method::RoundStatus, net::Method::RoundChain,
                                net::Method::RoundFetch})
        static_cast<void>(slot_of_call(method, input));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::read_chosen(data, size, read_message);
}
