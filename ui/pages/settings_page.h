// All settings of the core, drawn from its one table, and those of the app itself. A change applies at once.
#pragma once

#include <QTimer>
#include <vector>

#include "core/base/expected.h"
#include "core/node/queries.h"
#include "ui/pages/page.h"

class QLabel;
class QLineEdit;
class QPushButton;
class QVBoxLayout;

namespace neuroshard::ui {

class AppSettingsCard;
class Card;
class EmptyState;
class HttpPanel;
class SettingRow;

class SettingsPage final : public Page {
  Q_OBJECT
 public:
  explicit SettingsPage(const Context& context, QWidget* parent = nullptr);
  QString title() const override { return tr("Settings"); }
  QString icon() const override { return QStringLiteral("settings"); }
  void refresh(const node::Snapshot& snapshot) override;
  void shown() override;
  void hidden() override;
  void prepare() override;
  void open_detail(const QString& name) override;  // shows that setting and goes to its field

 private:
  using Entries = std::vector<node::SettingEntry>;
  struct Group {
    QString name;
    Card* card = nullptr;
    QPushButton* reset = nullptr;
    std::vector<SettingRow*> rows;
    HttpPanel* http = nullptr;    // of the local HTTP server
    QWidget* gpu_note = nullptr;  // of the limits, where the core has none for it
  };

  void build_nothing(QVBoxLayout* column);
  void ask();
  void take(const Expected<Entries>& entries);
  bool same_rows(const Entries& entries) const;
  void rebuild(const Entries& entries);
  void build_some();
  static void show_reset(const Group& group);
  void show_all();  // once every row is there
  Group& group(const QString& name);
  void add_row(const node::SettingEntry& entry);
  void add_gpu_note(Group& limits);
  void add_http_panel(Group& group);
  HttpPanel* http_panel() const;
  void apply(const QString& name, const QString& value);
  void reset_group(const QString& name);
  void filter();
  SettingRow* row(const QString& name) const;

  QLineEdit* search_;
  QLabel* count_;
  QLabel* problem_;
  QVBoxLayout* cards_;
  EmptyState* nothing_;
  AppSettingsCard* app_ = nullptr;
  std::vector<Group> groups_;
  // Until every row is there the answer counts as open: a change meanwhile is asked for afterwards.
  bool asking_ = false, ask_again_ = false;
  Entries to_build_;  // the next one last
  bool no_gpu_ = false;
  bool may_steer_ = true;  // as the rows were shown last
  QTimer building_;
  QString wanted_detail_;
};

}  // namespace neuroshard::ui
