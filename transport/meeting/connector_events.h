#pragma once

#include <memory>

#include <tutti/status.h>

namespace tutti::meeting {

// `ConnectorEvents` is notified once, when a connector has made a pipe, or has given up. It may destroy the
// connector during the call.
template <class Link, class Pipe>
class ConnectorEvents {
 public:
  virtual ~ConnectorEvents() = default;
  // Both sides have the pipe and know it.
  virtual void on_connected(std::unique_ptr<Link> link, std::unique_ptr<Pipe> pipe) = 0;
  // The two ranks will have no pipe. The peer knows this, or learns it when this rank connects over another
  // transport.
  virtual void on_refused(const Status& why) = 0;
  // The attempt has failed, and the ranks try no other transport.
  virtual void on_connect_failed(const Status& why) = 0;
};

}  // namespace tutti::meeting
