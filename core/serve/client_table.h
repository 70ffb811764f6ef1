// Counts what each client of the local HTTP server has under way, so that one client can't take what the others need. A
// client is an address. Only requests with the right key get as far as a body or a text, so strangers have
// connections at most.
//
// Threads: the server's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace neuroshard::serve {

struct ClientUse {
  std::string address;
  std::size_t connections = 0;
  std::size_t texts = 0;         // requests for texts that wait or run
  std::uint64_t body_bytes = 0;  // of bodies that are read, or whose request is not answered yet
};

// A part of a use that ends with the object.
template <class Number>
class Lease {
 public:
  Lease() = default;
  Lease(std::shared_ptr<ClientUse> use, Number ClientUse::*field, Number amount)
      : use_(std::move(use)), field_(field), amount_(amount) {
    (*use_).*field_ += amount_;
  }
  Lease(Lease&& other) noexcept { *this = std::move(other); }
  Lease& operator=(Lease&& other) noexcept {
    std::swap(use_, other.use_);
    std::swap(field_, other.field_);
    std::swap(amount_, other.amount_);
    return *this;
  }
  ~Lease() { end(); }
  void end() {
    if (use_) (*use_).*field_ -= amount_;
    use_.reset();
  }

 private:
  std::shared_ptr<ClientUse> use_;
  Number ClientUse::*field_ = nullptr;
  Number amount_ = 0;
};

class ClientTable {
 public:
  // The same object for one address while anybody holds it.
  std::shared_ptr<ClientUse> of(const std::string& address) {
    std::erase_if(uses_, [](const auto& entry) { return entry.second.expired(); });
    std::weak_ptr<ClientUse>& known = uses_[address];
    auto use = known.lock();
    if (!use) known = use = std::make_shared<ClientUse>(ClientUse{address, 0, 0, 0});
    return use;
  }

 private:
  std::map<std::string, std::weak_ptr<ClientUse>> uses_;  // of open connections: bounded by their number
};

}  // namespace neuroshard::serve
