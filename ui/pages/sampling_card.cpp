#include "ui/pages/sampling_card.h"

#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QLabel>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>
#include <limits>

namespace neuroshard::ui {
namespace {

template <class Spin>
Spin* named(const char* object, const QString& name, const QString& tip) {
  auto* spin = new Spin;
  spin->setObjectName(QString::fromLatin1(object));
  spin->setAccessibleName(name);
  spin->setToolTip(tip);
  return spin;
}

}  // namespace

SamplingCard::SamplingCard(QWidget* parent) : Card(tr("Sampling"), parent) {
  const node::GenerateRequest standard;
  temperature_ =
      named<QDoubleSpinBox>("temperature", tr("Temperature"),
                            tr("0 always takes the most likely token; above 1 the text becomes erratic"));
  temperature_->setRange(0, 2);
  temperature_->setSingleStep(0.1);
  top_k_ = named<QSpinBox>("top_k", tr("Top-k"), tr("Chooses among this many of the most likely tokens"));
  top_k_->setRange(0, 1000);
  top_k_->setSpecialValueText(tr("off"));
  top_p_ = named<QDoubleSpinBox>(
      "top_p", tr("Top-p"), tr("Chooses among the most likely tokens that together have this probability"));
  top_p_->setRange(0.01, 1);
  top_p_->setSingleStep(0.05);
  max_tokens_ = named<QSpinBox>("max_tokens", tr("Longest answer"), tr("In tokens"));
  max_tokens_->setRange(1, 4096);
  seed_ = named<QSpinBox>("seed", tr("Seed"), tr("The same seed, model and text give the same answer"));
  seed_->setRange(0, std::numeric_limits<int>::max());
  seed_->setSpecialValueText(tr("random"));
  const auto reset = [this, standard] {
    temperature_->setValue(standard.temperature);
    top_k_->setValue(static_cast<int>(standard.top_k));
    top_p_->setValue(standard.top_p);
    max_tokens_->setValue(static_cast<int>(standard.max_tokens));
    seed_->setValue(0);
  };
  reset();
  auto* form = new QFormLayout;
  form->setVerticalSpacing(grid_step);
  form->addRow(tr("Temperature"), temperature_);
  form->addRow(tr("Top-k"), top_k_);
  form->addRow(tr("Top-p"), top_p_);
  form->addRow(tr("Longest answer"), max_tokens_);
  form->addRow(tr("Seed"), seed_);
  body()->addLayout(form);
  auto* standard_button = new QPushButton(tr("Reset"), this);
  standard_button->setProperty("role", QStringLiteral("link"));
  standard_button->setAccessibleName(tr("Reset the sampling"));
  connect(standard_button, &QPushButton::clicked, this, reset);
  body()->addWidget(standard_button, 0, Qt::AlignLeft);
  body()->addStretch(1);
}

node::GenerateRequest SamplingCard::request() const {
  node::GenerateRequest request;
  request.temperature = temperature_->value();
  request.top_k = static_cast<std::uint32_t>(top_k_->value());
  request.top_p = top_p_->value();
  request.max_tokens = static_cast<std::uint32_t>(max_tokens_->value());
  request.seed = static_cast<std::uint64_t>(seed_->value());
  return request;
}

}  // namespace neuroshard::ui
