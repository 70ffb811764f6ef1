// The window: rail, header, alerts, the page that is open, status bar. It shows the core through the bridge
// and sends commands; it never waits. The application decides about the desktop (tray, quitting, the life of
// the core) through the signals and hooks below.
#pragma once

#include <QMainWindow>
#include <functional>
#include <map>

#include "ui/window/pages.h"

class QListWidget;
class QMenu;
class QStackedWidget;
class QTimer;
class QVBoxLayout;

namespace neuroshard::ui {

class Banner;
struct BannerContent;
class Header;
class IdleSteps;
class StatusLine;
class Veil;

// Threads: ui.
class MainWindow final : public QMainWindow {
  Q_OBJECT
 public:
  // The context's navigate is replaced by the window's own.
  explicit MainWindow(Page::Context context, QWidget* parent = nullptr);
  ~MainWindow() override;

  void open_page(const QString& key, const QString& detail = {});
  QString current_page() const;
  Page* page(const QString& key) const;  // nullptr for an unknown key; makes it when it was never opened
  QStringList page_keys() const;
  // Every page is made, opened or not; true some seconds after the window came up. Tests and measurements
  // ask.
  bool pages_made() const;
  Page::Context context() const { return context_; }

  // A message over the page that stays until it is cleared; the same key replaces it. Most urgent first.
  void show_banner(const QString& key, const BannerContent& content);
  void clear_banner(const QString& key);

  // The context's core_life() has another answer now.
  void core_life_changed() { refresh(); }

  // The menu behind the button in the header: the application adds Quit, Set up again …
  QMenu* menu() const;
  // Asked on close; true = the window may close. Unset: it closes.
  std::function<bool()> may_close;

 Q_SIGNALS:
  void page_opened(const QString& key);

 protected:
  void closeEvent(QCloseEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;

 private:
  void build();
  void build_rail();
  void add_shortcuts();
  void refresh();
  void update_rail();
  void select(int row);
  Page* build_page(int row);
  Page* make_page(int row);
  bool prepare_page(int row);
  void plan_pages();
  void show_core(bool attached);
  void show_alerts(const node::Snapshot& snapshot);

  Page::Context context_;
  std::vector<PageFactory> factories_;
  QListWidget* rail_ = nullptr;
  QStackedWidget* stack_ = nullptr;
  Veil* veil_ = nullptr;  // over the pages while what they show is old
  Header* header_ = nullptr;
  StatusLine* status_ = nullptr;
  QVBoxLayout* banners_ = nullptr;
  QTimer* ageing_ = nullptr;
  std::vector<Page*> pages_;  // nullptr until made
  IdleSteps* page_making_ = nullptr;
  std::map<QString, Banner*> shown_banners_;
  std::map<QString, QString> closed_alerts_;  // key and message: put away by the user until it changes
  int current_ = -1;
};

}  // namespace neuroshard::ui
