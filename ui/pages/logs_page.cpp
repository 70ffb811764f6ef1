#include "ui/pages/logs_page.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QShortcut>
#include <QVBoxLayout>

#include "ui/bridge/bridge.h"
#include "ui/models/log_feed.h"
#include "ui/models/log_model.h"
#include "ui/pages/diagnostics_dialog.h"
#include "ui/pages/log_view.h"
#include "ui/pages/page_body.h"
#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/csv.h"
#include "ui/widgets/row_text.h"
#include "ui/widgets/toggle_switch.h"

namespace neuroshard::ui {

LogsPage::LogsPage(const Context& context, QWidget* parent) : Page(context, parent) {
  QVBoxLayout* column = make_page_column(this);
  model_ = new LogModel(this);
  feed_ = new LogFeed(bridge(), *model_, this);
  column->addWidget(build_filters());
  words_error_ = make_paragraph({}, "danger");
  words_error_->setObjectName(QStringLiteral("words_error"));
  words_error_->hide();
  column->addWidget(words_error_);
  view_ = new LogView(theme(), *model_);
  column->addWidget(view_, 1);
  column->addWidget(build_buttons());
  connect(view_, &LogView::following_changed, follow_, &QAbstractButton::setChecked);
  connect(follow_, &QAbstractButton::clicked, view_, &LogView::set_following);
  connect(feed_, &LogFeed::failed, this, [this](const QString& message) { counts_->setText(message); });
  connect(view_, &LogView::copying, this, [this](qint64 lines) {
    copied_ = tr("copying %1 line(s) …", nullptr, static_cast<int>(lines))
                  .arg(Format::integer(static_cast<std::uint64_t>(lines)));
    show_counts();
  });
  connect(view_, &LogView::copied, this, [this](qint64 lines) {
    copied_ = tr("%1 line(s) copied", nullptr, static_cast<int>(lines))
                  .arg(Format::integer(static_cast<std::uint64_t>(lines)));
    copied_shown_.start();
    show_counts();
  });
  copied_shown_.setSingleShot(true);
  copied_shown_.setInterval(4'000);
  connect(&copied_shown_, &QTimer::timeout, this, [this] {
    copied_.clear();
    show_counts();
  });
  connect(model_, &LogModel::category_seen, this, [this](const QString& category) {
    int at = 1;  // sorted, behind "all"
    while (at < category_->count() && category_->itemText(at) < category) ++at;
    category_->insertItem(at, category, category);
  });
  filter_delay_.setSingleShot(true);
  filter_delay_.setInterval(200);
  connect(&filter_delay_, &QTimer::timeout, this, &LogsPage::filter);
  counting_.setInterval(500);
  connect(&counting_, &QTimer::timeout, this, &LogsPage::show_counts);
}

QWidget* LogsPage::build_filters() {
  auto* bar = new QWidget;
  auto* line = new QHBoxLayout(bar);
  line->setContentsMargins(0, 0, 0, 0);
  line->setSpacing(grid_step);
  level_ = new QComboBox;
  level_->setObjectName(QStringLiteral("level"));
  level_->setAccessibleName(tr("Lowest level"));
  for (const LogLevel level : {LogLevel::Debug, LogLevel::Info, LogLevel::Warning, LogLevel::Error})
    level_->addItem(level == LogLevel::Error ? tr("only %1").arg(level_word(level))
                                             : tr("from %1").arg(level_word(level)),
                    static_cast<int>(level));
  level_->setCurrentIndex(1);
  connect(level_, &QComboBox::currentIndexChanged, this, &LogsPage::filter);
  line->addWidget(level_);
  category_ = new QComboBox;
  category_->setObjectName(QStringLiteral("category"));
  category_->setAccessibleName(tr("Category"));
  category_->addItem(tr("all categories"), QString());
  category_->setMinimumWidth(140);
  connect(category_, &QComboBox::currentIndexChanged, this, &LogsPage::filter);
  line->addWidget(category_);
  words_ = new QLineEdit;
  words_->setObjectName(QStringLiteral("words"));
  words_->setAccessibleName(tr("Words or a regular expression"));
  words_->setPlaceholderText(tr("Words or a regular expression"));
  words_->setClearButtonEnabled(true);
  words_->addAction(theme().icon(QStringLiteral("search")), QLineEdit::LeadingPosition);
  connect(words_, &QLineEdit::textChanged, this, [this] { filter_delay_.start(); });
  line->addWidget(words_, 1);
  auto* find = new QShortcut(QKeySequence::Find, this);
  connect(find, &QShortcut::activated, words_, [this] { words_->setFocus(Qt::ShortcutFocusReason); });
  follow_ = new ToggleSwitch(theme(), tr("Follow"));
  follow_->setObjectName(QStringLiteral("follow"));
  follow_->setChecked(true);
  follow_->setToolTip(tr("Stays at the newest line until you scroll up"));
  line->addWidget(follow_);
  return bar;
}

QWidget* LogsPage::build_buttons() {
  auto* bar = new QWidget;
  auto* line = new QHBoxLayout(bar);
  line->setContentsMargins(0, 0, 0, 0);
  line->setSpacing(grid_step);
  counts_ = make_label({}, "caption");
  counts_->setObjectName(QStringLiteral("log_counts"));
  line->addWidget(counts_, 1);
  auto* diagnostics =
      new QPushButton(theme().icon(QStringLiteral("diagnostics"), Token::Text), tr("Diagnostics …"));
  diagnostics->setObjectName(QStringLiteral("diagnostics"));
  diagnostics->setToolTip(tr("Collects, shows and saves details that help to find an error"));
  connect(diagnostics, &QPushButton::clicked, this, [this] {
    const auto snapshot = bridge().snapshot();
    (new DiagnosticsDialog(theme(), this->context().elsewhere() ? QString() : this->context().core_program,
                           snapshot ? QString::fromStdString(snapshot->program.data_directory) : QString(),
                           this))
        ->open();
  });
  line->addWidget(diagnostics);
  auto* copy = new QPushButton(theme().icon(QStringLiteral("copy"), Token::Text), tr("Copy"));
  copy->setObjectName(QStringLiteral("copy_log"));
  copy->setToolTip(tr("Copies the selected lines, or all that are shown"));
  connect(copy, &QPushButton::clicked, view_, &LogView::copy);
  line->addWidget(copy);
  auto* save = new QPushButton(theme().icon(QStringLiteral("export"), Token::Text), tr("Save …"));
  save->setObjectName(QStringLiteral("save_log"));
  connect(save, &QPushButton::clicked, this, &LogsPage::save);
  line->addWidget(save);
  auto* clear = new QPushButton(tr("Clear"));
  clear->setObjectName(QStringLiteral("clear_log"));
  clear->setToolTip(tr("Empties this view; the core keeps its log"));
  connect(clear, &QPushButton::clicked, this, [this] {
    model_->clear();
    show_counts();
  });
  line->addWidget(clear);
  return bar;
}

void LogsPage::shown() {
  feed_->start();
  counting_.start();
}

void LogsPage::hidden() {
  feed_->stop();
  counting_.stop();
}

void LogsPage::filter() {
  filter_delay_.stop();
  LogFilter wanted;
  wanted.least = static_cast<LogLevel>(level_->currentData().toInt());
  wanted.category = category_->currentData().toString();
  wanted.expression = QRegularExpression(words_->text(), QRegularExpression::CaseInsensitiveOption);
  const bool valid = wanted.expression.isValid();
  words_error_->setVisible(!valid);
  if (!valid) {
    // The filter that was stays until the expression is whole.
    words_error_->setText(tr("This is not a regular expression: %1 (at character %2). To match a special "
                             "character, put a \\ before it.")
                              .arg(wanted.expression.errorString())
                              .arg(wanted.expression.patternErrorOffset() + 1));
    return;
  }
  model_->set_filter(wanted);
  show_counts();
}

void LogsPage::show_counts() {
  QStringList parts{tr("%1 of %2 lines")
                        .arg(Format::integer(static_cast<std::uint64_t>(model_->rowCount())),
                             Format::integer(static_cast<std::uint64_t>(model_->lines())))};
  if (model_->lines() >= LogModel::max_lines) parts.append(tr("older lines are not shown"));
  if (model_->dropped() > 0)
    parts.append(tr("%1 not kept by the core").arg(Format::integer(model_->dropped())));
  if (!copied_.isEmpty()) parts.append(copied_);
  if (model_->filtering()) parts.append(tr("filtering …"));
  if (!bridge().attached()) parts.append(tr("not connected to a core"));
  counts_->setText(parts.join(tr("; ")));
}

void LogsPage::save() {
  const QString path = choose_file_to_save(this, QStringLiteral("neuroshard-log.txt"), tr("Text (*.txt)"));
  if (path.isEmpty()) return;
  RowText* text = lines_as_text();
  connect(text, &RowText::done, this,
          [this, path](const QByteArray& lines) { save_bytes(this, path, lines); });
  text->start();
}

// The lines that are shown now, even as the log grows.
RowText* LogsPage::lines_as_text() {
  const auto row = [lines = model_->shown_lines()](qsizetype i) { return LogModel::text(lines[i]) + u'\n'; };
  return new RowText({}, model_->rowCount(), row, this);
}

}  // namespace neuroshard::ui
