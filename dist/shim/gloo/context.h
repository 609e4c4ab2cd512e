// Declares only the names that c10d's header mentions: see c10d.cpp.
#pragma once
#include <chrono>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds);
};

} // namespace gloo
