// ns_screenshots FOLDER [LANGUAGE [NEUROSHARDD]]: PNGs of every page, light and dark, normal and narrow, and
// whole where it is longer than the window; of the pages of a core without a model, of states of the core, of
// dialogs and of the set-up assistant. At the scale that QT_SCALE_FACTOR says. The data is the demo core's:
// the same on every run. "guide" instead of a language: only the pictures of docs/guide, under their names in
// docs/images.
#include <QApplication>
#include <QDir>
#include <QDoubleSpinBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QTableView>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>

#include "core/node/network_view.h"
#include "tests/unit/ui/window/camera.h"
#include "tests/unit/ui/window/demo_machine.h"
#include "tests/unit/ui/window/window_fixture.h"
#include "ui/pages/about_dialog.h"
#include "ui/pages/compare_dialog.h"
#include "ui/pages/invite_dialog.h"
#include "ui/pages/news_dialog.h"
#include "ui/pages/prune_dialog.h"
#include "ui/text/translation.h"
#include "ui/widgets/banner.h"
#include "ui/wizard/setup_dialog.h"

using namespace neuroshard::ui;
namespace node = neuroshard::node;

namespace {

// For content that does not fit, the window grows until nothing scrolls.
void take_whole(Camera& camera, MainWindow& window, const QString& key, const QString& before_name = {}) {
  const QSize before = window.size();
  int hidden = 0;
  for (const QScrollArea* area : window.findChildren<QScrollArea*>())
    if (area->isVisible() && area->widget() == window.page(key))
      hidden = area->verticalScrollBar()->maximum();
  if (hidden == 0) return;
  window.resize(before.width(), before.height() + hidden + 40);
  settle();
  camera.take(window, QStringLiteral("%1%2-%3-whole").arg(before_name, key).arg(before.width()));
  window.resize(before);
}

void take_pages(Camera& camera, WindowFixture& fixture) {
  MainWindow& window = *fixture.window;
  for (const QSize size : {QSize(1280, 800), QSize(800, 600)}) {
    window.resize(size);
    for (const QString& key : window.page_keys()) {
      window.open_page(key);
      settle();
      camera.take(window, QStringLiteral("%1-%2").arg(key).arg(size.width()));
      take_whole(camera, window, key);
    }
  }
}

// Behind a home router that forwards nothing, with some peers.
void show_peers(WindowFixture& fixture) {
  const neuroshard::WallTime now = fixture.clock.wall_now();
  node::NetworkView& view = fixture.node->network;
  view.taking_part = true;
  view.listens_at = "0.0.0.0:9000";
  view.reach = "relayed only";
  view.summary = "This computer can't be dialled: everybody else reaches it through a relay.";
  view.found = {"Other nodes see it at 198.51.100.7.", "UPnP: no router answered."};
  view.advice = "In the settings of your router, forward TCP port 9000 to 10.3.0.2.";
  view.relay = "203.0.113.9:8765";
  view.tested_at = now - std::chrono::minutes(4);
  view.known_nodes = 12;
  view.table_members = 9;
  view.bytes_in = 310u << 20;
  view.bytes_out = 150u << 20;
  view.upload = 1'150'000;
  view.download = 5'600'000;
  view.sources = {{"tracker.example.org:8765", "tracker", true, "registered"},
                  {"192.0.2.77:9000", "peer", false, "the peer can't be reached; tried again in 8 s"}};
  view.bans = {{std::string(64, 'c'), now + std::chrono::hours(1), "records with wrong signatures"}};
  view.refusals = {{"not TLS", 14}};
  for (int i = 0; i < 5; ++i) {
    node::PeerEntry peer;
    peer.id = std::string(64, "abdef"[i]);
    peer.address = "192.0.2." + std::to_string(8 + i) + ":9000";
    peer.way = i == 3 ? "relayed" : "direct";
    peer.connected = i != 4;
    if (peer.connected) peer.round_trip = 0.021 * (i + 1);
    peer.version = "0.1.0";
    peer.memory_bytes = std::uint64_t{8} << (30 + i % 2);
    peer.tokens_per_second = 2100u + 340u * static_cast<unsigned>(i);
    if (i < 3) peer.upload = 1'200'000u << i;
    if (i != 4) peer.download = 6'100'000u << i;
    peer.bytes_in = 40u << (20 + i % 3);
    peer.bytes_out = 21u << (20 + i % 2);
    if (!peer.connected) peer.problem = "it was not to be reached";
    view.peers.push_back(peer);
  }
  for (int i = 0; i < 180; ++i)
    view.traffic.push_back({now + std::chrono::seconds(10 * (i - 180)), 180'000 + 60'000 * std::sin(i / 9.0),
                            90'000 + 900.0 * (i % 40)});
}

// The same core as a member of a network.
void take_rounds(Camera& camera, WindowFixture& fixture) {
  neuroshard::testing::join_demo_network(*fixture.node, fixture.clock);
  show_peers(fixture);
  MainWindow& window = *fixture.window;
  for (const QSize size : {QSize(1280, 800), QSize(800, 600)}) {
    window.resize(size);
    for (const char* key : {"overview", "network", "training"}) {
      window.open_page(QLatin1String(key));
      settle();
      camera.take(window, QStringLiteral("rounds-%1-%2").arg(QLatin1String(key)).arg(size.width()));
      take_whole(camera, window, QLatin1String(key), QStringLiteral("rounds-"));
    }
  }
}

// The sentences about a change of the model's size.
void take_sizes(Camera& camera, WindowFixture& fixture) {
  MainWindow& window = *fixture.window;
  window.resize(1280, 800);
  window.open_page(QStringLiteral("network"));
  auto* card = window.findChild<QWidget*>(QStringLiteral("capacity_card"));
  const auto take = [&](const char* word, const std::function<void(node::NetworkMemoryView&)>& change) {
    fixture.node->publish([&change](node::Snapshot& next) { change(*next.rounds.memory); });
    settle();
    camera.take(*card, QStringLiteral("sizes-%1").arg(QLatin1String(word)));
  };
  take("up", [](node::NetworkMemoryView& memory) {
    memory.asked = node::SizeChange::Up;
    memory.results = 2;
    memory.next->with_room = 5;
    memory.next->room_percent = 83;
    memory.next->network_bytes = 12'000'000'000;
  });
  take("changing", [](node::NetworkMemoryView& memory) { memory.changing = true; });
  take("down", [](node::NetworkMemoryView& memory) {
    memory.changing = false;
    memory.asked = node::SizeChange::Down;
    memory.present.needs_percent = 50;
    memory.present.with_room = 1;
    memory.present.room_percent = 16;
    memory.present.network_bytes = 16'000'000'000;
    memory.smaller = node::NetworkMemoryView::Model{6, 192, 9'400'000, 600'000'000, 5};
  });
  take("kept", [](node::NetworkMemoryView& memory) {
    memory.asked = node::SizeChange::None;
    memory.can_change = false;
  });
}

// The answers to "what if", in the smallest window, too.
void take_what_if(Camera& camera, WindowFixture& fixture) {
  MainWindow& window = *fixture.window;
  window.open_page(QStringLiteral("network"));
  auto* card = window.findChild<QWidget*>(QStringLiteral("capacity_card"));
  node::WhatIf& answer = fixture.node->decided.what_if;
  answer.counts = true;
  answer.now.memory = *fixture.node->snapshot()->rounds.memory;
  answer.then = answer.now;
  answer.then.memory.own_bytes = 6'000'000'000;
  for (const QSize size : {QSize(1280, 800), QSize(800, 600)}) {
    window.resize(size);
    auto* memory = window.findChild<QDoubleSpinBox*>(QStringLiteral("what_if_memory"));
    answer.part.reset();
    answer.votes.reset();
    answer.then.memory.offered_bytes = 18'500'000'000;
    answer.then.asks = node::SizeChange::Up;
    memory->setValue(5.5);  // a change is asked about
    memory->setValue(6);
    settle(1200);
    camera.take(*card, QStringLiteral("what-if-memory-%1").arg(size.width()));
    answer.then.asks = node::SizeChange::None;
    answer.then.memory.offered_bytes = 12'500'000'000;
    answer.part = node::PartWithout{2, 3, 1, 1, 3, false};
    answer.votes = node::VotesWithout{24, 12, false, 1, 1};
    window.findChild<QAbstractButton*>(QStringLiteral("what_if_leave"))->click();
    settle(1200);
    camera.take(*card, QStringLiteral("what-if-leave-%1").arg(size.width()));
    take_whole(camera, window, QStringLiteral("network"), QStringLiteral("what-if-"));
  }
}

void take_states(Camera& camera, WindowFixture& fixture) {
  MainWindow& window = *fixture.window;
  window.resize(1280, 800);
  window.open_page(QStringLiteral("overview"));
  fixture.node->publish([](node::Snapshot& next) {
    next.state = node::RunState::Paused;
    next.pause_reasons = {{"battery", "on battery, 63 %: resumes on mains power", {}, true},
                          {"metered", "the connection is paid by volume", {}, true}};
    next.alerts.push_back({"training_failed",
                           node::Severity::Critical,
                           "The disk refused a write: no space left. Free some space; training then goes on.",
                           {}});
  });
  settle();
  camera.take(window, QStringLiteral("state-paused"));
  fixture.bridge.attach(nullptr);
  settle();
  camera.take(window, QStringLiteral("state-core-gone"));
}

void take_empty(Camera& camera, WindowFixture& fixture) {
  const auto core = std::make_shared<neuroshard::testing::FakeNode>();
  core->series["loss"] = {};
  fixture.bridge.attach(core);
  fixture.window = std::make_unique<MainWindow>(
      Page::Context{fixture.bridge, fixture.theme, fixture.clock, {}, &fixture.preferences, {}});
  fixture.window->resize(1280, 800);
  fixture.window->show();
  for (const QString& key : fixture.window->page_keys()) {
    fixture.window->open_page(key);
    settle();
    camera.take(*fixture.window, QStringLiteral("empty-%1").arg(key));
  }
  fixture.bridge.attach(nullptr);
}

// The app's own settings and the notice of a version, after a look for new ones.
void take_releases(Camera& camera, WindowFixture& fixture) {
  MainWindow& window = *fixture.window;
  ReleaseState state;
  state.place = fixture.releases.place();
  state.on = true;
  state.looked = fixture.clock.wall_now() - std::chrono::hours(2);
  state.next = fixture.clock.wall_now() + std::chrono::hours(27);
  state.version = QStringLiteral("0.2.0");
  state.why = QStringLiteral("the signature was made with another key");
  for (const QSize size : {QSize(1280, 800), QSize(800, 600)}) {
    window.resize(size);
    window.open_page(QStringLiteral("settings"));
    settle();
    auto* card = window.findChild<QWidget*>(QStringLiteral("app_settings"));
    card->findChild<QAbstractButton*>(QStringLiteral("app_look_for_releases"))->setChecked(true);
    for (const auto& [found, word] :
         {std::pair(ReleaseFound::Newest, "newest"), std::pair(ReleaseFound::Newer, "newer"),
          std::pair(ReleaseFound::Refused, "refused")}) {
      state.found = found;
      fixture.releases.set_note(ReleaseWords::note(state, fixture.clock.wall_now()));
      settle(100);
      camera.take(*card, QStringLiteral("settings-app-%1-%2").arg(QLatin1String(word)).arg(size.width()));
    }
    for (const InstallKind kind : {InstallKind::Package, InstallKind::Portable}) {
      const auto words = ReleaseWords::notice(state, QStringLiteral("0.1.0"), kind);
      BannerContent content;
      content.title = words.title;
      content.text = words.text;
      content.actions = {{QStringLiteral("Open the page"), [] {}, false}};
      content.can_close = true;
      window.show_banner(QStringLiteral("release"), content);
      window.open_page(QStringLiteral("overview"));
      settle();
      camera.take(window, QStringLiteral("notice-%1-%2").arg(static_cast<int>(kind)).arg(size.width()));
    }
    window.clear_banner(QStringLiteral("release"));
  }
  fixture.releases.set_note({});
}

void take_dialogs(Camera& camera, WindowFixture& fixture) {
  node::CheckpointComparison comparison;
  comparison.first = fixture.node->checkpoints[1];
  comparison.second = fixture.node->checkpoints[0];
  double distance = 0.02;
  for (const node::SlotEntry& slot : fixture.node->slots) {
    distance = 0.02 + std::fmod(distance * 7.3, 0.06);
    comparison.slots.push_back({slot.name, distance * 50, distance, 1 - distance / 10});
  }
  comparison.distance = 12.4;
  comparison.relative = 0.031;
  auto* compare = new CompareDialog(fixture.theme, comparison, nullptr);
  compare->show();
  settle();
  camera.take(*compare, QStringLiteral("dialog-compare"));
  compare->close();
  auto* about = new AboutDialog(fixture.theme, QStringLiteral("0.1.0"), QStringLiteral("0.1.0"), nullptr);
  about->show();
  settle();
  camera.take(*about, QStringLiteral("dialog-about"));
  about->close();
  std::vector<ReleaseNote> notes = own_release_notes(QStringLiteral("en"));
  for (const char* shown : {"one", "many"}) {
    auto* news = new NewsDialog(notes, nullptr);
    news->show();
    settle();
    camera.take(*news, QStringLiteral("dialog-news-%1").arg(QLatin1String(shown)));
    news->close();
    const ReleaseNote first = notes.front();
    for (int i = 0; i < 4; ++i) notes.push_back(first);
  }
  fixture.node->prune = {
      {fixture.node->checkpoints[5].name, fixture.node->checkpoints[4].name}, 502u << 20, 4};
  auto* prune = new PruneDialog(fixture.bridge);
  prune->show();
  settle();
  camera.take(*prune, QStringLiteral("dialog-prune"));
  prune->close();
  const QString link = QStringLiteral("neuroshard:join?network=") + QString(240, QLatin1Char('x'));
  auto* invite = new InviteDialog({link, QStringLiteral("tiny-shakespeare"), true, false});
  invite->show();
  settle();
  camera.take(*invite, QStringLiteral("dialog-invite"));
  invite->close();
  // A click's dialog, over its page.
  MainWindow& window = *fixture.window;
  window.resize(1280, 800);
  window.open_page(QStringLiteral("checkpoints"));
  settle();
  auto* table = window.findChild<QTableView*>(QStringLiteral("checkpoint_table"));
  table->selectRow(table->model()->rowCount() - 1);
  window.findChild<QPushButton*>(QStringLiteral("restore"))->click();
  settle();
  if (auto* question = window.findChild<QDialog*>(QStringLiteral("confirm")); question != nullptr) {
    camera.take(*question, QStringLiteral("dialog-confirm"));
    question->close();
  }
}

void take_setup(Camera& camera) {
  DemoMachine machine;
  SetupDialog setup(machine, {});
  setup.show();
  for (int page = 1; page <= 7; ++page) {
    settle(200);
    answer_words(setup);
    camera.take(setup, QStringLiteral("setup-%1").arg(page));
    auto* next = setup.findChild<QPushButton*>(QStringLiteral("setupNext"));
    if (next == nullptr || !next->isEnabled()) break;
    next->click();
    if (!setup.isVisible()) break;
  }
}

}  // namespace

int main(int count, char** arguments) {
  QApplication application(count, arguments);
  if (count < 2) {
    std::fprintf(stderr, "usage: ns_screenshots FOLDER [en|pseudo|pseudo-rtl|guide [PATH OF neuroshardd]]\n");
    return 2;
  }
  const QString language = count > 2 ? QString::fromLocal8Bit(arguments[2]) : QStringLiteral("en");
  QLocale::setDefault(QLocale(QLocale::English, QLocale::UnitedKingdom));
  install_translation(application, language);
  if (language == QLatin1String("pseudo-rtl")) QApplication::setLayoutDirection(Qt::RightToLeft);
  const QDir folder(QString::fromLocal8Bit(arguments[1]));
  if (!folder.mkpath(QStringLiteral("."))) {
    std::fprintf(stderr, "the folder cannot be made\n");
    return 1;
  }
  WindowFixture fixture;
  if (language == QLatin1String("guide")) return take_guide(folder, fixture) ? 0 : 1;
  Camera camera(folder, language, fixture.theme);
  fixture.window->show();
  take_pages(camera, fixture);
  take_dialogs(camera, fixture);
  take_releases(camera, fixture);
  if (count > 3) {
    take_partition(camera, fixture.theme, QString::fromLocal8Bit(arguments[3]));
    take_diagnostics(camera, fixture.theme, QString::fromLocal8Bit(arguments[3]));
  }
  take_setup(camera);
  take_rounds(camera, fixture);
  take_what_if(camera, fixture);
  take_sizes(camera, fixture);
  take_states(camera, fixture);
  take_empty(camera, fixture);
  std::printf("%d pictures\n", camera.written);
  return camera.failed == 0 ? 0 : 1;
}
