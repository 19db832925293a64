#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tutti::test {

// `Weather` says what a proxy does to the bytes that pass, in either direction. A piece is what the proxy
// reads in one call. `Weather` may be changed at any time.
struct Weather {
  std::atomic<int> delay_us{0};   // for every piece
  std::atomic<int> jitter_us{0};  // up to this much more, different for each piece
  // One of every `loss` pieces is lost and sent again. Over TCP, that is a pause of 200 ms. Zero: none is
  // lost.
  std::atomic<int> loss{0};
  std::atomic<bool> cut{false};  // nothing passes any more, and neither side notices
};

// A `TcpProxy` stands between ranks that listen on the loopback address `to` but advertise `from`. It listens
// on all of `ports` at `from`. For each connection that it accepts, it connects to the same port of `to`. It
// remembers the first bytes of each connection.
class TcpProxy {
 public:
  TcpProxy(const std::string& from, const std::string& to, const std::vector<std::uint16_t>& ports,
           Weather& weather);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  // Returns why it cannot listen, or an empty text if it can.
  const std::string& problem() const { return problem_; }
  struct Record {
    std::uint16_t port = 0;
    std::string said, answered;  // by the side that connected, and by the other side
  };
  // Returns the records of all connections so far.
  std::vector<Record> records() const;

 private:
  struct Connection;
  void accept_all();
  void accept_one(std::size_t listener);
  void pump(Connection& connection, int from, int to, std::string Record::*record);

  std::string to_;
  std::vector<std::uint16_t> ports_;
  Weather& weather_;
  std::string problem_;
  std::vector<int> listeners_;
  std::atomic<bool> over_{false};
  std::atomic<std::uint64_t> pieces_{0};
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::thread thread_;
};

// Returns a socket that is connected to a port of `address`, or -1 if it cannot connect.
int connect_to(const std::string& address, std::uint16_t port);

}  // namespace tutti::test
