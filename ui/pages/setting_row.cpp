#include "ui/pages/setting_row.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/models/setting_words.h"
#include "ui/pages/setting_editor.h"
#include "ui/theme/theme.h"
#include "ui/widgets/card.h"

namespace neuroshard::ui {
namespace {

QString from(const std::string& text) {
  return QString::fromStdString(text);
}

// The core's help begins in lower case, as command lines have it.
QString sentence(QString text) {
  if (!text.isEmpty()) text[0] = text[0].toUpper();
  if (!text.isEmpty() && !text.endsWith(u'.')) text += u'.';
  return text;
}

QString why_locked(const std::string& origin) {
  if (origin == "flag")
    return SettingRow::tr(
        "Fixed by an option of the command line that started the core; it can't be changed here.");
  if (origin == "environment")
    return SettingRow::tr("Fixed by an environment variable of the core; it can't be changed here.");
  return SettingRow::tr("Fixed by %1; it can't be changed here.").arg(from(origin));
}

}  // namespace

SettingRow::SettingRow(const Theme& theme, const node::SettingEntry& entry, QWidget* parent)
    : QWidget(parent), entry_(entry) {
  setObjectName(QStringLiteral("setting_") + from(entry.name));
  const QString title = setting_title(entry), help = setting_help(entry);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, grid_step / 2, 0, grid_step / 2);
  column->setSpacing(2);
  auto* line = new QHBoxLayout;
  line->setSpacing(grid_step);
  auto* words = new QVBoxLayout;
  words->setSpacing(0);
  auto* heading = new QHBoxLayout;
  heading->setSpacing(grid_step / 2);
  heading->addWidget(make_label(title, "strong", this));
  changed_ = make_label(tr("changed"), "caption", this);
  changed_->setObjectName(QStringLiteral("changed"));
  heading->addWidget(changed_);
  reset_ = new QPushButton(tr("Reset"), this);
  reset_->setObjectName(QStringLiteral("reset"));
  reset_->setProperty("role", QStringLiteral("link"));
  reset_->setAccessibleName(tr("Reset %1 to its default").arg(title));
  connect(reset_, &QPushButton::clicked, this,
          [this] { Q_EMIT wanted(from(entry_.name), from(entry_.default_value)); });
  heading->addWidget(reset_);
  heading->addStretch(1);
  words->addLayout(heading);
  QLabel* explanation = make_paragraph(sentence(help), "caption", this);
  explanation->setToolTip(from(entry.name));
  words->addWidget(explanation);
  line->addLayout(words, 1);
  editor_ = make_setting_editor(theme, entry, this);
  editor_->setAccessibleDescription(help);
  connect(editor_, &SettingEditor::edited, this, [this](const QString& value) {
    if (value != from(entry_.value) || !error_->text().isEmpty()) Q_EMIT wanted(from(entry_.name), value);
  });
  if (!editor_->wide()) line->addWidget(editor_, 0, Qt::AlignRight | Qt::AlignVCenter);
  column->addLayout(line);
  if (editor_->wide()) column->addWidget(editor_);
  note_ = make_paragraph({}, "caption", this);
  note_->setObjectName(QStringLiteral("note"));
  error_ = make_paragraph({}, "danger", this);
  error_->setObjectName(QStringLiteral("error"));
  column->addWidget(note_);
  column->addWidget(error_);
  show_error({});
  editor_->set_value(from(entry_.value));
  update_marks();
}

void SettingRow::set_entry(const node::SettingEntry& entry) {
  entry_ = entry;
  if (!waiting_ && error_->text().isEmpty()) editor_->set_value(from(entry.value));
  update_marks();
}

void SettingRow::set_may_steer(bool may_steer) {
  may_steer_ = may_steer;
  update_marks();
}

void SettingRow::show_error(const QString& message) {
  error_->setText(message);
  error_->setVisible(!message.isEmpty());
}

QString SettingRow::error() const {
  return error_->text();
}

void SettingRow::update_marks() {
  const bool changed = is_changed();
  const QString standard = shown_value(entry_, entry_.default_value);
  changed_->setVisible(changed);
  changed_->setToolTip(tr("Default: %1").arg(standard));
  reset_->setVisible(changed && can_change());
  reset_->setToolTip(tr("Back to %1").arg(standard));
  editor_->setEnabled(can_change());
  QStringList notes;
  if (entry_.locked) notes.append(why_locked(entry_.origin));
  if (entry_.at_restart) notes.append(tr("Takes effect at the next start of the core."));
  note_->setText(notes.join(u' '));
  note_->setVisible(!notes.isEmpty());
}

}  // namespace neuroshard::ui
