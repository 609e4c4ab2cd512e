// Declares no more than is mentioned by c10d's header: see c10d.cpp.
#pragma once
#include <chrono>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds);
};

} // namespace gloo
