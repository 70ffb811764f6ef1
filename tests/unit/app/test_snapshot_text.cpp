// A snapshot in the lines and JSON keys of "status".
#include <QtTest>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/node/output/snapshot_text.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::app;

namespace {

// Empty: there is no such row.
std::string row_of(const node::Snapshot& view, const std::string& name) {
  const auto lines = snapshot_lines(view);
  const auto found = std::find_if(lines.begin(), lines.end(), [&name](const std::string& line) {
    return line.rfind(name + " ", 0) == 0;
  });
  return found == lines.end() ? "" : *found;
}

}  // namespace

class TestSnapshotText : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_path_has_the_times_of_its_hops() {
    node::Snapshot view;
    view.identity.node_id = std::string(64, 'a');
    view.rounds.taking_part = true;
    QVERIFY(row_of(view, "Path").empty());
    node::PartView& part = view.rounds.part.emplace();
    QVERIFY(row_of(view, "Path").empty());
    part.path = {{std::string(64, 'a'), std::nullopt, std::nullopt},
                 {std::string(64, 'b'), std::nullopt, std::nullopt}};
    QCOMPARE(row_of(view, "Path"), std::string("Path       this node → bbbbbbbbbbbb"));
    part.path[0].computing_ms = 4.25;
    part.path[0].between_ms = 8.5;
    QCOMPARE(row_of(view, "Path"),
             std::string("Path       this node 4.2 ms → bbbbbbbbbbbb; the line and waiting 8.5 ms"));
    part.path[1].computing_ms = 120.4;
    part.path[1].between_ms = 30.0;
    QCOMPARE(row_of(view, "Path"),
             std::string("Path       this node 4.2 ms → bbbbbbbbbbbb 120 ms; the line and waiting 38 ms"));
  }

  void checks_of_other_parts_are_counted() {
    node::Snapshot view;
    view.rounds.taking_part = true;
    QVERIFY(row_of(view, "Checks").empty());
    node::PartView& part = view.rounds.part.emplace();
    QCOMPARE(row_of(view, "Checks"), std::string("Checks     0 results of other parts found right"));
    part.found_right = 20;
    part.found_wrong = 1;
    part.withheld = 2;
    part.checkers = {3, 0};
    QCOMPARE(row_of(view, "Checks"),
             std::string("Checks     20 results of other parts found right, 1 wrong, 2 not checked, because "
                         "their holders do not give what they were made of; checkers by part: 3, 0"));
    part.follows_plan = true;
    part.moves_to = 1;
    part.reason = node::PartReason::OneWallet;
    QVERIFY2(row_of(view, "Part")
                     .find("the network chose it; moves to part 1, because one owner's nodes hold it") !=
                 std::string::npos,
             row_of(view, "Part").c_str());
    QVERIFY(row_of(view, "Part").find("speed") == std::string::npos);  // nobody states one
    part.speeds = {45, 100};
    QVERIFY(row_of(view, "Part").find("; speed by part: 45 %, 100 %; ") != std::string::npos);
    const auto json = snapshot_json(view)["rounds"]["part"];
    QCOMPARE(json["speeds_percent"][0].get<int>(), 45);
    QCOMPARE(json["moves_to"].get<int>(), 1);
    QCOMPARE(json["checks"]["withheld"].get<int>(), 2);
    QCOMPARE(json["checkers"].size(), std::size_t{2});
  }

  void memory_is_told_against_what_is_needed() {
    node::Snapshot view;
    view.rounds.taking_part = true;
    QVERIFY(row_of(view, "Offered").empty());
    node::NetworkMemoryView& memory = view.rounds.memory.emplace();
    memory.members = 4;
    QVERIFY(row_of(view, "Offered").empty());  // nobody says it
    memory.known = memory.needs_room = 3;
    memory.offered_bytes = 6'000'000'000;
    memory.tier = "Nano";
    memory.present = {6, 512, 40'000'000, 1'200'000'000, 3};
    memory.next = {8, 640, 61'000'000, 2'500'000'000, 1};
    const std::string begin = "Offered    6 GB by 3 of 4 members, tier Nano; the model needs 1.2 GB of each";
    QCOMPARE(row_of(view, "Offered"),
             begin +
                 ", and keeps its size; 8 layers of width 640 need 2.5 GB, which 1 of 4 "
                 "offers, and 3 would have to");
    memory.possible = std::exchange(memory.next, std::nullopt);
    QCOMPARE(row_of(view, "Offered"), begin +
                                          ", and keeps its size; enough members have room for 8 layers of "
                                          "width 640, with 2.5 GB of each");
    memory.members = memory.known = 1;
    QVERIFY(row_of(view, "Offered").find("by 1 of 1 member, tier") != std::string::npos);
  }

  void a_change_of_size_is_told() {
    node::Snapshot view;
    view.rounds.taking_part = true;
    node::NetworkMemoryView& memory = view.rounds.memory.emplace();
    memory.members = memory.known = 4;
    memory.offered_bytes = 3'000'000'000;
    memory.tier = "Nano";
    memory.can_change = true;
    memory.results_needed = 4;
    memory.present = {2, 128, 1'000'000, 500'000'000, 4};
    memory.next = {4, 128, 2'000'000, 1'000'000'000, 3, 5'500'000'000, 4, 3'000'000'000, 75, 75};
    const std::string begin = "Offered    3 GB by 4 of 4 members, tier Nano; the model needs 0.5 GB of each";
    const std::string next =
        "; the next model, 4 layers of width 128, needs 1 GB of each member and 5.5 GB of all "
        "with a reserve: 3 of 4 have room, 3 GB are offered";
    QCOMPARE(row_of(view, "Offered"), begin + next);
    memory.asked = node::SizeChange::Up;
    memory.results = 2;
    QCOMPARE(row_of(view, "Offered"),
             begin + "; the network changes to a larger model after 2 more rounds with enough memory" + next);
    memory.changing = true;
    QCOMPARE(row_of(view, "Offered"), begin + "; the network is changing to a larger model" + next);
    memory.changing = false;
    memory.asked = node::SizeChange::None;
    memory.next.reset();
    QCOMPARE(row_of(view, "Offered"), begin + "; it is the largest of the profile");
    memory.present = {4, 128, 2'000'000, 1'000'000'000, 1, 3'500'000'000, 5, 3'000'000'000, 20, 50};
    const std::string lacks =
        "; the model has too little memory: it needs 1 GB of each member and 3.5 GB of all: 1 "
        "of 5 has room, 3 GB are offered, and those with room have 20 % of the votes of 50 % "
        "that are needed";
    const std::string small = "Offered    3 GB by 4 of 4 members, tier Nano; the model needs 1 GB of each";
    QCOMPARE(row_of(view, "Offered"), small + lacks);
    memory.asked = node::SizeChange::Down;
    memory.results = 3;
    QCOMPARE(
        row_of(view, "Offered"),
        small + "; the network changes to a smaller model after 1 more round with too little memory" + lacks);
    memory.smaller = node::NetworkMemoryView::Model{2, 64, 300'000, 200'000'000, 4};
    QCOMPARE(row_of(view, "Offered"), small +
                                          "; the network changes to a smaller model of 2 layers of width 64 "
                                          "after 1 more round with too little memory" +
                                          lacks);
    memory.changing = true;
    QCOMPARE(row_of(view, "Offered"),
             small + "; the network is changing to a smaller model of 2 layers of width 64" + lacks);
    memory.changing = false;
    const auto json = snapshot_json(view)["rounds"]["memory"];
    QVERIFY(json["can_change"].get<bool>() && !json["changing"].get<bool>() && json["next"].is_null());
    QCOMPARE(json["asked"].get<std::string>(), std::string("down"));
    QCOMPARE(json["results"].get<int>(), 3);
    QCOMPARE(json["results_needed"].get<int>(), 4);
    QCOMPARE(json["smaller"]["hidden"].get<int>(), 64);
    QCOMPARE(json["present"]["network_bytes"].get<std::uint64_t>(), std::uint64_t{3'500'000'000});
    QCOMPARE(json["present"]["room_percent"].get<int>(), 20);
  }

  void a_hundred_percent_are_all() {
    node::Snapshot view;
    view.rounds.taking_part = true;
    view.rounds.global.reports = 200;
    view.rounds.global.hash_agreement = 0.996;
    QVERIFY(row_of(view, "All nodes").find("; 99 % hold the same anchor") != std::string::npos);
    view.rounds.global.hash_agreement = 0.29;
    QVERIFY(row_of(view, "All nodes").find("; 29 % hold the same anchor") != std::string::npos);
    view.rounds.global.hash_agreement = 1;
    QVERIFY(row_of(view, "All nodes").find("; 100 % hold the same anchor") != std::string::npos);
  }

  void programs_get_every_time() {
    node::Snapshot view;
    view.rounds.taking_part = true;
    view.rounds.part.emplace().path = {{"a", 4.25, 8.5}, {"b", std::nullopt, std::nullopt}};
    const auto path = snapshot_json(view)["rounds"]["part"]["path"];
    QCOMPARE(path.size(), std::size_t{2});
    QCOMPARE(path[0]["node"].get<std::string>(), std::string("a"));
    QCOMPARE(path[0]["computing_ms"].get<double>(), 4.25);
    QCOMPARE(path[0]["between_ms"].get<double>(), 8.5);
    QVERIFY(path[1]["computing_ms"].is_null() && path[1]["between_ms"].is_null());
  }
};

NS_TEST(TestSnapshotText)
#include "test_snapshot_text.moc"
