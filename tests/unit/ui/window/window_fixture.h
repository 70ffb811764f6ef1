// The window as the app makes it, over the demo core.
#pragma once

#include <QApplication>
#include <QTemporaryDir>
#include <memory>

#include "tests/support/demo_node.h"
#include "ui/bridge/bridge.h"
#include "ui/models/preferences.h"
#include "ui/models/release_view.h"
#include "ui/theme/theme.h"
#include "ui/window/main_window.h"

namespace neuroshard::ui {

class FixedScheme final : public SchemeSource {
 public:
  explicit FixedScheme(Scheme scheme) : scheme_(scheme) {}
  Scheme scheme() const override { return scheme_; }

 private:
  Scheme scheme_;
};

class WindowFixture {
 public:
  explicit WindowFixture(bool dark = false)
      : node(testing::make_demo_node(clock)),
        theme(std::make_unique<FixedScheme>(dark ? Scheme::Dark : Scheme::Light)),
        preferences(folder.filePath(QStringLiteral("app.ini"))) {
    theme.apply(*qApp);
    bridge.attach(node);
    releases.set_place(QStringLiteral("https://releases.example/neuroshard"));
    Page::Context context{bridge, theme, clock, {}, &preferences, {}};
    context.releases = &releases;
    window = std::make_unique<MainWindow>(context);
  }
  ~WindowFixture() {
    window.reset();
    bridge.attach(nullptr);
  }

  ManualClock clock;
  std::shared_ptr<testing::FakeNode> node;
  Theme theme;
  Bridge bridge;
  QTemporaryDir folder;
  Preferences preferences;
  ReleaseView releases;
  std::unique_ptr<MainWindow> window;
};

}  // namespace neuroshard::ui
