#include "ui/pages/setting_editor.h"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QEvent>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QPushButton>
#include <algorithm>

#include "ui/models/setting_words.h"
#include "ui/pages/setting_editor_parts.h"
#include "ui/theme/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/toggle_switch.h"

namespace neuroshard::ui {
namespace {

constexpr int field_width = 150, room_beside_text = 56;   // buttons and margins of a spin box
constexpr std::uint64_t widest = std::uint64_t{1} << 53;  // a double has every whole number up to it

class WheelGuard final : public QObject {
 public:
  using QObject::QObject;
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() != QEvent::Wheel || static_cast<QWidget*>(watched)->hasFocus()) return false;
    event->ignore();
    return true;
  }
};

QHBoxLayout* line_of(QWidget* editor) {
  auto* line = new QHBoxLayout(editor);
  line->setContentsMargins(0, 0, 0, 0);
  line->setSpacing(grid_step);
  return line;
}

}  // namespace

void guard_wheel(QWidget* field) {
  field->setFocusPolicy(Qt::StrongFocus);
  field->installEventFilter(new WheelGuard(field));
}

SwitchEditor::SwitchEditor(const Theme& theme, const QString& name, QWidget* parent) : SettingEditor(parent) {
  toggle_ = new ToggleSwitch(theme, {}, this);
  toggle_->setAccessibleName(name);
  line_of(this)->addWidget(toggle_);
  setFocusProxy(toggle_);
  connect(toggle_, &QAbstractButton::clicked, this, [this] { Q_EMIT edited(value()); });
}

QString SwitchEditor::value() const {
  return toggle_->isChecked() ? QStringLiteral("on") : QStringLiteral("off");
}
void SwitchEditor::set_value(const QString& value) {
  toggle_->setChecked(value == QStringLiteral("on"));
}

ChoiceEditor::ChoiceEditor(const node::SettingEntry& entry, const QString& name, QWidget* parent)
    : SettingEditor(parent) {
  box_ = new QComboBox(this);
  box_->setAccessibleName(name);
  // Shown in the person's language, kept as the core has it.
  for (const QString& choice : setting_choices(entry))
    box_->addItem(choice_word(choice.toStdString()), choice);
  box_->setMinimumWidth(field_width);
  guard_wheel(box_);
  line_of(this)->addWidget(box_);
  setFocusProxy(box_);
  connect(box_, &QComboBox::activated, this, [this] { Q_EMIT edited(value()); });
}

QString ChoiceEditor::value() const {
  return box_->currentData().toString();
}
void ChoiceEditor::set_value(const QString& value) {
  const int at = box_->findData(value);
  if (at >= 0) box_->setCurrentIndex(at);
}

NumberEditor::NumberEditor(const node::SettingEntry& entry, const QString& name, QWidget* parent)
    : SettingEditor(parent),
      entry_(entry),
      units_(setting_units(entry.type)),
      zero_(entry.least == 0 ? meaning_of_zero(setting_help(entry)) : QString()) {
  number_ = new QDoubleSpinBox(this);
  number_->setDecimals(0);
  number_->setAccessibleName(name);
  number_->setMinimumWidth(field_width);
  // A port is a name, not an amount: 8000.
  number_->setGroupSeparatorShown(!QString::fromStdString(entry.name).endsWith(QStringLiteral("_port")));
  number_->setStepType(QAbstractSpinBox::AdaptiveDecimalStepType);
  number_->setKeyboardTracking(false);  // half a number is no value
  // The words in place of 0 are read whole, in every language.
  if (!zero_.isEmpty())
    number_->setMinimumWidth(
        std::max(field_width, number_->fontMetrics().horizontalAdvance(zero_) + room_beside_text));
  guard_wheel(number_);
  unit_ = new QComboBox(this);
  unit_->setAccessibleName(tr("Unit of %1").arg(name));
  for (const SettingUnit& unit : units_)
    unit_->addItem(is_rate(entry) ? unit.suffix + QStringLiteral("/s") : unit.suffix);
  unit_->setVisible(units_.size() > 1);
  guard_wheel(unit_);
  if (units_.size() == 1 && !entry.unit.empty())
    number_->setSuffix(QStringLiteral(" ") + QString::fromStdString(entry.unit));
  auto* line = line_of(this);
  line->addWidget(number_);
  line->addWidget(unit_);
  setFocusProxy(number_);
  bound_to_unit();
  still_.setSingleShot(true);
  still_.setInterval(600);
  connect(&still_, &QTimer::timeout, this, [this] { Q_EMIT edited(value()); });
  connect(number_, &QDoubleSpinBox::valueChanged, this, &NumberEditor::take_number);
  connect(number_, &QDoubleSpinBox::editingFinished, this, [this] {
    if (!still_.isActive()) {
      if (blank_) return show_scaled(*amount_);  // left without a number: nothing was changed
      if (!number_->hasFocus()) return;
      // Enter tries a refused number again.
    }
    still_.stop();
    Q_EMIT edited(value());
  });
  connect(unit_, &QComboBox::activated, this, &NumberEditor::convert);
}

std::uint64_t NumberEditor::factor() const {
  return units_[static_cast<std::size_t>(unit_->currentIndex())].factor;
}

void NumberEditor::bound_to_unit() {
  const auto least = std::min(widest, (entry_.least + factor() - 1) / factor());
  const auto most = entry_.most == 0 ? widest : std::clamp(entry_.most / factor(), least, widest);
  const QSignalBlocker quiet(number_);
  blank_ = false;
  number_->setSpecialValueText(zero_);
  number_->setRange(static_cast<double>(least), static_cast<double>(most));
}

void NumberEditor::show_scaled(const ScaledValue& value) {
  amount_ = value;
  const QSignalBlocker quiet(number_);
  unit_->setCurrentIndex(static_cast<int>(value.unit));
  bound_to_unit();
  number_->setValue(static_cast<double>(std::min(value.number, widest)));
}

void NumberEditor::convert() {
  bound_to_unit();
  if (!amount_) return;
  const std::uint64_t amount = amount_->number * units_[amount_->unit].factor;
  const std::uint64_t number = amount / factor();
  if (amount % factor() == 0 && number >= static_cast<std::uint64_t>(number_->minimum()) &&
      number <= static_cast<std::uint64_t>(number_->maximum()))
    return show_scaled({number, static_cast<std::size_t>(unit_->currentIndex())});
  // Another amount would look as if it were set already.
  const QSignalBlocker quiet(number_);
  blank_ = true;
  number_->setSpecialValueText(QStringLiteral(" "));
  number_->setMinimum(number_->minimum() - 1);
  number_->setValue(number_->minimum());
}

void NumberEditor::take_number() {
  if (blank_ && number_->value() == number_->minimum()) return;
  if (blank_) bound_to_unit();
  amount_ = ScaledValue{static_cast<std::uint64_t>(number_->value()),
                        static_cast<std::size_t>(unit_->currentIndex())};
  still_.start();
}

QString NumberEditor::value() const {
  return write_scaled(entry_.type, amount_.value_or(ScaledValue{}));
}

void NumberEditor::set_value(const QString& text) {
  const auto value = read_scaled(entry_, text);
  if (!value || still_.isActive()) return;
  // The same amount stays in the unit that the person chose.
  if (amount_ && value->number * units_[value->unit].factor == amount_->number * units_[amount_->unit].factor)
    return;
  show_scaled(*value);
}

TextEditor::TextEditor(const Theme& theme, const node::SettingEntry& entry, const QString& name,
                       QWidget* parent)
    : SettingEditor(parent) {
  line_ = new QLineEdit(this);
  line_->setAccessibleName(name);
  line_->setMinimumWidth(field_width + 60);
  auto* line = line_of(this);
  line->addWidget(line_);
  setFocusProxy(line_);
  if (entry.type == "path") {
    auto* choose = new QPushButton(theme.icon(QStringLiteral("folder"), Token::Text), tr("Choose …"), this);
    choose->setAccessibleName(tr("Choose a folder for %1").arg(name));
    connect(choose, &QPushButton::clicked, this, &TextEditor::browse);
    line->addWidget(choose);
  }
  // Enter tries a refused text again; it comes before editingFinished.
  connect(line_, &QLineEdit::returnPressed, this, &TextEditor::take_text);
  connect(line_, &QLineEdit::editingFinished, this, [this] {
    if (value() != shown_) take_text();
  });
}

void TextEditor::take_text() {
  shown_ = value();
  Q_EMIT edited(shown_);
}

void TextEditor::browse() {
  auto* dialog = new QFileDialog(this, tr("Choose a folder"), line_->text());
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::Directory);
  connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& path) {
    line_->setText(path);
    shown_ = path;
    Q_EMIT edited(path);
  });
  dialog->open();
}

QString TextEditor::value() const {
  return line_->text();
}
void TextEditor::set_value(const QString& value) {
  if (line_->hasFocus() && line_->isModified()) return;  // not under the person's hands
  shown_ = value;
  line_->setText(value);
}

SettingEditor* make_setting_editor(const Theme& theme, const node::SettingEntry& entry, QWidget* parent) {
  const QString name = setting_title(entry);
  if (is_switch(entry)) return new SwitchEditor(theme, name, parent);
  if (!entry.choices.empty()) return new ChoiceEditor(entry, name, parent);
  if (entry.type == "hours") return new ScheduleEditor(theme, name, parent);
  if (entry.type == "programs") return new ProgramsEditor(name, parent);
  const bool number = entry.type == "integer" || entry.type == "bytes" || entry.type == "seconds";
  if (number && read_scaled(entry, QString::fromStdString(entry.value)))
    return new NumberEditor(entry, name, parent);
  return new TextEditor(theme, entry, name, parent);
}

}  // namespace neuroshard::ui
