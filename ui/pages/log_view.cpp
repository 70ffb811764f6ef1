#include "ui/pages/log_view.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHeaderView>
#include <QMimeData>
#include <QPainter>
#include <QScrollBar>
#include <QStyledItemDelegate>

#include "ui/models/log_model.h"
#include "ui/theme/theme.h"
#include "ui/widgets/csv.h"
#include "ui/widgets/row_text.h"

namespace neuroshard::ui {
namespace {

constexpr int side_padding = 8;

// Plain text in the colour of the level: cheaper than a styled item, and hundreds of lines pass in a second.
class LogDelegate final : public QStyledItemDelegate {
 public:
  LogDelegate(const Theme& theme, const LogModel& model, QObject* parent)
      : QStyledItemDelegate(parent), theme_(theme), model_(model) {}

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const LogLine& line = model_.line(index.row());
    const bool selected = option.state.testFlag(QStyle::State_Selected);
    if (selected) painter->fillRect(option.rect, theme_.color(Token::Selection));
    Token colour = index.column() == LogModel::Message ? Token::Text : Token::TextMuted;
    if (line.level == LogLevel::Debug) colour = Token::TextMuted;
    if (line.level == LogLevel::Warning) colour = Token::Warning;
    if (line.level == LogLevel::Error) colour = Token::Danger;
    painter->setFont(option.font);
    painter->setPen(theme_.color(selected ? Token::Text : colour));
    const QRect room = option.rect.adjusted(side_padding, 0, -side_padding, 0);
    QString text = index.data().toString();
    // Measuring a very long line costs more than drawing the part that can be seen.
    constexpr int longest = 1'000;
    if (text.size() > longest) text.truncate(longest);
    painter->drawText(room, Qt::AlignVCenter | Qt::AlignLeft | Qt::TextSingleLine, text);
  }

 private:
  const Theme& theme_;
  const LogModel& model_;
};

}  // namespace

LogView::LogView(const Theme& theme, LogModel& model, QWidget* parent)
    : TableView(tr("Log"), parent), model_(model) {
  setObjectName(QStringLiteral("log_view"));
  setModel(&model);
  set_file_name(QStringLiteral("log"));
  set_empty_text(tr("Lines appear here as the core writes them; a filter above may hide some."));
  setItemDelegate(new LogDelegate(theme, model, this));
  setFont(theme.monospace());
  const QFontMetrics metrics(font());
  // Rows of one height: the view never has to look at a line that it does not show.
  verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
  verticalHeader()->setMinimumSectionSize(1);
  verticalHeader()->setDefaultSectionSize(metrics.height() + 4);
  horizontalHeader()->setSectionResizeMode(QHeaderView::Interactive);
  const auto width = [&metrics](const char* sample) {
    return metrics.horizontalAdvance(QLatin1String(sample)) + 2 * side_padding;
  };
  setColumnWidth(LogModel::Time, width("00:00:00.000 "));
  setColumnWidth(LogModel::Level, width("warning  "));
  setColumnWidth(LogModel::Category, width("checkpoint  "));
  setVerticalScrollMode(QAbstractItemView::ScrollPerItem);
  connect(verticalScrollBar(), &QScrollBar::valueChanged, this, &LogView::scrolled);
  connect(verticalScrollBar(), &QScrollBar::rangeChanged, this, &LogView::inserted);
  connect(&theme, &Theme::changed, viewport(), QOverload<>::of(&QWidget::update));
}

void LogView::scrolled(int value) {
  if (own_scroll_) return;
  const bool at_end = value >= verticalScrollBar()->maximum();
  if (at_end == following_) return;
  following_ = at_end;
  Q_EMIT following_changed(following_);
}

void LogView::inserted() {
  if (following_) {
    own_scroll_ = true;
    verticalScrollBar()->setValue(verticalScrollBar()->maximum());
    own_scroll_ = false;
  }
}

void LogView::set_following(bool on) {
  const bool changed = on != following_;
  following_ = on;
  inserted();
  if (changed) Q_EMIT following_changed(on);
}

// By ranges: one model index for each of 50,000 rows costs more than a frame.
LogExcerpt LogView::selected_lines() const {
  std::vector<std::pair<int, int>> ranges;
  for (const QItemSelectionRange& range : selectionModel()->selection())
    ranges.emplace_back(range.top(), range.bottom());
  std::sort(ranges.begin(), ranges.end());
  std::vector<std::pair<int, int>> distinct;
  int next = 0;  // ranges may cover each other
  for (const auto& [top, bottom] : ranges) {
    if (bottom >= next) distinct.emplace_back(std::max(top, next), bottom);
    next = std::max(next, bottom + 1);
  }
  return model_.shown_lines(distinct);
}

void LogView::copy_selection() {
  if (selectionModel()->hasSelection()) copy_lines(selected_lines());
}

void LogView::copy() {
  copy_lines(selectionModel()->hasSelection() ? selected_lines() : model_.shown_lines());
}

void LogView::copy_lines(LogExcerpt lines) {
  delete copying_;
  const qint64 count = lines.size();
  const auto row = [lines = std::move(lines)](qsizetype i) {
    const QString text = LogModel::text(lines[i]);
    return i == 0 ? text : u'\n' + text;
  };
  copying_ = new RowText({}, count, row, this);
  connect(copying_, &RowText::done, this, [this, count](const QByteArray& text) {
    // As it is: turning megabytes into a QString, for nobody yet, takes a frame.
    auto* data = new QMimeData;
    data->setData(QStringLiteral("text/plain"), text);
    QGuiApplication::clipboard()->setMimeData(data);
    Q_EMIT copied(count);
  });
  Q_EMIT copying(count);
  copying_->start();
}

void LogView::export_csv() {
  const QString path = choose_file_to_save(this, export_name(), tr("Tables (*.csv)"));
  if (path.isEmpty()) return;
  QStringList head;
  for (int column = 0; column < LogModel::ColumnCount; ++column)
    head << model_.headerData(column, Qt::Horizontal, Qt::DisplayRole).toString();
  const auto row = [lines = model_.shown_lines()](qsizetype i) {
    const LogLine& line = lines[i];
    QStringList cells;
    for (int column = 0; column < LogModel::ColumnCount; ++column) cells << LogModel::cell(line, column);
    return csv_line(cells);
  };
  auto* text = new RowText(csv_line(head), model_.rowCount(), row, this);
  connect(text, &RowText::done, this,
          [this, path](const QByteArray& bytes) { save_bytes(this, path, bytes); });
  text->start();
}

}  // namespace neuroshard::ui
