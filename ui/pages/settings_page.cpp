#include "ui/pages/settings_page.h"

#include <QElapsedTimer>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QShortcut>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "ui/bridge/bridge.h"
#include "ui/models/setting_text.h"
#include "ui/models/setting_words.h"
#include "ui/pages/app_settings_card.h"
#include "ui/pages/confirm.h"
#include "ui/pages/http_panel.h"
#include "ui/pages/page_body.h"
#include "ui/pages/setting_editor.h"
#include "ui/pages/setting_row.h"
#include "ui/theme/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/empty_state.h"

namespace neuroshard::ui {
namespace {

constexpr int building_ms =
    4;  // of one turn of the event loop; what the rows of a turn cost once more is their layout

// The groups of the core's table as people read them.
QString group_title(const QString& group) {
  if (group == QStringLiteral("Limits")) return SettingsPage::tr("Limits");
  if (group == QStringLiteral("Schedule")) return SettingsPage::tr("Schedule");
  if (group == QStringLiteral("Power")) return SettingsPage::tr("Power and presence");
  if (group == QStringLiteral("Training")) return SettingsPage::tr("Training");
  if (group == QStringLiteral("Storage")) return SettingsPage::tr("Storage");
  if (group == QStringLiteral("Network")) return SettingsPage::tr("Network");
  if (group == QStringLiteral("Local HTTP")) return SettingsPage::tr("Local HTTP server");
  if (group == QStringLiteral("Advanced")) return SettingsPage::tr("Advanced");
  return group;
}

// Whether the core could use a GPU, and so ask how much of it: it says itself what may compute.
bool only_the_processor_computes(const std::vector<node::SettingEntry>& entries) {
  const auto device = std::find_if(entries.begin(), entries.end(),
                                   [](const node::SettingEntry& entry) { return entry.name == "device"; });
  if (device == entries.end()) return false;
  const QStringList choices = setting_choices(*device);
  return std::all_of(choices.begin(), choices.end(), [](const QString& choice) {
    return choice == QLatin1String("cpu") || choice == QLatin1String("auto");
  });
}

// The words of a part that is no setting, for the search.
QString texts_of(const QWidget* part) {
  QString texts;
  for (const QLabel* label : part->findChildren<QLabel*>()) texts += label->text() + u' ';
  return texts;
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
  sections().add([this, column] {
    if (this->context().preferences == nullptr) return;
    app_ = new AppSettingsCard(theme(), *this->context().preferences, this->context().releases, this);
    column->addWidget(app_);
  });
  sections().add([this, column] { build_nothing(column); });
  building_.setInterval(0);
  connect(&building_, &QTimer::timeout, this, &SettingsPage::build_some);
  connect(&bridge(), &Bridge::event_received, this, [this](const node::Event& event) {
    if (sections().done() && std::holds_alternative<node::SettingChanged>(event)) ask();
  });
  connect(&bridge(), &Bridge::attached_changed, this, [this](bool attached) {
    if (!attached) return;
    // The answers of the connection before say nothing about this one.
    for (const Group& group : groups_)
      for (SettingRow* row : group.rows) row->show_error({});
    if (isVisible()) ask();
  });
}

// Shown when the search finds nothing.
void SettingsPage::build_nothing(QVBoxLayout* column) {
  nothing_ = new EmptyState(theme(), QStringLiteral("search"), tr("No setting matches"),
                            tr("Try a shorter word. The search covers names, titles and explanations."));
  nothing_->set_action(tr("Show all"));
  connect(nothing_, &EmptyState::action_clicked, search_, &QLineEdit::clear);
  nothing_->hide();
  column->addWidget(nothing_);
  column->addStretch(1);
}

void SettingsPage::refresh(const node::Snapshot& snapshot) {
  const bool may_steer = bridge().may_steer();
  if (std::exchange(may_steer_, may_steer) != may_steer) {
    for (const Group& group : groups_) {
      for (SettingRow* row : group.rows) row->set_may_steer(may_steer);
      show_reset(group);
    }
  }
  if (HttpPanel* panel = http_panel()) panel->show_state(snapshot);
}

void SettingsPage::shown() {
  ask();
  if (HttpPanel* panel = http_panel()) panel->look();
}

void SettingsPage::hidden() {
  if (HttpPanel* panel = http_panel()) panel->hide_key();
}

HttpPanel* SettingsPage::http_panel() const {
  for (const Group& group : groups_)
    if (group.http != nullptr) return group.http;
  return nullptr;
}

void SettingsPage::prepare() {
  ask();
}

void SettingsPage::open_detail(const QString& name) {
  search_->clear();
  wanted_detail_ = name;
  SettingRow* found = row(name);
  if (found == nullptr || building_.isActive()) return;  // when the settings are there
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
  problem_->setVisible(!entries.ok());
  if (!entries.ok()) {
    asking_ = false;
    problem_->setText(
        tr("The core's settings could not be read: %1").arg(QString::fromStdString(entries.error().message)));
    return;
  }
  if (same_rows(*entries)) {
    for (const node::SettingEntry& entry : *entries)
      row(QString::fromStdString(entry.name))->set_entry(entry);
    show_all();
  } else {
    rebuild(*entries);
  }
}

void SettingsPage::show_all() {
  asking_ = false;
  for (const Group& group : groups_) show_reset(group);
  const SettingRow* port = row(QStringLiteral("http_port"));
  if (HttpPanel* panel = http_panel(); panel != nullptr && port != nullptr)
    panel->set_port(QString::fromStdString(port->entry().value));
  filter();
  if (!wanted_detail_.isEmpty()) open_detail(wanted_detail_);
  if (ask_again_) ask();
}

void SettingsPage::show_reset(const Group& group) {
  // Nothing to reset: no button.
  group.reset->setVisible(std::any_of(group.rows.begin(), group.rows.end(), [](SettingRow* row) {
    return row->is_changed() && row->can_change();
  }));
}

bool SettingsPage::same_rows(const Entries& entries) const {
  std::size_t rows = 0;
  for (const Group& group : groups_) rows += group.rows.size();
  return rows == entries.size() && std::all_of(entries.begin(), entries.end(), [this](const auto& entry) {
           const SettingRow* shown = row(QString::fromStdString(entry.name));
           return shown != nullptr && shown->entry().choices == entry.choices;
         });
}

SettingRow* SettingsPage::row(const QString& name) const {
  const std::string wanted = name.toStdString();
  for (const Group& group : groups_)
    for (SettingRow* row : group.rows)
      if (row->entry().name == wanted) return row;
  return nullptr;
}

// Rows cost more than a frame has time for: they are made in pieces, group by group, and each group is shown
// when it is whole.
void SettingsPage::rebuild(const Entries& entries) {
  for (const Group& group : groups_) delete group.card;
  groups_.clear();
  to_build_ = entries;
  no_gpu_ = only_the_processor_computes(entries);
  for (node::SettingEntry& entry : to_build_)
    if (entry.group.empty()) entry.group = "Advanced";
  // Fixed places for the groups that people look for, whatever the order of the core's table.
  std::vector<std::string> order = {"Limits",  "Schedule", "Power",     "Training",
                                    "Storage", "Network",  "Local HTTP"};
  for (const node::SettingEntry& entry : to_build_)
    if (std::find(order.begin(), order.end(), entry.group) == order.end()) order.push_back(entry.group);
  const auto place = [&order](const node::SettingEntry& entry) {
    return std::find(order.begin(), order.end(), entry.group) - order.begin();
  };
  // The next one stands at the end.
  std::stable_sort(to_build_.begin(), to_build_.end(),
                   [&place](const auto& a, const auto& b) { return place(a) < place(b); });
  std::reverse(to_build_.begin(), to_build_.end());
  building_.start();
}

void SettingsPage::build_some() {
  QElapsedTimer spent;
  spent.start();
  while (!to_build_.empty() && spent.elapsed() < building_ms) {
    const node::SettingEntry entry = std::move(to_build_.back());
    to_build_.pop_back();
    add_row(entry);
    if (!to_build_.empty() && to_build_.back().group == entry.group) continue;
    if (no_gpu_ && entry.group == "Limits") add_gpu_note(groups_.back());
    if (entry.group == "Local HTTP") add_http_panel(groups_.back());
    show_reset(groups_.back());
    groups_.back().card->setVisible(search_->text().trimmed().isEmpty());
    return;  // laying out the group is this turn's other half
  }
  if (!to_build_.empty()) return;
  building_.stop();
  show_all();
}

SettingsPage::Group& SettingsPage::group(const QString& name) {
  for (Group& group : groups_)
    if (group.name == name) return group;
  Group made;
  made.name = name;
  made.card = new Card(group_title(name), this);
  made.card->setObjectName(QStringLiteral("group_") + name);
  made.card->hide();
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
  Group& into = group(QString::fromStdString(entry.group));
  auto* made = new SettingRow(theme(), entry, into.card);
  made->set_may_steer(may_steer_);
  connect(made, &SettingRow::wanted, this, &SettingsPage::apply);
  // Styled now, in the turn that made it, and not with all the others when the group is shown.
  for (QWidget* part : made->findChildren<QWidget*>()) part->ensurePolished();
  into.card->body()->addWidget(made);
  into.rows.push_back(made);
}

// People look for it among the limits; that it is missing there would say nothing.
void SettingsPage::add_gpu_note(Group& limits) {
  limits.gpu_note = new QWidget(limits.card);
  limits.gpu_note->setObjectName(QStringLiteral("gpu_note"));
  auto* column = new QVBoxLayout(limits.gpu_note);
  column->setContentsMargins(0, grid_step / 2, 0, grid_step / 2);
  column->setSpacing(0);
  column->addWidget(make_label(tr("GPU share"), "strong"));
  column->addWidget(make_paragraph(tr("Nothing to limit: this version uses only the processor."), "caption"));
  limits.card->body()->addWidget(limits.gpu_note);
}

void SettingsPage::add_http_panel(Group& group) {
  group.http = new HttpPanel(theme(), bridge(), group.card);
  group.card->body()->addWidget(group.http);
  if (const auto snapshot = bridge().snapshot()) group.http->show_state(*snapshot);
  if (isVisible()) group.http->look();
}

void SettingsPage::apply(const QString& name, const QString& value) {
  SettingRow* at = row(name);
  if (at == nullptr) return;  // another core, without that setting
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
    if (!row->is_changed() || !row->can_change()) continue;
    changed.push_back(row->entry());
    titles.append(setting_title(row->entry()));
  }
  confirm(
      this,
      {tr("Reset %1?").arg(group_title(name)),
       tr("Back to their defaults: %1.").arg(titles.join(QStringLiteral(", "))), tr("Reset")},
      [this, changed] {
        for (const node::SettingEntry& entry : changed)
          apply(QString::fromStdString(entry.name), QString::fromStdString(entry.default_value));
      },
      &bridge());
}

void SettingsPage::filter() {
  const QString words = search_->text().trimmed();
  int found = 0, all = 0;
  bool note = false;
  for (const Group& group : groups_) {
    bool any = false;
    for (SettingRow* row : group.rows) {
      const bool matches = matches_search(row->entry(), words);
      row->setVisible(matches);
      any = any || matches;
      found += matches ? 1 : 0;
      ++all;
    }
    if (group.gpu_note != nullptr) {
      const bool gpu = has_words(texts_of(group.gpu_note), words);
      group.gpu_note->setVisible(gpu);
      note = note || gpu;
      any = any || gpu;
    }
    if (group.http != nullptr) {
      const bool http = has_words(texts_of(group.http), words);
      note = note || http;
      any = any || http;
      group.http->setVisible(any);
    }
    group.card->setVisible(any);
  }
  const bool app = app_ != nullptr && app_->filter(words);
  if (app_ != nullptr) app_->setVisible(app);
  nothing_->setVisible(!words.isEmpty() && found == 0 && !app && !note);
  count_->setText(words.isEmpty() ? QString() : tr("%1 of %2").arg(found).arg(all));
}

}  // namespace neuroshard::ui
