#pragma once

#include <functional>
#include <string>

#include <tutti/credentials.h>

namespace tutti::tcp {

// `StoreClientOptions` are what a client of a store is made from.
struct StoreClientOptions {
  std::string nonce = {};  // if given, only a server with that nonce will do
  security::SharedCredentials credentials = {};
  int rank = -1;  // ours, if we are one
  // Asked between attempts to connect: true ends them with `aborted`.
  std::function<bool()> interrupted = {};
};

}  // namespace tutti::tcp
