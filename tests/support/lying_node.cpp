// neuroshardd with a learner that lies, for tests of the defence; not part of the product.
//
//   lying_node ATTACK ATTACKERS HONEST FOLDER NAME run …
//   lying_node pieces run …
//   lying_node two-payloads run …
//   lying_node record FILE run …
//
// record: it does what it should, and writes what its rounds say to others to FILE, for protocol_fuzzer.
// two-payloads: it signs two contributions to each round and tells every second member of the other one.
// pieces: it learns as it should, and gives files to others with a byte changed in every piece. ATTACK: as
// core/outer/attack.h names them. ATTACKERS, HONEST: how many of each the network has. FOLDER: where the
// attackers show each other what they trained; NAME: this one's. The rest is what neuroshardd takes.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "app/node/program.h"
#include "core/net/peer_caller.h"
#include "tests/support/lying_learner.h"
#include "tests/support/recorder.h"
#include "tests/support/two_payloads.h"

namespace {

using namespace neuroshard;  // NOLINT

constexpr int own_arguments = 5;

// The list of a file's pieces is true, the pieces are not.
Expected<Bytes> spoiled(net::Method method, Expected<Bytes> answer) {
  if (method == net::Method::ContentPiece && answer.ok() && !answer->empty()) answer->front() ^= 1;
  return answer;
}

using Change = void (*)(app::CommandContext&);

// How the program changes what a node says, by the first word.
Change change_named(std::string_view word) {
  if (word == "pieces")
    return [](app::CommandContext& context) { context.interpositions.other_content = spoiled; };
  if (word == "two-payloads")
    return
        [](app::CommandContext& context) { context.interpositions.other_caller = test::make_two_payloads; };
  return nullptr;
}

Expected<std::size_t> count_of(const char* text) {
  std::size_t count = 0;
  const char* const end = text + std::strlen(text);
  const auto [at, error] = std::from_chars(text, end, count);
  if (error != std::errc() || at != end || count == 0)
    return make_error(ErrorCode::InvalidArgument, fmt::format("\"{}\" is no number of nodes", text));
  return count;
}

Expected<test::LiarOptions> liar_of(int argc, char** argv) {
  if (argc <= own_arguments)
    return make_error(ErrorCode::InvalidArgument, "lying_node ATTACK ATTACKERS HONEST FOLDER NAME run …");
  test::LiarOptions liar;
  NS_ASSIGN_OR_RETURN(liar.attack, outer::attack_from_name(argv[1]));
  if (liar.attack == outer::Attack::NotANumber)
    return make_error(ErrorCode::InvalidArgument, "no payload can say what is not a number");
  NS_ASSIGN_OR_RETURN(liar.liars, count_of(argv[2]));
  NS_ASSIGN_OR_RETURN(liar.honest, count_of(argv[3]));
  liar.folder = argv[4];
  liar.name = argv[5];
  return liar;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && std::string_view(argv[1]) == "record") {
    const std::string file = std::exchange(argv[2], argv[0]);
    return app::run_program(argc - 2, argv + 2, [&file](app::CommandContext& context) {
      context.interpositions.other_caller = [&file](net::PeerCaller& out, const crypto::KeyPair&,
                                                    const Hash256&) {
        return test::make_recorder(out, file);
      };
    });
  }
  if (const Change change = argc > 1 ? change_named(argv[1]) : nullptr) {
    argv[1] = argv[0];
    return app::run_program(argc - 1, argv + 1, change);
  }
  const auto liar = liar_of(argc, argv);
  if (!liar.ok()) {
    std::fputs((liar.error().describe() + "\n").c_str(), stderr);
    return 2;
  }
  argv[own_arguments] = argv[0];
  return app::run_program(argc - own_arguments, argv + own_arguments, [&](app::CommandContext& context) {
    context.interpositions.other_learner = [&](rounds::RoundLearner& training, Executor& node) {
      return test::make_lying_learner(training, node, context.files, *liar);
    };
  });
}
