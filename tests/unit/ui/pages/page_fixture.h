// A page with a fake core behind a real bridge, shown as the window would.
#pragma once

#include <QApplication>
#include <QLabel>
#include <QMessageBox>
#include <QPushButton>
#include <QTemporaryDir>
#include <QtTest>
#include <memory>

#include "tests/support/fake_node.h"
#include "ui/bridge/bridge.h"
#include "ui/models/preferences.h"
#include "ui/models/release_view.h"
#include "ui/pages/page.h"
#include "ui/theme/theme.h"

namespace neuroshard::ui {

class LightScheme final : public SchemeSource {
 public:
  Scheme scheme() const override { return Scheme::Light; }
};

// One per test: make the node's data, then show<P>().
class PageFixture {
 public:
  PageFixture()
      : node(std::make_shared<testing::FakeNode>()),
        theme(std::make_unique<LightScheme>()),
        preferences(folder.filePath(QStringLiteral("app.ini"))) {
    QApplication::setAttribute(Qt::AA_DontUseNativeDialogs);
    bridge.attach(node);
  }
  ~PageFixture() {
    page.reset();
    bridge.attach(nullptr);
  }

  Page::Context context() {
    Page::Context made{bridge,       theme,
                       clock,        [this](const QString& key, const QString&) { went_to = key; },
                       &preferences, core_program};
    made.elsewhere = [this] { return elsewhere; };
    made.releases = &releases;
    made.work_ended = [this](const QString& title, const QString& text) {
      ended_work << title + QStringLiteral(": ") + text;
    };
    return made;
  }
  template <class P>
  P& show() {
    auto made = std::make_unique<P>(context());
    P& shown = *made;
    shown.sections().make_all();
    page = std::move(made);
    page->resize(1000, 760);
    page->show();
    page->refresh(*node->snapshot());
    page->shown();
    return shown;
  }
  // The next snapshot, as the window hands it on.
  void publish(const std::function<void(node::Snapshot&)>& change) {
    node->publish(change);
    page->refresh(*node->snapshot());
  }
  // Another core in place of this one, with its first snapshot.
  void replace_core(std::shared_ptr<testing::FakeNode> other,
                    const std::function<void(node::Snapshot&)>& change) {
    bridge.attach(nullptr);
    node = std::move(other);
    node->publish(change);
    bridge.attach(node);
    page->refresh(*node->snapshot());
  }
  template <class W>
  W* find(const char* name) const {
    W* found = page->findChild<W*>(QString::fromLatin1(name));
    if (found == nullptr) qFatal("there is no %s", name);
    return found;
  }
  void click(const char* name) const {
    auto* button = find<QAbstractButton>(name);
    if (!button->isEnabled() || !button->isVisible()) qFatal("%s can't be clicked", name);
    QTest::mouseClick(button, Qt::LeftButton);
  }
  // The question that is open; its text, both paragraphs.
  QMessageBox* question() const { return page->findChild<QMessageBox*>(QStringLiteral("confirm")); }
  void agree() const {
    QTest::mouseClick(question()->findChild<QPushButton*>(QStringLiteral("confirm_action")), Qt::LeftButton);
  }
  bool commanded(const std::string& text) const {
    const auto all = node->commands();
    return std::find(all.begin(), all.end(), text) != all.end();
  }

  std::shared_ptr<testing::FakeNode> node;
  Theme theme;
  Bridge bridge;
  ManualClock clock;
  QTemporaryDir folder;
  Preferences preferences;
  ReleaseView releases;
  QString core_program;
  QString went_to;
  QStringList ended_work;  // "title: text" of what the app would notify of
  bool elsewhere = false;
  std::unique_ptr<Page> page;
};

}  // namespace neuroshard::ui
