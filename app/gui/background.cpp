#include "app/gui/background.h"

#include <QPointer>
#include <utility>

namespace neuroshard::gui {
namespace {

class StandIn : public QObject {
 public:
  explicit StandIn(QObject* context) : context_(context) {}
  bool context_lives() const { return !context_.isNull(); }

 private:
  QPointer<QObject> context_;
};

}  // namespace

Background::Background(const char* name) : executor_(make_thread_executor(name, max_jobs)) {}

bool Background::run(std::function<void()> job) {
  return executor_->post(std::move(job));
}

Background::Guard::Guard(QObject* context) : stand_in_(new StandIn(context)) {}

Background::Guard::~Guard() {
  if (stand_in_ != nullptr) stand_in_->deleteLater();
}

void Background::Guard::post(std::function<void()> call) {
  auto* stand_in = static_cast<StandIn*>(std::exchange(stand_in_, nullptr));
  if (stand_in == nullptr) return;
  QMetaObject::invokeMethod(
      stand_in,
      [stand_in, call = std::move(call)] {
        stand_in->deleteLater();
        if (stand_in->context_lives()) call();
      },
      Qt::QueuedConnection);
}

}  // namespace neuroshard::gui
