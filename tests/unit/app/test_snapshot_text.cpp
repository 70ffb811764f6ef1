// A snapshot in the lines and JSON keys of "status".
#include <QtTest>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/node/output/snapshot_text.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::app;

namespace {

// Of the row "Path"; empty: there is none.
std::string path_of(const node::Snapshot& view) {
  const auto lines = snapshot_lines(view);
  const auto found = std::find_if(lines.begin(), lines.end(),
                                  [](const std::string& line) { return line.rfind("Path ", 0) == 0; });
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
    QVERIFY(path_of(view).empty());
    node::PartView& part = view.rounds.part.emplace();
    QVERIFY(path_of(view).empty());
    part.path = {{std::string(64, 'a'), std::nullopt, std::nullopt},
                 {std::string(64, 'b'), std::nullopt, std::nullopt}};
    QCOMPARE(path_of(view), std::string("Path       this node → bbbbbbbbbbbb"));
    part.path[0].computing_ms = 4.25;
    part.path[0].between_ms = 8.5;
    QCOMPARE(path_of(view),
             std::string("Path       this node 4.2 ms → bbbbbbbbbbbb; the line and waiting 8.5 ms"));
    part.path[1].computing_ms = 120.4;
    part.path[1].between_ms = 30.0;
    QCOMPARE(path_of(view),
             std::string("Path       this node 4.2 ms → bbbbbbbbbbbb 120 ms; the line and waiting 38 ms"));
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
