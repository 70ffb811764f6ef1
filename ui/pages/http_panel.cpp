#include "ui/pages/http_panel.h"

#include <QClipboard>
#include <QComboBox>
#include <QGridLayout>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/bridge/bridge.h"
#include "ui/pages/confirm.h"
#include "ui/theme/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/tone.h"

namespace neuroshard::ui {
namespace {

constexpr int icon_size = 16;
constexpr int example_lines = 7;

QPushButton* button(const QString& text, const char* name) {
  auto* made = new QPushButton(text);
  made->setObjectName(QString::fromLatin1(name));
  return made;
}

QString in_quotes(const QString& text) {
  return u'"' + text + u'"';
}

// Programs read the key from its file, so that it stands in no history of commands.
QString curl_example(const QString& address, const QString& model, const QString& file) {
  return QStringLiteral(
             "curl -H \"Authorization: Bearer $(head -n 1 '%1')\" \\\n"
             "  %2/v1/completions \\\n"
             "  -d '{\"model\": \"%3\", \"prompt\": \"Once upon a time\", \"max_tokens\": 30}'")
      .arg(file, address, model);
}

QString python_example(const QString& address, const QString& model, const QString& file) {
  return QStringLiteral(
             "from openai import OpenAI\n\n"
             "key = open(%1).readline().strip()\n"
             "client = OpenAI(base_url=\"%2/v1\", api_key=key)\n"
             "answer = client.completions.create(\n"
             "    model=\"%3\", prompt=\"Once upon a time\", max_tokens=30)\n"
             "print(answer.choices[0].text)")
      .arg(in_quotes(file), address, model);
}

}  // namespace

HttpPanel::HttpPanel(const Theme& theme, Bridge& bridge, QWidget* parent)
    : QWidget(parent), bridge_(bridge), theme_(theme) {
  setObjectName(QStringLiteral("http_panel"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, grid_step, 0, 0);
  column->setSpacing(2 * grid_step);
  column->addWidget(build_state(theme));
  key_part_ = build_key(theme);
  column->addWidget(key_part_);
  column->addWidget(build_examples(theme));
  // Another core has another key, in another place.
  connect(&bridge_, &Bridge::attached_changed, this, [this](bool attached) {
    hide_key();
    key_file_.clear();
    show_example();
    if (attached && isVisible()) look();
  });
}

QWidget* HttpPanel::build_state(const Theme&) {
  auto* part = new QWidget(this);
  auto* column = new QVBoxLayout(part);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(grid_step / 2);
  auto* line = new QHBoxLayout;
  line->setSpacing(grid_step);
  icon_ = new QLabel(part);
  icon_->setFixedSize(icon_size, icon_size);
  line->addWidget(icon_);
  state_ = make_label({}, "strong", part);
  state_->setObjectName(QStringLiteral("http_state"));
  state_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  line->addWidget(state_);
  copy_address_ = button(tr("Copy address"), "http_copy_address");
  copy_address_->setProperty("role", QStringLiteral("link"));
  connect(copy_address_, &QPushButton::clicked, this,
          [this] { QGuiApplication::clipboard()->setText(listens_); });
  line->addWidget(copy_address_);
  line->addStretch(1);
  column->addLayout(line);
  trouble_ = make_paragraph({}, "danger", part);
  trouble_->setObjectName(QStringLiteral("http_trouble"));
  trouble_->hide();
  column->addWidget(trouble_);
  return part;
}

QWidget* HttpPanel::build_key(const Theme& theme) {
  auto* part = new QWidget(this);
  auto* column = new QVBoxLayout(part);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(grid_step / 2);
  column->addWidget(make_label(tr("Key"), "strong", part));
  column->addWidget(make_paragraph(
      tr("Programs send it with every request. Anyone on this computer who has it can read the node's status "
         "and generate text; nothing can be changed with it."),
      "caption", part));
  key_ = new QLineEdit(part);
  key_->setObjectName(QStringLiteral("http_key"));
  key_->setAccessibleName(tr("Key of the local HTTP server"));
  key_->setReadOnly(true);
  key_->setFont(theme.monospace());
  key_->setPlaceholderText(tr("hidden"));
  column->addWidget(key_);
  auto* line = new QHBoxLayout;
  line->setSpacing(grid_step);
  show_ = button(tr("Show"), "http_show_key");
  connect(show_, &QPushButton::clicked, this, &HttpPanel::toggle_key);
  auto* copy = button(tr("Copy"), "http_copy_key");
  copy->setIcon(theme.icon(QStringLiteral("copy"), Token::Text));
  copy->setAccessibleName(tr("Copy the key"));
  connect(copy, &QPushButton::clicked, this, [this] { ask(node::HttpKeyAction::Show, For::Clipboard); });
  auto* renew = button(tr("New key …"), "http_new_key");
  connect(renew, &QPushButton::clicked, this, &HttpPanel::renew);
  remove_ = button(tr("Remove …"), "http_remove_key");
  remove_->setAccessibleName(tr("Remove the key"));
  connect(remove_, &QPushButton::clicked, this, &HttpPanel::remove);
  for (QPushButton* one : {show_, copy, renew, remove_}) line->addWidget(one);
  line->addStretch(1);
  column->addLayout(line);
  key_note_ = make_paragraph({}, "caption", part);
  key_note_->setObjectName(QStringLiteral("http_key_note"));
  key_note_->hide();
  column->addWidget(key_note_);
  return part;
}

QWidget* HttpPanel::build_examples(const Theme& theme) {
  auto* part = new QWidget(this);
  auto* column = new QVBoxLayout(part);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(grid_step / 2);
  column->addWidget(make_label(tr("Examples"), "strong", part));
  auto* line = new QHBoxLayout;
  line->setSpacing(grid_step);
  example_kind_ = new QComboBox(part);
  example_kind_->setObjectName(QStringLiteral("http_example_kind"));
  example_kind_->setAccessibleName(tr("Example for"));
  example_kind_->addItems({tr("curl"), tr("Python, OpenAI client"), tr("Programs that ask for a base URL")});
  connect(example_kind_, &QComboBox::currentIndexChanged, this, &HttpPanel::show_example);
  line->addWidget(example_kind_);
  auto* copy = button(tr("Copy"), "http_copy_example");
  copy->setIcon(theme.icon(QStringLiteral("copy"), Token::Text));
  copy->setAccessibleName(tr("Copy the example"));
  connect(copy, &QPushButton::clicked, this,
          [this] { QGuiApplication::clipboard()->setText(example_->toPlainText()); });
  line->addWidget(copy);
  line->addStretch(1);
  column->addLayout(line);
  example_ = new QPlainTextEdit(part);
  example_->setObjectName(QStringLiteral("http_example"));
  example_->setAccessibleName(tr("Example"));
  example_->setReadOnly(true);
  example_->setTabChangesFocus(true);
  example_->setFont(theme.monospace());
  example_->setLineWrapMode(QPlainTextEdit::WidgetWidth);
  example_->setWordWrapMode(QTextOption::WrapAnywhere);
  example_->setFixedHeight(QFontMetrics(theme.monospace()).lineSpacing() * example_lines + 3 * grid_step);
  column->addWidget(example_);
  column->addWidget(make_paragraph(
      tr("The model is a base model: it continues text and has learned no roles. A chat is sent to it with a "
         "plain template, “User: …” and “Assistant: …”, so expect a continuation rather than a helpful "
         "answer."),
      "caption", part));
  return part;
}

QString HttpPanel::address() const {
  return listens_.isEmpty() ? QStringLiteral("http://127.0.0.1:") + port_ : listens_;
}

void HttpPanel::show_state(const node::Snapshot& snapshot) {
  listens_ = QString::fromStdString(snapshot.http.address);
  model_ = QStringLiteral("neuroshard-") + QString::fromStdString(snapshot.program.network);
  const QString trouble = QString::fromStdString(snapshot.http.trouble);
  const Tone tone = !trouble.isEmpty() ? Tone::Warning : listens_.isEmpty() ? Tone::Paused : Tone::Working;
  icon_->setPixmap(theme_.icon(icon_of(tone), token_of(tone)).pixmap(icon_size, icon_size));
  state_->setText(!trouble.isEmpty()   ? tr("On, but it does not listen")
                  : listens_.isEmpty() ? tr("Off")
                                       : tr("Listens at %1").arg(listens_));
  copy_address_->setVisible(!listens_.isEmpty());
  key_part_->setEnabled(bridge_.may_steer());
  trouble_->setText(trouble);
  trouble_->setVisible(!trouble.isEmpty());
  show_example();
}

void HttpPanel::set_port(const QString& port) {
  port_ = port;
  show_example();
}

void HttpPanel::look() {
  ask(node::HttpKeyAction::Show, For::Example);
}

void HttpPanel::hide_key() {
  key_->clear();
  show_->setText(tr("Show"));
  key_note_->hide();
}

void HttpPanel::toggle_key() {
  if (!key_->text().isEmpty()) return hide_key();
  ask(node::HttpKeyAction::Show, For::Field);
}

void HttpPanel::renew() {
  confirm(
      this,
      {tr("Make a new key?"), tr("Programs that use the old key are refused from then on."), tr("New key")},
      [this] { ask(node::HttpKeyAction::Renew, For::Field); }, &bridge_);
}

void HttpPanel::remove() {
  confirm(
      this,
      {tr("Remove the key?"),
       tr("Programs that use it are refused. The next start of the server makes a new one."), tr("Remove"),
       true},
      [this] { ask(node::HttpKeyAction::Remove, For::Field); }, &bridge_);
}

void HttpPanel::ask(node::HttpKeyAction action, For target) {
  bridge_.query<node::HttpKey>(
      this,
      [action](node::Node& node, node::Reply<node::HttpKey> reply) {
        return node.http_key(action, std::move(reply));
      },
      [this, action, target](const Expected<node::HttpKey>& key) { take(action, target, key); });
}

void HttpPanel::take(node::HttpKeyAction action, For target, const Expected<node::HttpKey>& key) {
  const auto note = [this](const QString& text, const char* role) {
    key_note_->setText(text);
    set_role(key_note_, "role", QString::fromLatin1(role));
    key_note_->show();
  };
  if (!key.ok() && target == For::Example) return;  // without its file the examples still hold
  if (!key.ok()) return note(QString::fromStdString(key.error().message), "danger");
  key_file_ = QString::fromStdString(key->file);
  show_example();
  if (target == For::Example) return;
  if (key->key.empty()) {
    hide_key();
    return note(action == node::HttpKeyAction::Remove
                    ? tr("Removed.")
                    : tr("There is no key yet. One is made when the server is switched on."),
                "caption");
  }
  const QString text = QString::fromStdString(key->key);
  if (target == For::Clipboard) {
    QGuiApplication::clipboard()->setText(text);
    return note(tr("Copied."), "caption");
  }
  key_->setText(text);
  key_->setCursorPosition(0);
  show_->setText(tr("Hide"));
  note(action == node::HttpKeyAction::Renew ? tr("This is the new key. It is kept in %1.").arg(key_file_)
                                            : tr("It is kept in %1.").arg(key_file_),
       "caption");
}

void HttpPanel::show_example() {
  const QString file = key_file_.isEmpty() ? QStringLiteral("http.key") : key_file_;
  QString text;
  switch (example_kind_->currentIndex()) {
    case 0: text = curl_example(address(), model_, file); break;
    case 1: text = python_example(address(), model_, file); break;
    default:
      text = tr("Base URL: %1/v1\nModel: %2\nAPI key: the first line of %3").arg(address(), model_, file);
  }
  if (text != example_->toPlainText()) example_->setPlainText(text);
}

}  // namespace neuroshard::ui
