// A snapshot in the lines and JSON keys of "status".
#include <QtTest>
#include <algorithm>
#include <nlohmann/json.hpp>

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
    const auto json = snapshot_json(view)["rounds"]["part"];
    QCOMPARE(json["moves_to"].get<int>(), 1);
    QCOMPARE(json["checks"]["withheld"].get<int>(), 2);
    QCOMPARE(json["checkers"].size(), std::size_t{2});
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
