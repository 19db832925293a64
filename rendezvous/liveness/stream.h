#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <tutti/core/status.h>
#include <tutti/rendezvous/address.h>

// The one place of the control plane where sockets are made. Nothing here blocks; all sockets are
// close-on-exec, and a forked child has /dev/null in their place.
namespace tutti::liveness {

// Owns a descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int descriptor);
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }
  void close();

 private:
  int descriptor_ = -1;
};

// A TCP connection, and what is on its way in either direction.
class Stream {
 public:
  // `error`: of the attempt to connect, if it has failed already.
  Stream(Descriptor socket, bool connected, int error = 0)
      : socket_(std::move(socket)), connected_(connected), error_(error) {}

  int descriptor() const { return socket_.get(); }
  // What poll() is to wait for.
  short events() const;
  // To be called when that has happened. False if the connection has ended; `why` says how. What had come
  // before is in `received`.
  bool progress(short ready);
  bool connected() const { return connected_; }

  void write(std::string_view bytes) { unsent_ += bytes; }
  // Writes what the kernel takes now. A failure shows in the next `progress`.
  void flush();
  std::size_t unsent() const { return unsent_.size(); }
  // Nothing will be written any more, once what was has left.
  void finish() { finishing_ = true; }

  std::string& received() { return received_; }
  const std::string& why() const { return why_; }
  // Nobody listens there.
  bool refused() const { return refused_; }

 private:
  bool end(int error);
  bool receive();

  Descriptor socket_;
  bool connected_;
  int error_;
  bool finishing_ = false;
  bool finished_ = false;
  bool refused_ = false;
  std::string unsent_, received_, why_;
};

// Listens on exactly that address, at the first free port of the range, or at any if `first_port` is zero.
Result<Descriptor> listen_on(const std::string& host, std::uint16_t first_port, std::uint16_t last_port);
std::uint16_t port_of(const Descriptor& listener);
// The next connection. None: `scarce` says whether that is for lack of descriptors.
std::unique_ptr<Stream> accept_from(const Descriptor& listener, bool& scarce);
// Begins to connect; null if not even that can be done now.
std::unique_ptr<Stream> connect_to(const SocketAddress& address);

}  // namespace tutti::liveness
