#include "ui/pages/settings_page.h"

#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QShortcut>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/bridge/bridge.h"
#include "ui/models/setting_text.h"
#include "ui/pages/app_settings_card.h"
#include "ui/pages/confirm.h"
#include "ui/pages/page_body.h"
#include "ui/pages/setting_editor.h"
#include "ui/pages/setting_row.h"
#include "ui/theme/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/empty_state.h"

namespace neuroshard::ui {
namespace {

// The groups of the core's table as people read them, in the order of the page.
QString group_title(const QString& group) {
  if (group == QStringLiteral("Limits")) return SettingsPage::tr("Limits");
  if (group == QStringLiteral("Schedule")) return SettingsPage::tr("Schedule");
  if (group == QStringLiteral("Power")) return SettingsPage::tr("Power and presence");
  if (group == QStringLiteral("Training")) return SettingsPage::tr("Training");
  if (group == QStringLiteral("Storage")) return SettingsPage::tr("Storage");
  if (group == QStringLiteral("Network")) return SettingsPage::tr("Network");
  if (group == QStringLiteral("Advanced")) return SettingsPage::tr("Advanced");
  return group;
}

}  // namespace

SettingsPage::SettingsPage(const Context& context, QWidget* parent) : Page(context, parent) {
  QVBoxLayout* column = make_page_column(this);
  auto* top = new QHBoxLayout;
  top->addStretch(1);
  column->addLayout(top);
  count_ = make_label({}, "caption");
  count_->setObjectName(QStringLiteral("search_count"));
  top->addWidget(count_);
  search_ = new QLineEdit;
  search_->setObjectName(QStringLiteral("search"));
  search_->setAccessibleName(tr("Search in settings"));
  search_->setPlaceholderText(tr("Search"));
  search_->setClearButtonEnabled(true);
  search_->addAction(theme().icon(QStringLiteral("search")), QLineEdit::LeadingPosition);
  search_->setMinimumWidth(220);
  connect(search_, &QLineEdit::textChanged, this, &SettingsPage::filter);
  top->addWidget(search_);
  auto* find = new QShortcut(QKeySequence::Find, this);
  connect(find, &QShortcut::activated, search_, [this] { search_->setFocus(Qt::ShortcutFocusReason); });
  problem_ = make_paragraph({}, "danger");
  problem_->hide();
  column->addWidget(problem_);
  cards_ = new QVBoxLayout;
  cards_->setSpacing(2 * grid_step);
  column->addLayout(cards_);
  if (context.preferences != nullptr) {
    app_ = new AppSettingsCard(theme(), *context.preferences, this);
    column->addWidget(app_);
  }
  nothing_ = new EmptyState(theme(), QStringLiteral("search"), tr("No setting matches"),
                            tr("Try a shorter word: names, titles and explanations are searched."));
  nothing_->set_action(tr("Show all"));
  connect(nothing_, &EmptyState::action_clicked, search_, &QLineEdit::clear);
  nothing_->hide();
  column->addWidget(nothing_);
  column->addStretch(1);
  connect(&bridge(), &Bridge::happened, this, [this](const node::Event& event) {
    if (std::holds_alternative<node::SettingChanged>(event)) ask();
  });
  connect(&bridge(), &Bridge::attached_changed, this, [this](bool attached) {
    if (attached && isVisible()) ask();
  });
}

void SettingsPage::shown() {
  ask();
}

void SettingsPage::open_detail(const QString& name) {
  search_->clear();
  wanted_detail_ = name;
  SettingRow* found = row(name);
  if (found == nullptr) return;  // when the settings are there
  wanted_detail_.clear();
  for (QWidget* up = parentWidget(); up != nullptr; up = up->parentWidget()) {
    if (auto* scroll = qobject_cast<QScrollArea*>(up)) scroll->ensureWidgetVisible(found);
  }
  found->editor()->setFocus(Qt::ShortcutFocusReason);
}

void SettingsPage::ask() {
  ask_again_ = asking_;
  if (asking_ || !bridge().attached()) return;
  asking_ = true;
  bridge().query<Entries>(
      this,
      [](node::Node& node, node::Reply<Entries> reply) { return node.query_settings(std::move(reply)); },
      [this](const Expected<Entries>& entries) { take(entries); });
}

void SettingsPage::take(const Expected<Entries>& entries) {
  asking_ = false;
  problem_->setVisible(!entries.ok());
  if (!entries.ok()) {
    problem_->setText(
        tr("The core's settings could not be read: %1").arg(QString::fromStdString(entries.error().message)));
    return;
  }
  if (same_rows(*entries)) {
    for (const node::SettingEntry& entry : *entries)
      row(QString::fromStdString(entry.name))->set_entry(entry);
  } else {
    rebuild(*entries);
  }
  for (Group& group : groups_) {
    // Nothing to reset: no button.
    group.reset->setVisible(std::any_of(group.rows.begin(), group.rows.end(), [](SettingRow* row) {
      return row->is_changed() && !row->entry().locked;
    }));
  }
  filter();
  if (!wanted_detail_.isEmpty()) open_detail(wanted_detail_);
  if (ask_again_) ask();
}

bool SettingsPage::same_rows(const Entries& entries) const {
  std::size_t rows = 0;
  for (const Group& group : groups_) rows += group.rows.size();
  return rows == entries.size() && std::all_of(entries.begin(), entries.end(), [this](const auto& entry) {
           return row(QString::fromStdString(entry.name)) != nullptr;
         });
}

SettingRow* SettingsPage::row(const QString& name) const {
  const std::string wanted = name.toStdString();
  for (const Group& group : groups_)
    for (SettingRow* row : group.rows)
      if (row->entry().name == wanted) return row;
  return nullptr;
}

void SettingsPage::rebuild(const Entries& entries) {
  for (const Group& group : groups_) delete group.card;
  groups_.clear();
  // Fixed places for the groups that people look for, whatever the order of the core's table.
  static const char* order[] = {"Limits", "Schedule", "Power", "Training", "Storage", "Network"};
  for (const char* name : order) {
    const bool used =
        std::any_of(entries.begin(), entries.end(), [name](const auto& e) { return e.group == name; });
    if (used) group(QString::fromLatin1(name));
  }
  for (const node::SettingEntry& entry : entries) add_row(entry);
}

SettingsPage::Group& SettingsPage::group(const QString& name) {
  for (Group& group : groups_)
    if (group.name == name) return group;
  Group made;
  made.name = name;
  made.card = new Card(group_title(name), this);
  made.card->setObjectName(QStringLiteral("group_") + name);
  made.reset = new QPushButton(tr("Reset all"));
  made.reset->setObjectName(QStringLiteral("reset_group"));
  made.reset->setProperty("role", QStringLiteral("link"));
  made.reset->setAccessibleName(tr("Reset all of %1").arg(group_title(name)));
  connect(made.reset, &QPushButton::clicked, this, [this, name] { reset_group(name); });
  made.card->add_control(made.reset);
  cards_->addWidget(made.card);
  groups_.push_back(std::move(made));
  return groups_.back();
}

void SettingsPage::add_row(const node::SettingEntry& entry) {
  Group& into = group(entry.group.empty() ? QStringLiteral("Advanced") : QString::fromStdString(entry.group));
  auto* made = new SettingRow(theme(), entry);
  connect(made, &SettingRow::wanted, this, &SettingsPage::apply);
  into.card->body()->addWidget(made);
  into.rows.push_back(made);
}

void SettingsPage::apply(const QString& name, const QString& value) {
  SettingRow* at = row(name);
  at->set_waiting(true);
  at->show_error({});
  bridge().run(
      this,
      [name = name.toStdString(), value = value.toStdString()](node::Node& node) {
        return node.set_setting(name, value);
      },
      [this, name](const Expected<node::CommandResult>& result) {
        if (SettingRow* changed = row(name)) {
          changed->set_waiting(false);
          changed->show_error(result.ok() ? QString() : QString::fromStdString(result.error().message));
        }
        ask();
      });
}

void SettingsPage::reset_group(const QString& name) {
  QStringList titles;
  std::vector<node::SettingEntry> changed;
  for (SettingRow* row : group(name).rows) {
    if (!row->is_changed() || row->entry().locked) continue;
    changed.push_back(row->entry());
    titles.append(
        QString::fromStdString(row->entry().title.empty() ? row->entry().name : row->entry().title));
  }
  confirm(this,
          {tr("Reset %1?").arg(group_title(name)),
           tr("Back to their defaults: %1.").arg(titles.join(QStringLiteral(", "))), tr("Reset")},
          [this, changed] {
            for (const node::SettingEntry& entry : changed)
              apply(QString::fromStdString(entry.name), QString::fromStdString(entry.default_value));
          });
}

void SettingsPage::filter() {
  const QString words = search_->text().trimmed();
  int found = 0, all = 0;
  for (const Group& group : groups_) {
    bool any = false;
    for (SettingRow* row : group.rows) {
      const bool matches = matches_search(row->entry(), words);
      row->setVisible(matches);
      any = any || matches;
      found += matches ? 1 : 0;
      ++all;
    }
    group.card->setVisible(any);
  }
  const bool app = app_ != nullptr && app_->filter(words);
  if (app_ != nullptr) app_->setVisible(app);
  nothing_->setVisible(!words.isEmpty() && found == 0 && !app);
  count_->setText(words.isEmpty() ? QString() : tr("%1 of %2").arg(found).arg(all));
}

}  // namespace neuroshard::ui
