// One page of the window. The window refreshes it at most ten times a second while it is shown, and once when
// it comes into view; hidden pages do nothing.
#pragma once

#include <QString>
#include <QWidget>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "core/base/clock.h"
#include "core/node/snapshot.h"
#include "ui/pages/sections.h"
#include "ui/text/state_text.h"

namespace neuroshard::ui {

class Bridge;
class Preferences;
class ReleaseView;
class Theme;

// Threads: ui.
class Page : public QWidget {
  Q_OBJECT
 public:
  struct Context {
    Bridge& bridge;
    const Theme& theme;
    const Clock& clock;  // wall time for "3 minutes ago"; a manual one in tests
    // Opens another page; `detail` is what that page should show (a checkpoint, a setting), empty = nothing
    // special.
    std::function<void(const QString& key, const QString& detail)> navigate = {};
    Preferences* preferences = nullptr;  // what belongs to the app itself; null = its settings are not shown
    QString core_program = {};           // neuroshardd, for diagnostics; empty = not known
    // The state of a core that does not answer ("Starting"), as the app knows it; nothing = the core answers,
    // or its state is unknown.
    std::function<std::optional<CoreLife>()> core_life = [] { return std::nullopt; };
    // The core is another computer's: its paths mean nothing to programs on this one.
    std::function<bool()> elsewhere = [] { return false; };
    const ReleaseView* releases = nullptr;  // newer versions; null = nothing is shown of them
    // Work that may take minutes, such as an export, has ended, well or not: for a notification.
    std::function<void(const QString& title, const QString& text)> work_ended = {};
  };

  explicit Page(const Context& context, QWidget* parent = nullptr)
      : QWidget(parent), context_(context), sections_(*this) {}

  // The parts that the constructor left for later. Until all are made, only title and icon may be called.
  Sections& sections() { return sections_; }

  virtual QString title() const = 0;
  virtual QString icon() const = 0;  // name in resources/icons, without .svg
  virtual void refresh(const node::Snapshot& snapshot) = 0;
  // Came into view, left it: start and stop own timers and queries.
  virtual void shown() {}
  virtual void hidden() {}
  // Once, some time before the page may be opened, in an idle moment: requests the data that it shows
  // first, so that opening it finds it made. It may have been opened before.
  virtual void prepare() {}
  // The detail of navigate().
  virtual void open_detail(const QString&) {}

 protected:
  Bridge& bridge() const { return context_.bridge; }
  const Theme& theme() const { return context_.theme; }
  const Clock& clock() const { return context_.clock; }
  void navigate(const QString& key, const QString& detail = {}) const {
    if (context_.navigate) context_.navigate(key, detail);
  }
  const Context& context() const { return context_; }
  // Whether this snapshot is of another core than the one before: all that is shown of that one must go.
  bool is_another_core(const node::Snapshot& snapshot) {
    const std::string before = std::exchange(core_, snapshot.identity.instance_id);
    return !before.empty() && before != core_;
  }

 private:
  Context context_;
  std::string core_;  // instance id of the last snapshot
  Sections sections_;
};

}  // namespace neuroshard::ui
