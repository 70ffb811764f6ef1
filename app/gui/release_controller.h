// Looks for new releases while the owner allows it, and says what it found: in the settings, and in a quiet notice
// over the pages. It never installs anything.
//
// Threads: ui; the network is waited for on a thread of its own.
#pragma once

#include <QObject>
#include <memory>
#include <optional>

#include "app/gui/background.h"
#include "app/gui/user_config.h"
#include "core/base/cancel.h"
#include "core/release/look.h"
#include "core/release/schedule.h"
#include "ui/models/preferences.h"
#include "ui/models/release_view.h"
#include "ui/window/main_window.h"

namespace neuroshard::gui {

// Of the build, or of a test.
struct ReleasePlace {
  QString url, key;  // NS_RELEASES_URL, NS_RELEASES_KEY; empty: none
  QString running;   // the version of this program
  QString program;   // its path
};

struct ReleaseServices {
  std::shared_ptr<release::Source> source = release::make_web_source();
  release::Chance chance = release::system_chance();
};

class ReleaseController final : public QObject {
  Q_OBJECT
 public:
  struct Parts {  // all outlive it
    UserConfig& config;
    ui::Preferences& preferences;
    ui::ReleaseView& view;
    ui::MainWindow& window;
    const Clock& clock;
  };
  ReleaseController(Parts parts, ReleasePlace place, ReleaseServices services);
  ~ReleaseController() override;  // ends a look within a second

  static constexpr const char* banner = "release";

  // For a timer: begins a look when it is due.
  void tick();

 private:
  void allow();
  void look();
  void on_look(const Expected<Version>& found);
  void remember();
  void show();
  void show_notice();
  std::optional<Version> seen() const;

  const Parts parts_;
  const ReleasePlace place_;
  const ReleaseServices services_;
  std::optional<release::Place> parsed_;
  std::optional<Version> running_;
  std::optional<WallTime> due_;
  ui::ReleaseState state_;
  CancelSource stop_;      // of the look that runs
  QString shown_version_;  // in the notice; empty: there is none
  Background background_;
};

}  // namespace neuroshard::gui
