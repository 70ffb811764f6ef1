#include <QAbstractButton>
#include <QPushButton>

#include "tests/unit/ui/window/camera.h"
#include "tests/unit/ui/window/demo_machine.h"
#include "tests/unit/ui/window/window_fixture.h"
#include "ui/pages/news_dialog.h"
#include "ui/wizard/setup_dialog.h"

namespace neuroshard::ui {
namespace {

// The pages of the assistant, from its first to its last.
bool take_assistant(const QDir& folder) {
  DemoMachine machine;
  SetupDialog setup(machine, {});
  setup.show();
  bool saved = true;
  for (const char* page : {"", "", "", "", "", "setup-limits", "setup-text"}) {
    settle(300);
    answer_words(setup);
    if (*page != 0)
      saved = setup.grab().save(folder.filePath(QLatin1String(page) + QStringLiteral(".png"))) && saved;
    setup.findChild<QPushButton*>(QStringLiteral("setupNext"))->click();
  }
  return saved;
}

// The app's own settings, with what a look for new versions found.
bool take_app_settings(const QDir& folder, WindowFixture& fixture) {
  fixture.window->open_page(QStringLiteral("settings"));
  settle();
  ReleaseState state;
  state.place = fixture.releases.place();
  state.on = true;
  state.found = ReleaseFound::Newest;
  state.looked = fixture.clock.wall_now() - std::chrono::hours(2);
  state.next = fixture.clock.wall_now() + std::chrono::hours(27);
  fixture.releases.set_note(ReleaseWords::note(state, fixture.clock.wall_now()));
  auto* card = fixture.window->findChild<QWidget*>(QStringLiteral("app_settings"));
  card->findChild<QAbstractButton*>(QStringLiteral("app_look_for_releases"))->setChecked(true);
  settle(200);
  return card->grab().save(folder.filePath(QStringLiteral("look-for-versions.png")));
}

}  // namespace

bool take_guide(const QDir& folder, WindowFixture& fixture) {
  MainWindow& window = *fixture.window;
  window.resize(1000, 680);
  window.show();
  bool saved = true;
  window.open_page(QStringLiteral("checkpoints"));
  settle();
  saved = window.grab().save(folder.filePath(QStringLiteral("checkpoints.png"))) && saved;
  saved = take_app_settings(folder, fixture) && saved;
  auto* rules = window.findChild<QWidget*>(QStringLiteral("group_Schedule"));
  saved = rules->grab().save(folder.filePath(QStringLiteral("rules.png"))) && saved;
  NewsDialog news(own_release_notes(QStringLiteral("en")), nullptr);
  news.setAttribute(Qt::WA_DeleteOnClose, false);
  news.show();
  settle(200);
  saved = news.grab().save(folder.filePath(QStringLiteral("what-is-new.png"))) && saved;
  return take_assistant(folder) && saved;
}

}  // namespace neuroshard::ui
