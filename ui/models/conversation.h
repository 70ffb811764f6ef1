// A chat as the model sees it: one growing text of turns. The model was taught no chat format, so the turns
// are marked in plain words, and an answer ends where the model begins the next turn by itself. Pure.
#pragma once

#include <QString>
#include <vector>

namespace neuroshard::ui {

class Conversation {
 public:
  struct Turn {
    QString question, answer;
  };

  void ask(const QString& question) { turns_.push_back({question, {}}); }
  // Adds to the last answer. True: the model went on with a turn of its own; the answer is cut there and
  // complete.
  bool add(const QString& text);
  void take_back() { turns_.pop_back(); }  // the last question, which got no answer
  void clear() { turns_.clear(); }
  const std::vector<Turn>& turns() const { return turns_; }

  // The last turns that fit into max_bytes, ending where the answer is to begin.
  QString prompt(std::size_t max_bytes) const;

 private:
  std::vector<Turn> turns_;
};

}  // namespace neuroshard::ui
