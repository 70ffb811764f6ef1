// The hours of the week and the list of programs.
#include <QHBoxLayout>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QShortcut>
#include <QVBoxLayout>

#include "ui/pages/setting_editor_parts.h"
#include "ui/pages/week_grid.h"
#include "ui/widgets/card.h"

namespace neuroshard::ui {

ScheduleEditor::ScheduleEditor(const Theme& theme, const QString& name, QWidget* parent)
    : SettingEditor(parent) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(grid_step);
  grid_ = new WeekGrid(theme, this);
  column->addWidget(grid_);
  line_ = new QLineEdit(this);
  line_->setObjectName(QStringLiteral("schedule_text"));
  line_->setAccessibleName(tr("%1 as text").arg(name));
  line_->setToolTip(tr("For example: mon-fri 18-24; sat-sun"));
  column->addWidget(line_);
  setFocusProxy(grid_);
  connect(grid_, &WeekGrid::edited, this, [this](const WeekHours& hours) {
    line_->setText(QString::fromStdString(hours.text()));
    Q_EMIT edited(value());
  });
  // Enter tries a refused text again; it comes before editingFinished.
  connect(line_, &QLineEdit::returnPressed, this, &ScheduleEditor::take_text);
  connect(line_, &QLineEdit::editingFinished, this, [this] {
    if (line_->isModified()) take_text();
  });
}

void ScheduleEditor::take_text() {
  line_->setModified(false);
  // A text that can't be read goes to the core all the same: its answer says what is wrong.
  if (const auto hours = WeekHours::parse(line_->text().toStdString()); hours.ok()) grid_->set_hours(*hours);
  Q_EMIT edited(value());
}

QString ScheduleEditor::value() const {
  return line_->text();
}

void ScheduleEditor::set_value(const QString& value) {
  if (line_->hasFocus() && line_->isModified()) return;
  line_->setText(value);
  if (const auto hours = WeekHours::parse(value.toStdString()); hours.ok()) grid_->set_hours(*hours);
}

ProgramsEditor::ProgramsEditor(const QString& name, QWidget* parent) : SettingEditor(parent) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(grid_step);
  list_ = new QListWidget(this);
  list_->setObjectName(QStringLiteral("program_list"));
  list_->setAccessibleName(name);
  list_->setMaximumHeight(96);
  column->addWidget(list_);
  auto* line = new QHBoxLayout;
  line_ = new QLineEdit(this);
  line_->setObjectName(QStringLiteral("program_name"));
  line_->setAccessibleName(tr("Program to add"));
  line_->setPlaceholderText(tr("Name of a program, as the task list shows it"));
  line->addWidget(line_, 1);
  auto* add = new QPushButton(tr("Add"), this);
  add->setObjectName(QStringLiteral("program_add"));
  add->setAccessibleName(tr("Add the program"));
  line->addWidget(add);
  remove_ = new QPushButton(tr("Remove"), this);
  remove_->setObjectName(QStringLiteral("program_remove"));
  remove_->setAccessibleName(tr("Remove the chosen program"));
  remove_->setEnabled(false);
  line->addWidget(remove_);
  column->addLayout(line);
  setFocusProxy(list_);  // the first of them: Tab would pass over those before the proxy
  connect(add, &QPushButton::clicked, this, &ProgramsEditor::add);
  connect(line_, &QLineEdit::returnPressed, this, &ProgramsEditor::add);
  connect(remove_, &QPushButton::clicked, this, &ProgramsEditor::remove);
  connect(list_, &QListWidget::itemSelectionChanged, this,
          [this] { remove_->setEnabled(!list_->selectedItems().isEmpty()); });
  auto* key = new QShortcut(QKeySequence::Delete, list_);
  key->setContext(Qt::WidgetShortcut);
  connect(key, &QShortcut::activated, this, &ProgramsEditor::remove);
}

void ProgramsEditor::add() {
  // A comma parts names in the stored text, so it can't be in one.
  const QStringList names = read_programs(line_->text());
  const QStringList known = read_programs(value());
  bool any = false;
  for (const QString& name : names) {
    if (known.contains(name)) continue;
    list_->addItem(name);
    any = true;
  }
  line_->clear();
  if (any) Q_EMIT edited(value());
}

void ProgramsEditor::remove() {
  const auto items = list_->selectedItems();
  if (items.isEmpty()) return;
  qDeleteAll(items);
  Q_EMIT edited(value());
}

QString ProgramsEditor::value() const {
  QStringList names;
  for (int i = 0; i < list_->count(); ++i) names.append(list_->item(i)->text());
  return write_programs(names);
}

void ProgramsEditor::set_value(const QString& text) {
  if (text == value()) return;
  list_->clear();
  list_->addItems(read_programs(text));
}

}  // namespace neuroshard::ui
