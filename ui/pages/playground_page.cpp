#include "ui/pages/playground_page.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QStackedWidget>
#include <QVBoxLayout>

#include "ui/bridge/bridge.h"
#include "ui/pages/answer_pane.h"
#include "ui/pages/page_body.h"
#include "ui/pages/sampling_card.h"
#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/banner.h"
#include "ui/widgets/card.h"
#include "ui/widgets/empty_state.h"

namespace neuroshard::ui {
namespace {

constexpr std::chrono::seconds warning_period{30};

// The many controls scroll by themselves, so that the field to write in stays in view.
QScrollArea* make_controls(QWidget* parent) {
  auto* area = new QScrollArea(parent);
  area->setObjectName(QStringLiteral("playground_controls"));
  area->setAccessibleName(PlaygroundPage::tr("Controls"));
  area->setFrameShape(QFrame::NoFrame);
  area->setWidgetResizable(true);
  area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  area->setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Expanding);
  auto* side = new QWidget(area->viewport());
  side->setMinimumWidth(248);
  side->setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Preferred);  // as wide as its fields need
  auto* column = new QVBoxLayout(side);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(2 * grid_step);
  area->setWidget(side);
  area->viewport()->setAutoFillBackground(false);
  side->setAutoFillBackground(false);
  return area;
}

// The area does not scroll sideways, so it is as wide as what it shows.
void fit_width(QScrollArea* area) {
  area->setMinimumWidth(area->widget()->sizeHint().width() + area->verticalScrollBar()->sizeHint().width() +
                        grid_step);
}

}  // namespace

PlaygroundPage::PlaygroundPage(const Context& context, QWidget* parent) : Page(context, parent) {
  QVBoxLayout* page_column = make_page_column(this);
  honesty_ = new Banner(theme(), this);
  honesty_->setObjectName(QStringLiteral("honesty"));
  honesty_->hide();
  page_column->addWidget(honesty_);
  stack_ = new QStackedWidget(this);
  auto* empty = new EmptyState(theme(), icon(), tr("No model yet"),
                               tr("When this node has a model, you can let it continue a text here."));
  empty->set_action(tr("Go to Training"));
  connect(empty, &EmptyState::action_clicked, this,
          [this] { navigate(QStringLiteral("training"), QStringLiteral("start")); });
  stack_->addWidget(empty);
  auto* content = new QWidget(stack_);
  auto* line = new QHBoxLayout(content);
  line->setContentsMargins(0, 0, 0, 0);
  line->setSpacing(2 * grid_step);
  auto* talk = new Card({}, content);
  line->addWidget(talk, 1);
  QScrollArea* controls = make_controls(content);
  line->addWidget(controls);
  stack_->addWidget(content);
  page_column->addWidget(stack_, 1);
  plan_talk(talk);
  plan_controls(controls);
}

void PlaygroundPage::connect_signals() {
  connect(left_, &AnswerPane::refused, this, &PlaygroundPage::take_back);
  connect(left_, &AnswerPane::finished, this, &PlaygroundPage::left_finished);
  connect(right_, &AnswerPane::finished, this, &PlaygroundPage::show_busy);
  connect(input_, &QPlainTextEdit::textChanged, this, &PlaygroundPage::show_busy);
  connect(mode_, &QComboBox::currentIndexChanged, this, &PlaygroundPage::mode_changed);
  for (QComboBox* box : {model_, second_})
    connect(box, &QComboBox::currentIndexChanged, this, &PlaygroundPage::models_changed);
  connect(&bridge(), &Bridge::event_received, this, [this](const node::Event& event) {
    if (isVisible() && std::holds_alternative<node::CheckpointsChanged>(event)) ask_checkpoints();
  });
}

void PlaygroundPage::plan_talk(Card* card) {
  auto* panes = new QHBoxLayout;
  panes->setSpacing(2 * grid_step);
  card->body()->addLayout(panes, 1);
  sections().add([this, card, panes] {
    left_ = new AnswerPane(theme(), bridge(), {}, card);
    panes->addWidget(left_, 1);
  });
  sections().add([this, card, panes] {
    right_ = new AnswerPane(theme(), bridge(), QStringLiteral("_second"), card);
    right_->hide();
    panes->addWidget(right_, 1);
  });
  sections().add([this, card] { card->body()->addWidget(build_input(card)); });
}

QWidget* PlaygroundPage::build_input(QWidget* parent) {
  auto* part = new QWidget(parent);
  auto* line = new QHBoxLayout(part);
  line->setContentsMargins(0, 0, 0, 0);
  line->setSpacing(grid_step);
  input_ = new QPlainTextEdit;
  input_->setObjectName(QStringLiteral("prompt"));
  input_->setTabChangesFocus(true);
  input_->setMaximumHeight(84);
  input_->installEventFilter(this);
  line->addWidget(input_, 1);
  auto* buttons = new QVBoxLayout;
  send_ = new QPushButton(tr("Send"));
  send_->setObjectName(QStringLiteral("send"));
  send_->setProperty("role", QStringLiteral("primary"));
  connect(send_, &QPushButton::clicked, this, &PlaygroundPage::send);
  stop_ = new QPushButton(theme().icon(QStringLiteral("stop"), Token::Text), tr("Stop"));
  stop_->setObjectName(QStringLiteral("stop"));
  connect(stop_, &QPushButton::clicked, this, &PlaygroundPage::stop);
  clear_ = new QPushButton(tr("Clear"));
  clear_->setObjectName(QStringLiteral("clear"));
  clear_->setAccessibleName(tr("Clear the transcript"));
  connect(clear_, &QPushButton::clicked, this, [this] {
    left_->clear();
    right_->clear();
  });
  for (QPushButton* button : {send_, stop_, clear_}) buttons->addWidget(button);
  buttons->addStretch(1);
  line->addLayout(buttons);
  return part;
}

void PlaygroundPage::plan_controls(QScrollArea* area) {
  QWidget* side = area->widget();
  auto* column = qobject_cast<QVBoxLayout*>(side->layout());
  sections().add([this, column, side] { column->addWidget(build_mode(side)); });
  sections().add([this, column, side] { column->addWidget(build_models(side)); });
  sections().add([this, column, side] {
    sampling_ = new SamplingCard(side);
    column->addWidget(sampling_);
    column->addStretch(1);
  });
  sections().add([this, area] {
    connect_signals();
    mode_changed();
    fit_width(area);
    setTabOrder(clear_, area);  // which was made before them all
  });
}

Card* PlaygroundPage::build_mode(QWidget* parent) {
  auto* card = new Card(tr("Mode"), parent);
  mode_ = new QComboBox;
  mode_->setObjectName(QStringLiteral("mode"));
  mode_->setAccessibleName(tr("Mode"));
  mode_->addItems({tr("Continue a text"), tr("Chat")});
  card->body()->addWidget(mode_);
  mode_help_ = make_paragraph({}, "caption");
  card->body()->addWidget(mode_help_);
  parts_help_ =
      make_paragraph(tr("The text passes the nodes that hold the other parts of the model. They can read "
                        "it."),
                     "caption");
  parts_help_->setObjectName(QStringLiteral("parts_help"));
  parts_help_->hide();
  card->body()->addWidget(parts_help_);
  return card;
}

Card* PlaygroundPage::build_models(QWidget* parent) {
  auto* card = new Card(tr("Model"), parent);
  const auto box = [](const char* name, const QString& label, const QString& first) {
    auto* made = new QComboBox;
    made->setObjectName(QString::fromLatin1(name));
    made->setAccessibleName(label);
    made->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    made->setMinimumContentsLength(16);
    made->addItem(first);
    return made;
  };
  model_ = box("answering_model", tr("Model that answers"), tr("The newest"));
  second_ = box("second_model", tr("Model beside it"), tr("No other beside it"));
  card->body()->addWidget(model_);
  card->body()->addWidget(second_);
  models_help_ = make_paragraph({}, "caption");
  models_help_->setObjectName(QStringLiteral("models_help"));
  card->body()->addWidget(models_help_);
  models_help_->hide();
  return card;
}

PlaygroundPage::Mode PlaygroundPage::mode() const {
  return mode_->currentIndex() == 1 ? Mode::Chat : Mode::Completion;
}

void PlaygroundPage::mode_changed() {
  const bool chat = mode() == Mode::Chat;
  input_->setPlaceholderText(chat ? tr("Say something") : tr("Begin a text; the model continues it"));
  input_->setAccessibleName(chat ? tr("Message") : tr("Beginning of the text"));
  mode_help_->setText(
      chat ? tr("The model was not trained on dialogue: it reads the turns as one text and continues it.")
           : tr("The model continues your text. It is trained for this."));
  models_changed();
}

// The second model has no part in a chat: its answers would differ, and so would the conversation.
bool PlaygroundPage::compares() const {
  return second_->currentIndex() > 0 && mode() == Mode::Completion;
}

QString PlaygroundPage::model_name(const QComboBox& box) const {
  return box.currentData().toString();
}

void PlaygroundPage::models_changed() {
  const bool named = model_->currentIndex() > 0 || compares();
  second_->setEnabled(mode() == Mode::Completion && !busy());
  right_->setVisible(compares());
  left_->set_title(compares() ? model_->currentText() : QString());
  right_->set_title(compares() ? second_->currentText() : QString());
  models_help_->setVisible(named);
  models_help_->setText(
      compares() ? tr("Both answer the same text with the same seed, one after the other. While the node "
                      "trains, only "
                      "its own model can answer: finish training first.")
                 : tr("While the node trains, only its own model can answer: finish training first."));
  show_busy();
}

void PlaygroundPage::ask_checkpoints() {
  bridge().query<node::CheckpointPage>(
      this,
      [](node::Node& node, node::Reply<node::CheckpointPage> reply) {
        return node.query_checkpoints({}, std::move(reply));
      },
      [this](const Expected<node::CheckpointPage>& page) {
        if (page.ok()) take_checkpoints(page->entries);
      });
}

// A chosen checkpoint stays chosen while it is there.
void PlaygroundPage::take_checkpoints(const std::vector<node::CheckpointEntry>& entries) {
  if (busy()) return;
  for (QComboBox* box : {model_, second_}) {
    const QString chosen = model_name(*box);
    const QSignalBlocker quiet(box);
    while (box->count() > 1) box->removeItem(1);
    for (const node::CheckpointEntry& entry : entries) {
      if (!entry.complete) continue;
      const QString text =
          entry.held_out_loss
              ? tr("Step %1, loss %2").arg(Format::integer(entry.step), Format::loss(*entry.held_out_loss))
              : tr("Step %1").arg(Format::integer(entry.step));
      box->addItem(text, QString::fromStdString(entry.name));
      box->setItemData(box->count() - 1, QString::fromStdString(entry.name), Qt::ToolTipRole);
    }
    box->setCurrentIndex(chosen.isEmpty() ? 0 : std::max(0, box->findData(chosen)));
  }
  models_changed();
}

void PlaygroundPage::shown() {
  warned_at_.reset();  // the next snapshot brings new numbers
  ask_checkpoints();
  input_->setFocus();
}

void PlaygroundPage::refresh(const node::Snapshot& snapshot) {
  parts_help_->setVisible(snapshot.rounds.part.has_value());
  const bool model = snapshot.training.step > 0 || !snapshot.checkpoint.newest.empty();
  stack_->setCurrentIndex(model ? 1 : 0);
  show_warning(model ? warning(snapshot) : BannerContent{});
  show_busy();  // what may be sent
}

// Without a text: there is nothing to warn of.
BannerContent PlaygroundPage::warning(const node::Snapshot& snapshot) {
  BannerContent content;
  const auto& loss = snapshot.training.smoothed_loss;
  const std::uint64_t seen = snapshot.training.last_step ? snapshot.training.last_step->tokens : 0;
  if (snapshot.safe_mode) {
    content.tone = Tone::Warning;
    content.title = tr("Not now");
    content.text = tr("Safe mode: no model can be loaded. Restart the core normally to use this page.");
  } else if (loss && *loss > young_loss) {
    content.tone = Tone::Info;
    content.title = tr("This model is young");
    content.text =
        tr("The model has read %1 in %2 steps; its loss is %3. Expect fragments, not answers. Sentences "
           "appear below a loss of about %4.")
            .arg(seen == 0 ? tr("little") : tr("%1 tokens").arg(Format::si(static_cast<double>(seen))),
                 Format::integer(snapshot.training.step), Format::significant(*loss, 3),
                 Format::significant(young_loss, 2));
  }
  return content;
}

// Another warning shows at once. The numbers of the same one follow now and then: a banner that is read should
// not change with every step under the eyes, and each change lays the page out again.
void PlaygroundPage::show_warning(const BannerContent& content) {
  const BannerContent& before = honesty_->content();
  const bool another = honesty_->isHidden() || before.title != content.title || before.tone != content.tone;
  honesty_->setVisible(!content.text.isEmpty());
  const MonotonicTime now = clock().monotonic_now();
  const bool due = another || !warned_at_ || now - *warned_at_ >= warning_period;
  if (content.text.isEmpty() || !due) return;
  warned_at_ = now;
  if (another || before.text != content.text) honesty_->set_content(content);
}

bool PlaygroundPage::eventFilter(QObject* watched, QEvent* event) {
  if (watched == input_ && event->type() == QEvent::KeyPress) {
    const auto* key = static_cast<QKeyEvent*>(event);
    const bool enter = key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter;
    // Enter sends, Shift+Enter begins a line.
    if (enter && !key->modifiers().testFlag(Qt::ShiftModifier)) {
      send_->click();
      return true;
    }
    if (key->key() == Qt::Key_Escape && busy()) {
      stop();
      return true;
    }
  }
  return Page::eventFilter(watched, event);
}

QString PlaygroundPage::who_answers() const {
  const auto snapshot = bridge().snapshot();
  const QString node = snapshot ? QString::fromStdString(snapshot->identity.node_id).left(8) : QString();
  const QString where =
      context().elsewhere() ? tr("the computer that this window shows") : tr("this computer");
  if (snapshot && snapshot->rounds.part)
    return tr("Computed by %1 (node %2…) together with the nodes that hold the other parts of the model.")
        .arg(where, node);
  return node.isEmpty() ? tr("Computed by %1 alone; no other node took part.").arg(where)
                        : tr("Computed by %1 alone (node %2…); no other node took part.").arg(where, node);
}

void PlaygroundPage::send() {
  const QString text = input_->toPlainText();
  if (busy() || text.isEmpty()) return;
  if (static_cast<std::size_t>(text.toUtf8().size()) > node::max_prompt_bytes / 2) {
    left_->show_problem(
        tr("That is too long: at most %1 can be sent.").arg(Format::bytes(node::max_prompt_bytes / 2)));
    return;
  }
  auto request = sampling_->request();
  if (!request) return;
  // Two models are compared with one seed, which the facts name.
  if (compares() && request->seed == 0)
    request->seed = 1 + static_cast<std::uint64_t>(to_unix_ms(clock().wall_now())) % 0x7fff'ffffu;
  request_ = *request;
  question_ = text;
  input_->clear();
  request->checkpoint = model_name(*model_).toStdString();
  left_->ask({text, mode() == Mode::Chat, *request, who_answers()});
  show_busy();
}

// The next text may be in the field already: then the transcript keeps the question.
void PlaygroundPage::take_back(const QString& text) {
  if (!input_->toPlainText().isEmpty()) return;
  left_->take_back();
  input_->setPlainText(text);
  input_->moveCursor(QTextCursor::End);
}

// The second model answers after the first: one of them is in memory at a time.
void PlaygroundPage::left_finished(bool answered) {
  if (answered && compares()) {
    node::GenerateRequest request = request_;
    request.checkpoint = model_name(*second_).toStdString();
    right_->ask({question_, false, request, who_answers()});
  }
  show_busy();
}

void PlaygroundPage::stop() {
  left_->stop();
  right_->stop();
}

bool PlaygroundPage::busy() const {
  return left_->busy() || right_->busy();
}

void PlaygroundPage::show_busy() {
  const bool is_busy = busy();
  send_->setVisible(!is_busy);
  stop_->setVisible(is_busy);
  send_->setEnabled(!input_->toPlainText().isEmpty() && bridge().may_steer());
  mode_->setEnabled(!is_busy);
  model_->setEnabled(!is_busy);
  second_->setEnabled(!is_busy && mode() == Mode::Completion);
  clear_->setEnabled(!is_busy);
}

}  // namespace neuroshard::ui
