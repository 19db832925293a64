#include "tests/support/tls_attacker.h"

#include <array>
#include <csignal>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/security/messages.h"
#include "tests/support/tcp_proxy.h"

namespace tutti::test {
namespace {

using security::Guard;

constexpr int look_again_ms = 20;
constexpr std::size_t service_at = 11, verdict_at = 11;

// Blocks SIGPIPE, since OpenSSL raises this signal when it writes to a closed socket.
void ignore_broken_pipes() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

bool is_readable(int descriptor) {
  pollfd entry{descriptor, POLLIN, 0};
  return poll(&entry, 1, look_again_ms) > 0;
}

// Returns a guard's message, or an empty text if none arrives.
std::string receive_message(int descriptor, const std::atomic<bool>& over) {
  std::string message;
  while (message.size() < Guard::message_bytes && !over) {
    if (!is_readable(descriptor)) continue;
    std::array<char, Guard::message_bytes> bytes;
    const ssize_t got = recv(descriptor, bytes.data(), bytes.size() - message.size(), 0);
    if (got <= 0) return {};
    message.append(bytes.data(), static_cast<std::size_t>(got));
  }
  return message.size() < Guard::message_bytes ? std::string() : message;
}

void say(int descriptor, const std::string& text) {
  static_cast<void>(send(descriptor, text.data(), text.size(), MSG_NOSIGNAL));
}

// Returns an accepting guard's answer to `opening`, the first message of the connecting side. The answer has
// the mode of `opening`.
std::string notice_for(const std::string& opening) {
  std::string notice(Guard::message_bytes, 'n');
  std::memcpy(notice.data(), security::notice_magic.data(), security::notice_magic.size());
  notice.replace(8, 3, opening, 8, 3);
  notice[verdict_at] = 1;
  return notice;
}

int listen_at(const std::string& host, std::uint16_t port) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  static_cast<void>(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address));
  if (listen(listener, 64) == 0) return listener;
  close(listener);
  return -1;
}

std::uint16_t port_of(int descriptor) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.sin_port);
}

}  // namespace

TlsAttacker::TlsAttacker(const Options& options) : options_(options), context_(SSL_CTX_new(TLS_method())) {
  SSL_CTX_set_min_proto_version(context_, TLS1_3_VERSION);
  const bool usable = SSL_CTX_use_certificate_chain_file(context_, options.certificate.c_str()) == 1 &&
                      SSL_CTX_use_PrivateKey_file(context_, options.key.c_str(), SSL_FILETYPE_PEM) == 1;
  if (!usable) problem_ = "its certificate cannot be used";
  for (const std::uint16_t port : options.ports) {
    listeners_.push_back(listen_at(options.from, port));
    if (listeners_.back() < 0) problem_ = "it cannot listen on " + options.from;
  }
  thread_ = std::thread([this] { accept_all(); });
}

TlsAttacker::~TlsAttacker() {
  over_ = true;
  thread_.join();
  for (const int listener : listeners_) close(listener);
  SSL_CTX_free(context_);
}

std::string TlsAttacker::heard() const {
  const std::lock_guard lock(mutex_);
  return heard_;
}

void TlsAttacker::accept_all() {
  std::vector<pollfd> entries;
  for (const int listener : listeners_) entries.push_back({listener, POLLIN, 0});
  while (!over_) {
    poll(entries.data(), entries.size(), look_again_ms);
    for (const pollfd& entry : entries) {
      const int descriptor = entry.revents == 0 ? -1 : accept4(entry.fd, nullptr, nullptr, SOCK_CLOEXEC);
      if (descriptor < 0) continue;
      Visit& visit = visits_.emplace_back();
      visit.client.descriptor = descriptor;
      visit.thread = std::thread([this, &visit] { serve(visit); });
    }
  }
  for (Visit& visit : visits_) visit.thread.join();
}

void TlsAttacker::serve(Visit& visit) {
  ignore_broken_pipes();
  const std::string opening = receive_message(visit.client.descriptor, over_);
  if (!opening.empty()) {
    const bool attacked = opening[service_at] == static_cast<char>(options_.service);
    const bool meets_server = !attacked || options_.role == Role::relay;
    if (meets_server) {
      visit.server.descriptor = connect_to(options_.to, port_of(visit.client.descriptor));
      say(visit.server.descriptor, opening);
    }
    if (!attacked || attack(visit, opening)) pass(visit);
  }
  for (Side* side : {&visit.client, &visit.server}) {
    SSL_free(side->tls);
    if (side->descriptor >= 0) close(side->descriptor);
  }
}

// Attacks one connection. Returns whether `pass` should then forward the data of both sides.
bool TlsAttacker::attack(Visit& visit, const std::string& opening) {
  ++attacks_;
  const bool relays = options_.role == Role::relay;
  const std::string notice = relays ? receive_message(visit.server.descriptor, over_) : notice_for(opening);
  say(visit.client.descriptor, notice);
  if (notice.empty() || !encrypt(visit.client, true)) return false;
  if (relays) return encrypt(visit.server, false);
  while (!over_ && pass_some(visit.client, visit.server, true)) {
  }
  return false;
}

bool TlsAttacker::encrypt(Side& side, bool accepts) {
  side.tls = SSL_new(context_);
  SSL_set_fd(side.tls, side.descriptor);
  // A side that is silent for ten seconds counts as gone.
  const timeval limit{10, 0};
  setsockopt(side.descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return (accepts ? SSL_accept(side.tls) : SSL_connect(side.tls)) == 1;
}

void TlsAttacker::pass(Visit& visit) {
  const bool attacked = visit.client.tls != nullptr;
  while (!over_ && pass_some(visit.client, visit.server, attacked) &&
         pass_some(visit.server, visit.client, attacked)) {
  }
}

// Forwards the bytes that have arrived, if any. Drops these bytes if `to` has no connection.
// Returns false if the connection has ended.
bool TlsAttacker::pass_some(Side& from, Side& to, bool remember) {
  const bool pending = from.tls != nullptr && SSL_pending(from.tls) > 0;
  if (!pending && !is_readable(from.descriptor)) return true;
  std::array<char, 16 * 1024> bytes;
  const ssize_t got = from.tls == nullptr ? recv(from.descriptor, bytes.data(), bytes.size(), 0)
                                          : SSL_read(from.tls, bytes.data(), bytes.size());
  if (got <= 0) return false;
  const std::string text(bytes.data(), static_cast<std::size_t>(got));
  if (remember) {
    const std::lock_guard lock(mutex_);
    heard_ += text;
  }
  if (to.tls != nullptr) return SSL_write(to.tls, text.data(), static_cast<int>(text.size())) > 0;
  if (to.descriptor >= 0) say(to.descriptor, text);
  return true;
}

}  // namespace tutti::test
