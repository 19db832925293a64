#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/security/guard.h"

struct ssl_ctx_st;
struct ssl_st;

namespace tutti::test {

// A `TlsAttacker` is in the path between ranks that encrypt, and does not have their token. It
// accepts connections at an address that ranks advertise, but at which they do not listen. It
// attacks the connections for one service, and forwards the connections for other services
// unchanged.
class TlsAttacker {
 public:
  enum class Role {
    // Imitates the rank that the other side wanted to reach: accepts the connection, ignores the
    // offered key, and shows a certificate.
    impostor,
    // Terminates TLS on both sides, shows its certificate to both, and forwards the plain text.
    relay,
  };
  struct Options {
    Role role = Role::impostor;
    security::Service service = security::Service::store;
    std::string from, to;  // addresses
    std::vector<std::uint16_t> ports;
    std::string certificate, key;  // PEM files
  };

  explicit TlsAttacker(const Options& options);
  ~TlsAttacker();
  TlsAttacker(const TlsAttacker&) = delete;
  TlsAttacker& operator=(const TlsAttacker&) = delete;

  // Returns the reason why the attacker cannot begin, or an empty text if it can.
  const std::string& problem() const { return problem_; }
  // Returns the number of attacked connections.
  int attacks() const { return attacks_; }
  // Returns the plain text that the attacker has read from the attacked connections.
  std::string heard() const;

 private:
  struct Side {
    int descriptor = -1;
    ssl_st* tls = nullptr;
  };
  struct Visit {
    Side client, server;
    std::thread thread;
  };
  void accept_all();
  void serve(Visit& visit);
  bool attack(Visit& visit, const std::string& opening);
  bool encrypt(Side& side, bool accepts);
  void pass(Visit& visit);
  bool pass_some(Side& from, Side& to, bool remember);

  Options options_;
  std::string problem_;
  ssl_ctx_st* context_ = nullptr;
  std::vector<int> listeners_;
  std::atomic<bool> over_{false};
  std::atomic<int> attacks_{0};
  mutable std::mutex mutex_;
  std::string heard_;
  std::list<Visit> visits_;  // only the accepting thread uses the list, until it ends
  std::thread thread_;
};

}  // namespace tutti::test
