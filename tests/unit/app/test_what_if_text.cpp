// The answer to "what if" in lines and JSON.
#include <QtTest>
#include <nlohmann/json.hpp>

#include "app/node/commands/plan/network_what_if.h"
#include "app/node/output/what_if_text.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::app;

namespace {

constexpr node::WhatIfQuery eight{8'600'000'000}, leave{};

// Four members, of which this one offers 2 GB. The next model lacks 1 GB, and room in one of them.
node::WhatIf sized() {
  node::WhatIf answer;
  answer.counts = true;
  node::NetworkMemoryView& now = answer.now.memory;
  now.members = now.known = 4;
  now.offered_bytes = 10'000'000'000;
  now.own_bytes = 2'000'000'000;
  now.tier = "Nano";
  now.can_change = true;
  now.results_needed = 4;
  now.present.layers = 6;
  now.present.hidden = 128;
  now.next.emplace();
  now.next->layers = 8;
  now.next->hidden = 256;
  answer.now.lacking_bytes = 1'000'000'000;
  answer.now.lacking_members = 1;
  answer.then = answer.now;
  return answer;
}

std::string all(const node::WhatIfQuery& query, const node::WhatIf& answer) {
  std::string text;
  for (const std::string& line : what_if_lines(query, answer)) text += line + '\n';
  return text;
}

}  // namespace

class TestWhatIfText : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_model_that_grows_stays_and_shrinks() {
    node::WhatIf answer = sized();
    answer.then.memory.own_bytes = 8'500'000'000;
    answer.then.memory.offered_bytes = 16'500'000'000;
    answer.then.asks = node::SizeChange::Up;
    QCOMPARE(all(eight, answer),
             std::string("If this node offered 8.5 GB (now 2 GB):\n"
                         "offered     10 GB -> 16.5 GB by 4 members\n"
                         "tier        Nano (as before)\n"
                         "model       6 layers of width 128; grows to 8 layers of width 256 "
                         "after 4 rounds in a row with this memory\n"));
    answer.then.asks = node::SizeChange::None;
    QVERIFY(all(eight, answer)
                .find("stays: the next one, 8 layers of width 256, lacks 1 GB of all members "
                      "together, and room in 1 more member\n") != std::string::npos);
    answer.then.lacking_bytes = 0;
    answer.then.lacking_members = 2;
    QVERIFY(all(eight, answer).find("lacks room in 2 more members\n") != std::string::npos);
    answer.then.asks = node::SizeChange::Down;
    QVERIFY(all(eight, answer).find("shrinks after 4 rounds in a row with this memory: it lacks room in 2") !=
            std::string::npos);
    QVERIFY(all(eight, answer).find("seven days") == std::string::npos);
    answer.then.asks = node::SizeChange::None;
    answer.then.memory.next.reset();
    QVERIFY(all(eight, answer).find("the largest of the profile") != std::string::npos);
  }

  void leaving_tells_of_the_part_and_of_votes() {
    node::WhatIf answer = sized();
    answer.then.memory.members = 3;
    answer.part = node::PartWithout{2, 3, 0, 0, 1, false};
    answer.votes = node::VotesWithout{24, 12, false, 1, 1};
    std::string text = all(leave, answer);
    for (const char* said : {"If this node, which offers 2 GB, left:", "by 3 members",
                             "2 of 3: no node would hold it. By the plan a node of part 1 would move to it",
                             "the others lack 1 vote, and the chain stands still until it is back",
                             "still counts for the present model in the first seven days"})
      QVERIFY2(text.find(said) != std::string::npos, text.c_str());
    answer.part = node::PartWithout{2, 3, 0, 0, 0, true};
    QVERIFY(all(leave, answer).find("training waits until one of its holders is back") != std::string::npos);
    answer.part = node::PartWithout{2, 3, 0, 0, 0, false};
    QVERIFY(all(leave, answer).find("No other node can be spared") != std::string::npos);
    answer.part = node::PartWithout{2, 3, 2, 1, 0, false};
    QVERIFY(all(leave, answer).find("2 of 3: 2 nodes of 1 wallet would hold it\n") != std::string::npos);
    answer.votes->lacking_after_wait = 0;
    QVERIFY(all(leave, answer).find("go on when they have marked this node as away") != std::string::npos);
    answer.votes->lacking_at_once = 0;
    QVERIFY(all(leave, answer).find("the others have enough votes") != std::string::npos);
    answer.votes->nobody = true;
    answer.then.memory.members = 0;
    text = all(leave, answer);
    QVERIFY(text.find("nobody else has a vote") != std::string::npos &&
            text.find("model ") == std::string::npos);
  }

  void a_model_that_keeps_its_size_and_a_node_that_does_not_count() {
    node::WhatIf answer = sized();
    answer.now.memory.can_change = answer.then.memory.can_change = false;
    answer.then.memory.possible = answer.then.memory.next;
    answer.then.memory.next.reset();
    QVERIFY(all(eight, answer)
                .find("keeps its size. Largest one that enough members have room for: 6 layers of "
                      "width 128 -> 8 layers of width 256\n") != std::string::npos);
    QVERIFY(all(eight, answer).find("don't count") == std::string::npos);
    answer.counts = false;
    QVERIFY(all(eight, answer).find("the others don't count its memory") != std::string::npos);
  }

  void programs_get_all_of_it() {
    node::WhatIf answer = sized();
    answer.then.asks = node::SizeChange::Down;
    nlohmann::ordered_json json = what_if_json(eight, answer);
    QVERIFY(json["memory_bytes"] == 8'600'000'000 && json["leaves"] == false && json["counts"] == true);
    QVERIFY(json["then"]["asks"] == "down" && json["now"]["asks"] == "none");
    QVERIFY(json["now"]["memory"]["own_bytes"] == 2'000'000'000 && json["now"]["lacking_members"] == 1);
    QVERIFY(json["part"].is_null() && json["votes"].is_null());
    answer.part = node::PartWithout{2, 3, 2, 1, 3, false};
    answer.votes = node::VotesWithout{24, 12, false, 1, 1};
    json = what_if_json(leave, answer);
    QVERIFY(json["memory_bytes"].is_null() && json["leaves"] == true);
    QVERIFY(json["part"]["moves_from"] == 3 && json["part"]["waits"] == false);
    QVERIFY(json["votes"]["other_units"] == 12 && json["votes"]["lacking_after_wait"] == 1);
  }

  void questions_are_read() {
    QVERIFY(!parse_network_change("leave")->memory_bytes);
    QCOMPARE(*parse_network_change("memory=8GiB")->memory_bytes, std::uint64_t{8} << 30);
    for (const char* wrong :
         {"", "leave=a", "memory", "memory=", "memory=-1", "memory=8GiB,speed=2T", "speed=2T"})
      QVERIFY2(!parse_network_change(wrong).ok(), wrong);
    QVERIFY(parse_network_change("speed=2T").error().message.find("--peers FILE") != std::string::npos);
  }
};

NS_TEST(TestWhatIfText)
#include "test_what_if_text.moc"
