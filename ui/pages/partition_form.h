// The form of a partition: model, limits, and the progress of the search.
#pragma once

#include "ui/pages/partition_job.h"
#include "ui/widgets/card.h"

class QDoubleSpinBox;
class QHBoxLayout;
class QLabel;
class QLineEdit;
class QProgressBar;
class QPushButton;
class QSpinBox;

namespace neuroshard::ui {

class Theme;

// Threads: ui.
class PartitionForm final : public Card {
  Q_OBJECT
 public:
  explicit PartitionForm(const Theme& theme, QWidget* parent = nullptr);

  void set_model(const QString& path);
  PartitionRequest request() const;
  void open_file();
  // As the button does.
  void submit();
  void show_running(bool running);
  // A line below the inputs; roles as in make_label(). Empty hides it.
  void tell(const QString& text, const char* role);
  // There is nothing that could cut.
  void disable(const QString& why);

 Q_SIGNALS:
  void cut_asked();
  void stop_asked();

 private:
  enum class Kind { Other, TorchScript, Onnx };
  Kind kind() const;
  QHBoxLayout* make_limits();
  void adapt_to_model();

  QLineEdit* model_;
  QLineEdit* details_;
  QLabel* details_name_;
  QLabel* trust_;
  QSpinBox* blocks_;
  QSpinBox* time_;
  QDoubleSpinBox* memory_;
  QDoubleSpinBox* bandwidth_;
  QPushButton* cut_;
  QPushButton* stop_;
  QProgressBar* progress_;
  QLabel* state_;
  bool running_ = false, bandwidth_chosen_ = false;
};

}  // namespace neuroshard::ui
