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

// `Weather` says how a proxy disturbs the bytes in both directions. A piece is the data of one read
// call. Tests may change `Weather` at any time.
struct Weather {
  std::atomic<int> delay_us{0};   // the delay of every piece
  std::atomic<int> jitter_us{0};  // the largest additional delay, which varies from piece to piece
  // One of every `loss` pieces is lost and sent again. TCP needs 200 ms to send a lost piece again,
  // so the proxy pauses that long. Zero means no loss.
  std::atomic<int> loss{0};
  std::atomic<bool> cut{false};  // no more bytes pass, but both connections stay open
};

// A `TcpProxy` is in the path between ranks that listen on the loopback address `to` but advertise
// `from`. It listens on all of `ports` at `from`. It connects each accepted connection to the same
// port of `to`. It records the first bytes of each connection.
class TcpProxy {
 public:
  TcpProxy(const std::string& from, const std::string& to, const std::vector<std::uint16_t>& ports,
           Weather& weather);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  // Returns the reason why the proxy cannot listen, or an empty text if it can.
  const std::string& problem() const { return problem_; }
  struct Record {
    std::uint16_t port = 0;
    std::string said, answered;  // the bytes of the connecting side, and of the other side
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
