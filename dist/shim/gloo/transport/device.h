// Declares only the names that c10d's header mentions: see c10d.cpp.
#pragma once

namespace gloo::transport {

class Device;

class UnboundBuffer {
 public:
  virtual ~UnboundBuffer();
};

} // namespace gloo::transport
