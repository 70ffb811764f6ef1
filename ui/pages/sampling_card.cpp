#include "ui/pages/sampling_card.h"

#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>
#include <algorithm>
#include <limits>

namespace neuroshard::ui {
namespace {

template <class Field>
Field* named(const char* object, const QString& name, const QString& tip) {
  auto* field = new Field;
  field->setObjectName(QString::fromLatin1(object));
  field->setAccessibleName(name);
  field->setToolTip(tip);
  return field;
}

QDoubleSpinBox* fraction(QDoubleSpinBox* field, double least, double most, double step) {
  field->setRange(least, most);
  field->setSingleStep(step);
  return field;
}

// "\\n" stands for a line break, as in most programs' fields. A space around a text only sets it off.
std::vector<std::string> stop_texts(const QString& text) {
  std::vector<std::string> stops;
  for (const QString& part : text.split(u'|')) {
    QString stop = part.trimmed();
    if (stop.isEmpty()) continue;
    stops.push_back(stop.replace(QStringLiteral("\\n"), QStringLiteral("\n")).toStdString());
  }
  return stops;
}

// "42: -100, 7: 2.5"; nothing when it is not of that form.
std::optional<std::vector<node::TokenBias>> biases(const QString& text) {
  std::vector<node::TokenBias> all;
  for (const QString& part : text.split(u',', Qt::SkipEmptyParts)) {
    const QStringList sides = part.split(u':');
    if (sides.size() != 2) return std::nullopt;
    bool is_token = false, is_bias = false;
    const uint token = sides[0].trimmed().toUInt(&is_token);
    const double bias = sides[1].trimmed().toDouble(&is_bias);
    if (!is_token || !is_bias || bias < -100 || bias > 100) return std::nullopt;
    all.push_back({token, bias});
  }
  return all;
}

}  // namespace

SamplingCard::SamplingCard(QWidget* parent) : Card(tr("Sampling"), parent) {
  build();
  reset();
  auto* form = new QFormLayout;
  form->setVerticalSpacing(grid_step);
  form->addRow(tr("Temperature"), temperature_);
  form->addRow(tr("Top-k"), top_k_);
  form->addRow(tr("Top-p"), top_p_);
  form->addRow(tr("Min-p"), min_p_);
  form->addRow(tr("Repetition penalty"), penalty_);
  form->addRow(tr("Longest answer"), max_tokens_);
  form->addRow(tr("Seed"), seed_);
  form->addRow(tr("Stop at"), stop_);
  form->addRow(tr("Token biases"), bias_);
  form->addRow(tr("Show likeliest"), logprobs_);
  body()->addLayout(form);
  problem_ = make_paragraph({}, "danger", this);
  problem_->setObjectName(QStringLiteral("sampling_problem"));
  problem_->hide();
  body()->addWidget(problem_);
  auto* standard_button = new QPushButton(tr("Reset"), this);
  standard_button->setProperty("role", QStringLiteral("link"));
  standard_button->setAccessibleName(tr("Reset the sampling"));
  connect(standard_button, &QPushButton::clicked, this, &SamplingCard::reset);
  body()->addWidget(standard_button, 0, Qt::AlignLeft);
  body()->addStretch(1);
}

void SamplingCard::build() {
  temperature_ = fraction(
      named<QDoubleSpinBox>("temperature", tr("Temperature"),
                            tr("0 always takes the most likely token; above 1 the text becomes erratic")),
      0, 2, 0.1);
  top_k_ = named<QSpinBox>("top_k", tr("Top-k"), tr("Chooses among this many of the most likely tokens"));
  top_k_->setRange(0, 1000);
  top_k_->setSpecialValueText(tr("off"));
  top_p_ = fraction(
      named<QDoubleSpinBox>("top_p", tr("Top-p"),
                            tr("Chooses among the most likely tokens that together have this probability")),
      0.01, 1, 0.05);
  min_p_ = fraction(
      named<QDoubleSpinBox>("min_p", tr("Min-p"),
                            tr("Leaves out tokens less likely than this fraction of the most likely one")),
      0, 1, 0.01);
  min_p_->setSpecialValueText(tr("off"));
  penalty_ = fraction(
      named<QDoubleSpinBox>("repetition_penalty", tr("Repetition penalty"),
                            tr("Above 1, tokens that are in the text already become less likely; 1 = off")),
      0.5, 2, 0.05);
  max_tokens_ = named<QSpinBox>("max_tokens", tr("Longest answer"), tr("In tokens"));
  max_tokens_->setRange(1, node::max_generated_tokens);
  seed_ = named<QSpinBox>("seed", tr("Seed"), tr("The same seed, model and text give the same answer"));
  seed_->setRange(0, std::numeric_limits<int>::max());
  seed_->setSpecialValueText(tr("random"));
  stop_ = named<QLineEdit>(
      "stop_texts", tr("Stop at"),
      tr("The answer ends before any of these texts; | separates them, \\n is a line break, spaces around a "
         "text do not count"));
  stop_->setPlaceholderText(tr("a text | another"));
  bias_ =
      named<QLineEdit>("token_biases", tr("Token biases"),
                       tr("Makes tokens likelier or less likely, by their number: from -100, never, to 100"));
  bias_->setPlaceholderText(QStringLiteral("42: -100, 7: 2"));
  logprobs_ =
      named<QSpinBox>("logprobs", tr("Show likeliest tokens"),
                      tr("Lists the tokens of the answer with their probabilities, and so many likely ones"));
  logprobs_->setRange(0, node::max_logprobs);
  logprobs_->setSpecialValueText(tr("off"));
}

void SamplingCard::reset() {
  const node::GenerateRequest standard;
  temperature_->setValue(standard.temperature);
  top_k_->setValue(static_cast<int>(standard.top_k));
  top_p_->setValue(standard.top_p);
  min_p_->setValue(standard.min_p);
  penalty_->setValue(standard.repetition_penalty);
  max_tokens_->setValue(static_cast<int>(standard.max_tokens));
  seed_->setValue(0);
  stop_->clear();
  bias_->clear();
  logprobs_->setValue(0);
}

std::optional<node::GenerateRequest> SamplingCard::request() {
  node::GenerateRequest request;
  request.temperature = temperature_->value();
  request.top_k = static_cast<std::uint32_t>(top_k_->value());
  request.top_p = top_p_->value();
  request.min_p = min_p_->value();
  request.repetition_penalty = penalty_->value();
  request.max_tokens = static_cast<std::uint32_t>(max_tokens_->value());
  request.seed = static_cast<std::uint64_t>(seed_->value());
  request.stop = stop_texts(stop_->text());
  if (logprobs_->value() > 0) request.logprobs = static_cast<std::uint32_t>(logprobs_->value());
  QString problem;
  const auto bias = biases(bias_->text());
  if (!bias || bias->size() > node::max_biases)
    problem = tr("Token biases: write numbers of tokens and biases from -100 to 100, as in 42: -100, 7: 2");
  const bool stops_fit = request.stop.size() <= node::max_stop_sequences &&
                         std::all_of(request.stop.begin(), request.stop.end(), [](const std::string& stop) {
                           return stop.size() <= node::max_stop_bytes;
                         });
  if (!stops_fit)
    problem =
        tr("Stop at: at most %1 texts of %2 bytes").arg(node::max_stop_sequences).arg(node::max_stop_bytes);
  problem_->setText(problem);
  problem_->setVisible(!problem.isEmpty());
  if (!problem.isEmpty()) return std::nullopt;
  request.logit_bias = *bias;
  return request;
}

}  // namespace neuroshard::ui
