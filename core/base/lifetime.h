// Callbacks that can outlive the object that made them: they keep a token and ask it before they touch the
// object.
//
//   caller.call(request, [this, life = lifetime_.token()](Expected<Bytes> answer) {
//     if (!life.alive()) return;
//     …
//   });
#pragma once

#include <memory>
#include <utility>

namespace neuroshard {

// A member of the object. Its end, or the call of end(), invalidates every token. Neither copied nor moved,
// like the object that callbacks point to. Threads: tokens may be copied and destroyed on any thread; alive()
// only says something on the thread on which the object ends, usually its executor's.
class Lifetime {
 public:
  class Token {
   public:
    bool alive() const { return !life_.expired(); }

   private:
    friend class Lifetime;
    explicit Token(std::weak_ptr<const char> life) : life_(std::move(life)) {}
    std::weak_ptr<const char> life_;
  };

  Lifetime() : life_(std::make_shared<const char>()) {}
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;

  Token token() const { return Token(life_); }
  // For a destructor whose own calls could still lead to a callback.
  void end() { life_.reset(); }

 private:
  std::shared_ptr<const char> life_;
};

}  // namespace neuroshard
