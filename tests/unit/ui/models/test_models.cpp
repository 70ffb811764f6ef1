// The texts of tables and forms for the values of the seam: checkpoints and their branches, shards,
// comparisons, settings.
#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QtTest>

#include "tests/support/test_main.h"
#include "ui/models/checkpoint_branches.h"
#include "ui/models/checkpoint_model.h"
#include "ui/models/comparison_model.h"
#include "ui/models/conversation.h"
#include "ui/models/preferences.h"
#include "ui/models/setting_text.h"
#include "ui/models/shard_model.h"
#include "ui/models/token_text.h"

using namespace neuroshard;      // NOLINT
using namespace neuroshard::ui;  // NOLINT

namespace {

node::CheckpointEntry checkpoint(const std::string& name, std::uint64_t step,
                                 const std::string& parent = {}) {
  node::CheckpointEntry entry;
  entry.name = name;
  entry.step = step;
  entry.at = WallTime(std::chrono::milliseconds(1'700'000'000'000 + static_cast<std::int64_t>(step) * 1000));
  entry.bytes = 3u << 20;
  entry.loss = 4.0;
  entry.hash = "abcdef0123456789";
  entry.parent = parent;
  return entry;
}

QString cell(const QAbstractItemModel& model, int row, int column) {
  return model.index(row, column).data().toString();
}

}  // namespace

class TestModels : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void checkpoints_are_told_in_words();
  void checkpoints_change_in_place();
  void unknown_losses_sort_behind_known_ones();
  void a_straight_history_is_one_branch();
  void a_restore_makes_a_second_branch();
  void a_parent_that_is_gone_is_bridged();
  void contradicting_parents_end();
  void shards_change_in_place();
  void experts_count_with_their_layer();
  void settings_texts_become_numbers_and_back();
  void nothing_set_begins_in_a_unit_of_use();
  void the_help_says_what_zero_means();
  void search_finds_words_anywhere();
  void program_lists_have_no_doubles();
  void tokens_can_be_seen();
  void a_chat_is_one_text_and_ends_with_its_turn();
  void preferences_are_kept();
};

void TestModels::checkpoints_are_told_in_words() {
  CheckpointModel model;
  QAbstractItemModelTester tester(&model);
  auto old = checkpoint("a", 1200);
  old.pinned = true;
  old.intact = true;
  old.verified_at = old.at;
  old.held_out_loss = 3.14159;
  auto damaged = checkpoint("b", 1300);
  damaged.intact = false;
  damaged.loss.reset();
  model.set_now(checkpoint("", 1320).at);
  model.set_entries({checkpoint("c", 1310), damaged, old});
  QCOMPARE(cell(model, 0, CheckpointModel::Step), QStringLiteral("1,310 (newest)"));
  QCOMPARE(cell(model, 0, CheckpointModel::Saved), QStringLiteral("10\u00a0s ago"));
  QCOMPARE(cell(model, 0, CheckpointModel::Checked), QStringLiteral("not checked"));
  QCOMPARE(cell(model, 1, CheckpointModel::Checked), QStringLiteral("damaged"));
  QCOMPARE(cell(model, 1, CheckpointModel::Loss), QStringLiteral("—"));
  QCOMPARE(cell(model, 2, CheckpointModel::HeldOut), QStringLiteral("3.142"));
  QCOMPARE(cell(model, 2, CheckpointModel::Pinned), QStringLiteral("pinned"));
  QVERIFY(cell(model, 2, CheckpointModel::Checked).startsWith(QStringLiteral("intact")));
  QCOMPARE(cell(model, 2, CheckpointModel::Size), QStringLiteral("3.00\u00a0MiB"));
  QCOMPARE(cell(model, 2, CheckpointModel::Hash), QStringLiteral("abcdef012345"));
}

void TestModels::checkpoints_change_in_place() {
  CheckpointModel model;
  QAbstractItemModelTester tester(&model);
  model.set_entries({checkpoint("c", 3), checkpoint("b", 2), checkpoint("a", 1)});
  QSignalSpy reset(&model, &QAbstractItemModel::modelReset),
      inserted(&model, &QAbstractItemModel::rowsInserted), removed(&model, &QAbstractItemModel::rowsRemoved),
      changed(&model, &QAbstractItemModel::dataChanged);
  const QPersistentModelIndex stays(model.index(1, 0));
  auto pinned = checkpoint("b", 2);
  pinned.pinned = true;
  model.set_entries({checkpoint("d", 4), checkpoint("c", 3), pinned});
  QCOMPARE(reset.size(), 0);
  QCOMPARE(inserted.size(), 1);
  QCOMPARE(removed.size(), 1);
  QVERIFY(!changed.isEmpty());
  QCOMPARE(stays.row(), 2);
  QCOMPARE(stays.data(CheckpointModel::NameRole).toString(), QStringLiteral("b"));
  QCOMPARE(model.row_of(QStringLiteral("c")), 1);
  QCOMPARE(model.row_of(QStringLiteral("a")), -1);
  model.set_entries({});
  QCOMPARE(model.rowCount(), 0);
}

void TestModels::unknown_losses_sort_behind_known_ones() {
  CheckpointModel model;
  auto unknown = checkpoint("b", 2);
  unknown.loss.reset();
  model.set_entries({unknown, checkpoint("a", 1)});
  const auto value = [&model](int row) {
    return model.index(row, CheckpointModel::Loss).data(CheckpointModel::SortRole).toDouble();
  };
  QVERIFY(value(0) > value(1));
}

void TestModels::a_straight_history_is_one_branch() {
  const auto places =
      place_on_branches({checkpoint("c", 3, "b"), checkpoint("b", 2, "a"), checkpoint("a", 1)});
  QCOMPARE(places[0].lane, 0);
  QCOMPARE(places[1].lane, 0);
  QCOMPARE(places[2].lane, 0);
  QCOMPARE(places[0].parent, 1);
  QCOMPARE(places[2].parent, -1);
}

void TestModels::a_restore_makes_a_second_branch() {
  // a -> b -> c, then back to a and on: d -> e. The newest, e, is on the main line.
  const auto places =
      place_on_branches({checkpoint("e", 3, "d"), checkpoint("d", 2, "a"), checkpoint("c", 3, "b"),
                         checkpoint("b", 2, "a"), checkpoint("a", 1)});
  QCOMPARE(places[0].lane, 0);
  QCOMPARE(places[1].lane, 0);
  QCOMPARE(places[4].lane, 0);
  QCOMPARE(places[2].lane, 1);
  QCOMPARE(places[3].lane, 1);
  QCOMPARE(places[3].parent, 4);
}

void TestModels::a_parent_that_is_gone_is_bridged() {
  const auto places = place_on_branches({checkpoint("c", 3, "b"), checkpoint("a", 1)});
  QCOMPARE(places[0].lane, 0);
  QCOMPARE(places[1].lane, 0);
  QCOMPARE(places[0].parent, -1);
}

void TestModels::contradicting_parents_end() {
  // A save that claims to go on from a newer one, or from itself.
  const auto places = place_on_branches({checkpoint("b", 2, "b"), checkpoint("a", 1, "b")});
  QCOMPARE(places.size(), std::size_t{2});
  QCOMPARE(places[0].parent, -1);
  QCOMPARE(places[1].parent, -1);
}

void TestModels::shards_change_in_place() {
  ShardModel model;
  QAbstractItemModelTester tester(&model);
  node::ShardEntry one{0, "shard-0", "cached", 2'500'000, 10u << 20, true, "ff00"};
  node::ShardEntry two{1, "shard-1", "missing", 0, 0, false, ""};
  model.set_entries({one, two});
  QCOMPARE(cell(model, 0, ShardModel::State), QStringLiteral("cached, being read"));
  QCOMPARE(cell(model, 1, ShardModel::State), QStringLiteral("missing"));
  QCOMPARE(cell(model, 1, ShardModel::Tokens), QStringLiteral("—"));
  QSignalSpy changed(&model, &QAbstractItemModel::dataChanged),
      reset(&model, &QAbstractItemModel::modelReset);
  two.state = "cached";
  model.set_entries({one, two});
  QCOMPARE(changed.size(), 1);
  QCOMPARE(changed.front().front().toModelIndex().row(), 1);
  QCOMPARE(cell(model, 1, ShardModel::State), QStringLiteral("cached"));
  model.set_entries({one});
  QCOMPARE(model.rowCount(), 1);
  QCOMPARE(reset.size(), 0);
}

void TestModels::experts_count_with_their_layer() {
  // Norms of the weights: 10 for the layer, 10 for the expert; differences 3 and 4: together 5 over 10·√2.
  const auto layers = distance_by_layer(
      {{"embed", 1, 0.5, 0.9}, {"layer 3", 3, 0.3, 0.9}, {"expert 3.0", 4, 0.4, 0.9}, {"head", 0, 0, 1}});
  QCOMPARE(layers.size(), std::size_t{3});
  QCOMPARE(layers[1].name, std::string("layer 3"));
  QVERIFY(std::abs(layers[1].relative - 5 / (10 * std::sqrt(2.0))) < 1e-12);
  QCOMPARE(layers[2].relative, 0.0);
}

void TestModels::settings_texts_become_numbers_and_back() {
  node::SettingEntry bytes, seconds, integer;
  bytes.type = "bytes";
  seconds.type = "seconds";
  integer.type = "integer";
  const auto memory = read_scaled(bytes, QStringLiteral("1536MiB"));
  QVERIFY(memory.has_value());
  QCOMPARE(memory->number, std::uint64_t{1536});
  QCOMPARE(write_scaled("bytes", *memory), QStringLiteral("1536MiB"));
  QCOMPARE(write_scaled("seconds", *read_scaled(seconds, QStringLiteral("10min"))), QStringLiteral("10min"));
  QCOMPARE(write_scaled("bytes", *read_scaled(bytes, QStringLiteral("0"))), QStringLiteral("0"));
  QCOMPARE(read_scaled(integer, QStringLiteral("12"))->number, std::uint64_t{12});
  QVERIFY(!read_scaled(bytes, QStringLiteral("much")).has_value());
  QVERIFY(!read_scaled(bytes, QStringLiteral("1.5GiB")).has_value());
  QVERIFY(!read_scaled(integer, QString()).has_value());
}

// Nobody's line carries GiB in a second.
void TestModels::nothing_set_begins_in_a_unit_of_use() {
  const auto unit_of = [](const char* type, const char* unit) {
    node::SettingEntry entry;
    entry.type = type;
    entry.unit = unit;
    return setting_units(type)[read_scaled(entry, QStringLiteral("0"))->unit].suffix;
  };
  QCOMPARE(unit_of("bytes", "B"), QStringLiteral("GiB"));
  QCOMPARE(unit_of("bytes", "B/s"), QStringLiteral("MiB"));
  QCOMPARE(unit_of("seconds", "s"), QStringLiteral("min"));
}

void TestModels::the_help_says_what_zero_means() {
  QCOMPARE(meaning_of_zero(QStringLiteral("memory of the whole process; 0 = no limit")),
           QStringLiteral("no limit"));
  QCOMPARE(meaning_of_zero(QStringLiteral("CPU threads; 0 = all usable")), QStringLiteral("all usable"));
  QCOMPARE(meaning_of_zero(QStringLiteral("level 10 = much")), QString());
}

void TestModels::search_finds_words_anywhere() {
  node::SettingEntry entry;
  entry.name = "memory_limit";
  entry.title = "Memory";
  entry.group = "Limits";
  entry.help = "memory of the whole process";
  QVERIFY(matches_search(entry, QStringLiteral("MEM")));
  QVERIFY(matches_search(entry, QStringLiteral("process limits")));
  QVERIFY(matches_search(entry, QString()));
  QVERIFY(!matches_search(entry, QStringLiteral("memory battery")));
}

void TestModels::program_lists_have_no_doubles() {
  QCOMPARE(read_programs(QStringLiteral(" vlc, steam ,,vlc")), QStringList({"vlc", "steam"}));
  QCOMPARE(write_programs({QStringLiteral("vlc"), QStringLiteral("steam")}), QStringLiteral("vlc, steam"));
}

void TestModels::tokens_can_be_seen() {
  QCOMPARE(visible_token(" the"), QStringLiteral("·the"));
  QCOMPARE(visible_token("\n"), QStringLiteral("↵"));
  QCOMPARE(visible_token("\xe2\x82"), QStringLiteral("⟨E2 82⟩"));
  QCOMPARE(visible_token("é"), QStringLiteral("é"));
  QCOMPARE(visible_token(""), QStringLiteral("∅"));
  QCOMPARE(visible_token(std::string("\0", 1)), QStringLiteral("⟨00⟩"));
}

void TestModels::a_chat_is_one_text_and_ends_with_its_turn() {
  Conversation talk;
  talk.ask(QStringLiteral("Hello"));
  QCOMPARE(talk.prompt(1000), QStringLiteral("User: Hello\nAssistant:"));
  QVERIFY(!talk.add(QStringLiteral(" Hi.\nUs")));
  QVERIFY(talk.add(QStringLiteral("er: and more")));  // the mark came in two pieces
  QCOMPARE(talk.turns().back().answer, QStringLiteral(" Hi."));
  talk.ask(QStringLiteral("Who are you?"));
  QCOMPARE(talk.prompt(1000), QStringLiteral("User: Hello\nAssistant: Hi.\nUser: Who are you?\nAssistant:"));
  // Rows beyond the bound are removed, oldest first.
  QCOMPARE(talk.prompt(40), QStringLiteral("User: Who are you?\nAssistant:"));
}

void TestModels::preferences_are_kept() {
  const QTemporaryDir folder;
  const QString file = folder.filePath(QStringLiteral("app.ini"));
  {
    Preferences first(file);
    QCOMPARE(first.theme(), ThemeChoice::System);
    QVERIFY(first.close_to_tray());
    QVERIFY(first.notify(NotificationClass::Problem));
    QVERIFY(!first.notify(NotificationClass::Pause));
    QSignalSpy changed(&first, &Preferences::changed);
    first.set_theme(ThemeChoice::Dark);
    first.set_theme(ThemeChoice::Dark);
    QCOMPARE(changed.size(), 1);
    first.set_close_to_tray(false);
    first.set_notify(NotificationClass::Pause, true);
  }
  const Preferences second(file);
  QCOMPARE(second.theme(), ThemeChoice::Dark);
  QVERIFY(!second.close_to_tray());
  QVERIFY(second.notify(NotificationClass::Pause));
}

NS_UI_TEST(TestModels)
#include "test_models.moc"
