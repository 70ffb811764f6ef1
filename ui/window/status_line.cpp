#include "ui/window/status_line.h"

#include <QHBoxLayout>
#include <QLabel>

#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/card.h"

namespace neuroshard::ui {

StatusLine::StatusLine(const Theme&, QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("statusline"));
  setAttribute(Qt::WA_StyledBackground);
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(16, 4, 16, 4);
  row->setSpacing(20);
  peers_ = make_label({}, "caption", this);
  peers_->setToolTip(tr("Other nodes; unknown while this node trains alone"));
  traffic_ = make_label({}, "caption", this);
  traffic_->setToolTip(tr("Network traffic down and up; unknown while this node trains alone"));
  device_ = make_label({}, "caption", this);
  // Long names of processors give way.
  device_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  age_ = make_label({}, "caption", this);
  row->addWidget(peers_);
  row->addWidget(traffic_);
  row->addWidget(device_, 1);
  row->addWidget(age_);
}

void StatusLine::refresh(const node::Snapshot* snapshot, bool attached, std::chrono::milliseconds age) {
  peers_->setText(tr("Peers %1").arg(Format::dash()));
  traffic_->setText(tr("↓ %1  ↑ %1").arg(Format::dash()));
  QString device = Format::dash();
  if (snapshot != nullptr && !snapshot->compute.device.empty()) {
    device = QString::fromStdString(snapshot->compute.device);
    if (snapshot->compute.threads != 0)
      device +=
          QStringLiteral(" · ") + tr("%n thread(s)", nullptr, static_cast<int>(snapshot->compute.threads));
    if (!snapshot->compute.precision.empty())
      device += QStringLiteral(" · ") + QString::fromStdString(snapshot->compute.precision);
  }
  device_->setText(device);
  device_->setToolTip(device);
  if (snapshot == nullptr)
    age_->setText(tr("No data yet"));
  else if (attached && age < std::chrono::seconds(3))
    age_->setText(tr("Live"));
  else
    age_->setText(
        tr("Data %1 old").arg(Format::duration(std::chrono::duration_cast<std::chrono::seconds>(age))));
}

}  // namespace neuroshard::ui
